"""A run, or an evaluation, starts a real server for each model and gets the model's own answers."""

import gc
import json
import shlex
import sys
from pathlib import Path

import faulty_server
import psutil
import pytest

from core.errors import EngineError
from core.models.folders import locate
from core.models.load import load_tokenizer
from core.run.order import run_order
from core.run.plan import make_plan
from core.run.request import Order
from core.samplers.serve_command import VLLM_SERVE
from core.samplers.started import StartedSampler, StartedServer
from core.settings.resolve import resolve
from core.stages.loading import Loading
from eval.errors import BadValue, ReproError
from eval.samples.evaluation import Decoding
from papers.deepseekmath_grpo import PAPER

PROGRAM = shlex.quote(str(Path(sys.executable).with_name("transformers")))
SERVE = f"{PROGRAM} serve {{model}} --host 127.0.0.1 --port {{port}} --device cpu --dtype float32"
FAILING = "import sys; sys.exit('no GPU: {model} {port}')"
SHORT = (
    *("max_steps=1", "num_generations=2", "per_device_train_batch_size=4"),
    *("gradient_accumulation_steps=1", "max_completion_length=12", "heldout_problems=0"),
    *("eval_limit=3", "eval_max_tokens=20", "at_k_benchmarks=0", "benchmarks=gsm8k,cmath"),
)


def servers():
    """The servers that this process has started and that still run."""
    children = psutil.Process().children(recursive=True)
    return [one for one in children if "serve" in one.cmdline()]


@pytest.mark.long
def test_a_run_is_answered_by_a_server_that_it_starts_for_each_model(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    (here,) = run_order(Order(paper=PAPER, arguments=SHORT)).runs
    asked = (*SHORT, "eval_engine=server", f"eval_server={SERVE}")
    (there,) = run_order(Order(paper=PAPER, arguments=asked)).runs
    assert there["train"] == here["train"]  # the same training, not trained anew
    for when in ("start_scores", "scores"):
        values = [[row["value"] for row in one[when]] for one in (here, there)]
        assert values[0] == values[1]
        assert {row["computed"] for row in there[when]} == {f"by {SERVE}"}
    assert not servers()


@pytest.mark.long
def test_an_evaluation_starts_one_and_ends_it(repro, tmp_path):
    suite = ("--benchmarks", "pocket-gsm8k", "--limit", "6", "--max-tokens", "30", "--json")
    served = ("--engine", "server", "--serve", SERVE, "--out", tmp_path / "there")
    found = [repro("eval", "pocket-instruct", *suite, *more) for more in ((), served)]
    assert [one.exit_code for one in found] == [0, 0], found[1].output
    assert json.loads(found[0].stdout) == json.loads(found[1].stdout)
    gc.collect()
    assert not servers()


def test_it_ends_with_who_holds_it():
    """A server of any program: this one is up at once."""
    words = (sys.executable, faulty_server.__file__, "serve", "{port}", "{model}")
    command = " ".join(map(shlex.quote, words))
    sampler = StartedSampler(command, locate("pocket-instruct"), load_tokenizer("pocket-instruct"))
    (one,) = sampler(["What is 12 + 7?"], Decoding(max_tokens=5))
    assert one[0].text.startswith("sistant: |")
    assert servers()
    del sampler
    gc.collect()
    assert not servers()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("no-such-program {model} {port}", "no-such-program cannot be started .*: install it"),
        (
            f"{shlex.quote(sys.executable)} -c {shlex.quote(FAILING)}",
            r"ended with 1: no GPU: policy \d+; its log is ",
        ),
    ],
)
def test_one_that_does_not_come_up_says_why(command, message):
    with pytest.raises(EngineError, match=message):
        StartedServer(command, "policy")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("eval_server=serve {model} {port}",), "no server is started; .* eval_engine=server"),
        (("eval_engine=server", "eval_server=serve {model}"), r"lacks {port}"),
        (("eval_engine=server", "eval_server=serve {model} {prt}"), "a value for 'prt'"),
        (("eval_engine=server", "eval_server='serve {model} {port}"), "No closing quotation"),
        (("eval_engine=server", "eval_tensor_parallel=2"), "a server takes it in its command"),
    ],
)
def test_what_cannot_start_one_is_refused_before_anything_runs(arguments, message):
    with pytest.raises(ReproError, match=message):
        make_plan(resolve(PAPER, arguments=arguments), 0)


def test_without_a_command_it_is_vllm_and_the_plan_says_so():
    plan = make_plan(resolve(PAPER, arguments=("eval_engine=server",)), 0)
    assert plan.scored_by == {"engine": "server", "started by": VLLM_SERVE}
    for settings in ({"dtype": "bfloat16"}, {"batch_size": 3}, {"device": "cpu"}):
        with pytest.raises(BadValue, match=next(iter(settings))):
            Loading(engine="server", **settings)
    with pytest.raises(BadValue, match="no server is started"):
        Loading(serve="serve {model} {port}")
