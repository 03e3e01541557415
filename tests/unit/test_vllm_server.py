"""Rollouts and weights over HTTP, against real server processes and what can go wrong with them."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from warnings import catch_warnings, simplefilter

import pytest
import requests
import torch
from grpo_runs import logs, weights

from core.errors import EngineError
from core.rollout.engine import Sampling, in_order
from core.rollout.native.native import NativeEngine
from core.rollout.on_vllm.engine import VllmEngine, checkpoint_weights
from core.rollout.on_vllm.server import VllmServer
from eval.errors import BadValue

PROMPTS = [[5, 6, 7], [8, 9], [5, 6, 7], [10, 11, 12, 13]]
SAMPLING = Sampling(max_tokens=12, ends=frozenset({1, 30, 31}), temperature=1.3, top_k=40)


@pytest.fixture(scope="module")
def starter():
    """A process that has imported everything and starts servers."""
    program = Path(__file__).parent / "engine_server.py"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, str(program)], env=env, **pipes) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def serve(starter, build_llama, tmp_path):
    """Start a server of other weights than those that are trained; its address."""
    build_llama(seed=9).save_pretrained(tmp_path / "served")
    started = []

    def start(**options):
        starter.stdin.write(json.dumps({"model": str(tmp_path / "served"), **options}) + "\n")
        starter.stdin.flush()
        url, process = json.loads(starter.stdout.readline())
        started.append(process)
        return url

    yield start
    for process in started:
        with suppress(ProcessLookupError):  # it died as the test wanted
            os.kill(process, signal.SIGKILL)


def server(url, timeout_s=60.0):
    return VllmServer(url, timeout_s=timeout_s, group_port=0)


def over(url, **changes):
    """Settings of a trainer that samples from the server."""
    return {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": url, **changes}


def refusal(call, *words):
    """The one line with which something is refused."""
    with pytest.raises((EngineError, BadValue)) as error:
        call()
    line = str(error.value)
    assert "\n" not in line
    for word in words:
        assert word in line
    assert error.value.exit_code == 2
    return line


@pytest.mark.parametrize("settings", [SAMPLING, Sampling(max_tokens=5, ends=frozenset({1}))])
def test_tokens_and_log_probabilities_are_those_of_the_weights_that_were_sent(
    settings, serve, build_llama
):
    model, seeds = build_llama(seed=3).eval(), [7, 8, 9, 10]
    engine = VllmEngine(server(serve())).serving(model, 0)
    found = in_order(engine.sample(PROMPTS, settings, seeds), 4)
    for prompt, seed, row in zip(PROMPTS, seeds, found, strict=True):
        assert [row] == in_order(NativeEngine(model).sample([prompt], settings, [seed]), 1)
    assert found[0].tokens != found[2].tokens  # a group is no row of clones


def test_a_run_is_that_of_the_native_engine_and_weights_are_sent_once_before_each_rollout(
    serve, make_grpo, tmp_path
):
    options = {"max_steps": 4, "steps_per_generation": 4, "learning_rate": 1e-2}
    near = make_grpo(**options)
    near.train()
    url = serve()
    uncorrected = over(url, vllm_importance_sampling_correction=False)
    far = make_grpo(output_dir=str(tmp_path / "far"), **options, **uncorrected)
    far.train()
    assert torch.equal(weights(near.model), weights(far.model))
    assert logs(near, "reward") == logs(far, "reward")
    calls = requests.get(url + "/calls", timeout=60).json()
    assert calls.count("/update_weights") == 2  # rollouts of two steps each
    assert calls.index("/reset_prefix_cache") < calls.index("/v1/completions")


@pytest.mark.parametrize("mode", ["token_truncate", "sequence_mask"])
def test_an_engine_with_the_trainers_policy_is_corrected_by_nothing(mode, serve, make_grpo):
    trainer = make_grpo(**over(serve(), vllm_importance_sampling_mode=mode))
    trainer.train()
    for name in ("min", "mean", "max"):
        ratios = logs(trainer, f"sampling/importance_sampling_ratio/{name}")
        assert ratios == pytest.approx([1.0, 1.0], abs=1e-4)
    assert 0 < max(logs(trainer, "sampling/sampling_logp_difference/max")) < 1e-4


def test_a_server_that_is_away_is_named(make_grpo):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {"vllm_server_host": "127.0.0.1", "vllm_server_port": port}
    refusal(
        lambda: make_grpo(**over(None, **settings, vllm_server_timeout=0.1)),
        f"http://127.0.0.1:{port} is away after 0.1 s (ConnectionError)",
        "vllm serve MODEL",
    )


def test_a_server_that_is_slow_is_named(serve):
    engine = VllmEngine(server(serve(stalls_after=1), timeout_s=0.5))
    refusal(
        lambda: list(engine.sample(PROMPTS, SAMPLING, [0, 1, 2, 3])),
        "did not answer /v1/completions within 0.5 s",
        "vllm_server_timeout",
    )


def test_a_run_continues_bit_for_bit_after_its_server_died_in_mid_rollout(
    serve, make_grpo, tmp_path
):
    options = {"max_steps": 3, "save_strategy": "steps", "save_steps": 1}
    whole = make_grpo(output_dir=str(tmp_path / "whole"), **options, **over(serve()))
    whole.train()
    after = 1 + 8 + 1 + 3  # the check and completions of one rollout, and some of the next
    killed = make_grpo(**options, **over(serve(dies_after=after)))
    refusal(killed.train, "died or broke off at /v1/completions", "continues from the last")
    assert killed.state.global_step == 1
    again = make_grpo(**options, **over(serve()))
    again.train(resume_from_checkpoint=True)
    assert torch.equal(weights(whole.model), weights(again.model))
    assert logs(whole, "loss") == logs(again, "loss")


@pytest.mark.parametrize("updates", [0, 1])
def test_weights_that_did_not_arrive_are_noticed(updates, serve, make_grpo):
    trainer = make_grpo(**over(serve(updates=updates), learning_rate=1e-2, max_steps=3))
    refusal(trainer.train, "serves other weights than those it was sent", "at most 0.001")
    assert trainer.state.global_step == updates


def test_a_server_that_was_started_again_meanwhile_is_noticed(serve, make_grpo):
    trainer = make_grpo(**over(serve(forgets_after=9)), rollout_policy="reference")
    refusal(trainer.train, "serves other weights than those it was sent")
    assert trainer.state.global_step == 1


def test_the_reference_is_sent_once_where_it_samples(serve, make_grpo):
    url = serve()
    trainer = make_grpo(**over(url), rollout_policy="reference", learning_rate=1e-2)
    trainer.train()
    assert requests.get(url + "/calls", timeout=60).json().count("/update_weights") == 1


@pytest.mark.parametrize(
    ("adapts", "use_dora"),
    [(["q_proj", "up_proj"], False), (["embed_tokens"], False), (["q_proj", "up_proj"], True)],
)
def test_adapters_are_sent_with_the_weights_they_adapt(adapts, use_dora, build_llama):
    peft = pytest.importorskip("peft")
    model, plain, start = (build_llama(tie_word_embeddings=False).double() for _ in range(3))
    with catch_warnings():
        simplefilter("ignore")  # peft looks at an attribute that transformers has renamed
        adapted = peft.get_peft_model(
            model, peft.LoraConfig(target_modules=adapts, use_dora=use_dora)
        )
    for name, parameter in adapted.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter)
    with adapted.disable_adapter():
        for (name, value), (own, parameter) in zip(
            checkpoint_weights(adapted), plain.named_parameters(), strict=True
        ):
            assert name == own
            assert torch.equal(value, parameter)
    plain.load_state_dict(dict(checkpoint_weights(adapted)), strict=False)
    ids = torch.tensor([PROMPTS[3]])
    with torch.no_grad():
        torch.testing.assert_close(plain(ids).logits, adapted(ids).logits)
        assert not torch.allclose(plain(ids).logits, start(ids).logits, atol=1e-2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"plain": True}, "gave the token ids None with the log-probabilities None"),
        ({"aborts": True}, "broke a completion off (abort)"),
    ],
)
def test_an_answer_that_is_no_rollout_is_refused(options, words, serve):
    engine = VllmEngine(server(serve(**options)))
    refusal(lambda: list(engine.sample(PROMPTS, SAMPLING, [0, 1, 2, 3])), words)


def test_a_log_probability_that_the_server_does_not_know_is_nan(serve):
    found = in_order(server(serve(nan=True)).complete(PROMPTS[:1], [asked()]), 1)
    assert [logp != logp for logp in found[0].logps] == [True] + [False] * 4


def asked(**changes):
    """A request as the engine makes it."""
    sampling = {"max_tokens": 5, "stop_token_ids": [], "temperature": 1.0, "top_k": 0}
    rest = {"top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0, "seed": 3}
    return sampling | rest | changes


def test_sampling_options_that_the_engine_lacks_are_refused(serve):
    found = server(serve())
    stopping = Sampling(max_tokens=5, ends=frozenset(), stop=lambda _: False)
    refusal(
        lambda: list(VllmEngine(found).sample(PROMPTS, stopping, [0] * 4)),
        "the engine 'vllm' has no stop strings",
    )
    refusal(
        lambda: list(found.complete(PROMPTS[:1], [asked(top_k=-5)])),
        "refused /v1/completions: 400",
        "top_k must be -1 or more",
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"logprobs_mode": "raw_logprobs"}, "reports raw_logprobs"),
        ({"backend": None}, "takes weights by None: expected nccl or http"),
        ({"backend": "nccl"}, "takes weights over NCCL, for which vllm is needed here too"),
    ],
)
def test_a_server_started_without_what_training_needs_is_refused_before(options, words, serve):
    refusal(lambda: server(serve(**options)), words)
