"""The memory that a plan prints is what the ZeRO paper and small models say."""

from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

import pytest
import torch
from architectures import built
from datasets import Dataset
from same_batch import QUIET
from torch.profiler import ProfilerActivity, profile

from core import GRPOConfig, GRPOTrainer
from core.families.family import Work
from core.models.folders import CHECKPOINTS
from core.models.load import load_policy
from core.models.shapes import KNOWN, Shape, find_shape
from core.paper.registry import find_paper
from core.run.plan import plan_memory
from core.settings.memory import (
    Cluster,
    activations,
    estimate_memory,
    kv_cache,
    narrow_copy,
    states,
)
from core.settings.resolve import resolve
from core.settings.run_settings import LAUNCHES
from eval.errors import BadValue, UnknownName

PSI = 7_500_000_000
# GB per device in table 1 of arXiv 1910.02054, exact where it rounds.
TABLE = [(4, 41.25, 30.0), (16, 21.5625, 7.5), (64, 16.640625, 1.875), (1024, 15.102539, 0.117188)]


@pytest.mark.parametrize(("n", "stage2", "stage3"), TABLE)
def test_deepspeed_with_bf16_is_the_papers_table(n, stage2, stage3):
    for launch, gigabytes in (("zero2", stage2), ("zero3", stage3)):
        found = sum(states(launch, PSI, n, bf16=True))
        assert found / 1e9 == pytest.approx(gigabytes, rel=1e-5)


@pytest.mark.parametrize("bf16", [True, False])
def test_spreading_saves_what_it_spreads(bf16):
    """On one process nothing; on more, all parts but those that stay whole, in the same ratio."""
    for launch in LAUNCHES:
        whole = states(launch, PSI, 1, bf16=bf16)
        parts = states(launch, PSI, 8, bf16=bf16)
        spread = {"ddp": (1, 1, 1), "zero1": (1, 1, 8), "zero2": (1, 8, 8)}.get(launch, (8, 8, 8))
        assert [a / b for a, b in zip(whole, parts, strict=True)] == pytest.approx(list(spread))


def test_parameters_are_those_of_the_model(build_llama, tmp_path):
    build_llama().save_pretrained(tmp_path)
    shipped = "pocket-instruct"
    assert find_shape("tiny", tmp_path).parameters == build_llama().num_parameters()
    found = find_shape(shipped, CHECKPOINTS / shipped)
    assert found.parameters == load_policy(shipped).num_parameters()


@pytest.mark.parametrize("kind", ["gpt2", "mixtral"])
def test_other_architectures_are_not_taken_for_llamas(kind, tmp_path):
    """With other layers, or with experts that no token meets all of."""
    built(kind).save_pretrained(tmp_path)
    assert find_shape("tiny", tmp_path) is None
    resolved = resolve(find_paper("deepseekmath-grpo"), arguments=(f"model={tmp_path}",))
    with pytest.raises(BadValue, match="one of llama, mistral, qwen2, qwen3"):
        plan_memory(resolved, Cluster(count=8, gpu="H100"))


def test_known_models_have_the_size_of_their_name():
    sizes = {name: shape.parameters / 1e9 for name, shape in KNOWN.items()}
    assert sizes["deepseek-ai/deepseek-math-7b-instruct"] == pytest.approx(6.91, abs=0.005)
    assert sizes["Qwen/Qwen2.5-0.5B-Instruct"] == pytest.approx(0.494, abs=0.0005)


def shape_of(config):
    return Shape(
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        intermediate=config.intermediate_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head=config.hidden_size // config.num_attention_heads,
        vocabulary=config.vocab_size,
        tied=config.tie_word_embeddings,
    )


# eight completions of four prompts, in 32 bits
work = partial(
    Work,
    **{"micro_batch": 8, "prompts": 4, "rows": 8, "prompt": 50, "completion": 60},
    **{"bf16": False, "checkpointing": False, "reference": False},
)


class Measured(GRPOTrainer):
    """Keeps by how many bytes memory rises at most in each micro-batch's passes."""

    rises: tuple[int, ...] = ()

    def learn(self, model, batch, num_items_in_batch):
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            loss = super().learn(model, batch, num_items_in_batch)
        results: Any = profiler.profiler  # Any: its stub lacks what it has
        events = [e for e in results.kineto_results.events() if e.name() == "[memory]"]
        events.sort(key=lambda event: event.start_ns())
        self.rises += (max(accumulate(event.nbytes() for event in events)),)
        return loss


def rise(model, tokenizer, folder, work):
    """Bytes that the second of two micro-batches needs, when the first has left its gradients."""

    def rollout(rows, trainer):  # noqa: ARG001 - the caller's signature
        return {
            "prompt_ids": [[int(row)] * work.prompt for row in rows],
            "completion_ids": [[5 + i] * work.completion for i in range(len(rows))],
            "logprobs": None,
        }

    settings = {
        "per_device_train_batch_size": work.micro_batch,
        "gradient_accumulation_steps": 2,
        "num_generations": 2 * work.micro_batch // work.prompts,
        "max_completion_length": work.completion,
        "activation_checkpointing": work.checkpointing,
        "bf16": work.bf16,
        "max_steps": 1,
    }
    trainer = Measured(
        model=model,
        reward_funcs=lambda completion_ids, **_: [float(ids[0]) for ids in completion_ids],
        args=GRPOConfig(str(folder), **QUIET | settings),
        train_dataset=Dataset.from_dict({"prompt": [str(i) for i in range(5, 37)]}),
        processing_class=tokenizer,
        rollout_func=rollout,
    )
    trainer.train()
    return trainer.rises[1]


MANY_ROWS = {"micro_batch": 32, "prompts": 16, "prompt": 30, "completion": 100}
WIDE = {"hidden_size": 128, "intermediate_size": 512}


@pytest.mark.parametrize(
    ("changes", "sizes"),
    [
        ({}, {}),
        ({"prompts": 8}, {"tie_word_embeddings": False}),
        ({}, {"vocab_size": 20_000}),
        ({}, {"num_key_value_heads": 4}),
        (MANY_ROWS, {}),
        ({"micro_batch": 2, "prompts": 2, "completion": 1500}, {}),
        ({"checkpointing": True}, WIDE),
        ({"bf16": True}, WIDE),
    ],
)
def test_a_micro_batch_needs_what_is_planned(
    changes, sizes, build_llama, tiny_tokenizer, tmp_path, capfd
):
    """With its gradients within 15 %: packed, in pieces, and with a head that works in chunks."""
    common = {"vocab_size": 1000, "num_hidden_layers": 5, "hidden_size": 64}
    more = {"intermediate_size": 256, "max_position_embeddings": 2048}
    model = build_llama(**common | more | sizes)
    planned = work(**changes)
    measured = rise(model, tiny_tokenizer, tmp_path, planned)
    capfd.readouterr()
    shape = shape_of(model.config)
    found = activations(shape, planned, "ddp", on_cpu=True)
    found += narrow_copy(shape, planned, "ddp")
    gradients = 4 * shape.parameters
    assert measured + gradients == pytest.approx(found + gradients, rel=0.15)


@pytest.mark.parametrize(
    ("sizes", "measured"),
    [
        ({"micro_batch": 32, "prompts": 4, "prompt": 128, "completion": 256}, 16.611e9),
        ({"micro_batch": 8, "prompts": 1, "prompt": 512, "completion": 2048}, 29.808e9),
        ({"micro_batch": 8, "prompts": 8, "prompt": 512, "completion": 1024}, 22.340e9),
    ],
)
def test_the_plan_of_a_gpu_is_what_one_needed(sizes, measured):
    """An H100, torch 2.11: peak above weights and gradients of a forward and backward pass."""
    shape = KNOWN["Qwen/Qwen2.5-0.5B-Instruct"]
    planned = work(bf16=True, rows=sizes["micro_batch"], **sizes)
    found = activations(shape, planned, "ddp") + narrow_copy(shape, planned, "ddp")
    assert found == pytest.approx(measured, rel=0.05)


def test_pieces_bound_what_a_micro_batch_needs():
    """Only where the states are whole; twice the rows cost twice as much where they are not."""
    shape = KNOWN["Qwen/Qwen2.5-0.5B-Instruct"]
    few, many = (work(micro_batch=n, prompts=n, completion=3000) for n in (32, 64))
    assert activations(shape, few, "ddp") == activations(shape, many, "ddp")
    once, twice = (activations(shape, w, "fsdp2") for w in (few, many))
    assert twice == pytest.approx(2 * once, rel=0.1)


def test_cache_is_what_the_model_keeps(build_llama):
    model = build_llama()
    cache = model(torch.randint(5, 64, (6, 20)), use_cache=True).past_key_values
    measured = sum(t.nbytes for layer in cache.layers for t in (layer.keys, layer.values))
    assert (
        kv_cache(shape_of(model.config), work(rows=6, prompt=9, completion=11), width=4) == measured
    )


def test_sampling_needs_the_weights_whole():
    """Under FSDP2 a process holds all weights while it samples, in room that training has not."""
    shape = KNOWN["Qwen/Qwen2.5-0.5B-Instruct"]
    run = work(bf16=True, checkpointing=True, reference=True)
    one, eight = (estimate_memory(shape, run, "fsdp2", n) for n in (1, 8))
    assert eight.gathered == 4 * shape.parameters
    assert one.weights == pytest.approx(8 * eight.weights)
    assert eight.peak == max(eight.training, eight.sampling)


def test_autocast_keeps_a_narrow_copy_as_long_as_it_lasts(build_llama):
    """Beside the weights while sampling too, but not of frozen or sharded ones."""
    model = build_llama(vocab_size=1000, hidden_size=64)
    ids = torch.randint(5, 64, (1, 4))
    with (
        torch.no_grad(),
        torch.autocast("cpu", torch.bfloat16),
        profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler,
    ):
        model(ids)
    results: Any = profiler.profiler  # Any: its stub lacks what it has
    kept = sum(e.nbytes() for e in results.kineto_results.events() if e.name() == "[memory]")
    shape, run = shape_of(model.config), work(bf16=True)
    assert narrow_copy(shape, run, "ddp") == pytest.approx(kept, rel=0.05)
    memory = {launch: estimate_memory(shape, run, launch, 2) for launch in LAUNCHES}
    plain = memory["ddp"].weights + memory["ddp"].optimiser + memory["ddp"].kv_cache
    assert memory["ddp"].sampling - plain == narrow_copy(shape, run, "ddp")
    assert [m.launch for m in memory.values() if m.autocast] == ["ddp"]


@pytest.mark.parametrize("text", ["H100", "0xH100", "8", "8*H100"])
def test_bad_clusters(text):
    with pytest.raises(BadValue, match="such as 8xH100"):
        Cluster.parse(text)


def test_an_unknown_gpu():
    with pytest.raises(UnknownName, match="H100"):
        Cluster.parse("8xH1000")


def test_a_value_model_is_counted_whole_on_every_process():
    """Weights, gradients and moments in 32 bits beside those of the policy, whatever spreads it."""
    shape = Shape(layers=1, hidden=8, intermediate=8, heads=1, kv_heads=1, head=8, vocabulary=16)
    plain = Work(
        micro_batch=2, prompts=2, rows=2, completion=4, checkpointing=False, reference=True
    )
    for launch in LAUNCHES:
        alone = estimate_memory(shape, plain, launch, 4)
        beside = estimate_memory(shape, replace(plain, values=True), launch, 4)
        assert beside.values == 16 * shape.parameters
        assert beside.sampling - alone.sampling == 16 * shape.parameters
        assert beside.training - alone.training == 16 * shape.parameters + alone.activations
