"""The benchmark of a GPU, run on a CPU with a tiny shape: tokens, shares of limits, chart, page."""

import gc
from dataclasses import asdict, replace
from time import perf_counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import Qwen2ForCausalLM

from core.bench.cards import CARDS, Card, sampling_bytes, sampling_flops, training_flops
from core.bench.gpu import (
    LOADS,
    OURS,
    Load,
    bench_load,
    random_qwen,
    share,
    shares,
    step_rates,
    theirs,
)
from core.bench.measure import Measure
from core.bench.table import BENCHES, runnable
from core.families.family import Work
from core.models.shapes import Shape
from core.pages.render import render_all
from core.pages.speed_chart import chart
from core.records.record import new_record, write_record
from core.settings.memory import activations, kv_cache
from core.trainers.grpo import GRPOTrainer

pytestmark = pytest.mark.filterwarnings(  # TRL reads it
    "ignore:`is_gradient_checkpointing` is deprecated"
)
CPU = torch.device("cpu")
TINY = Shape(
    layers=2,
    hidden=32,
    intermediate=48,
    heads=4,
    kv_heads=2,
    head=8,
    vocabulary=96,
    tied=True,
    qkv_bias=True,
)
LOAD = Load(
    name="tiny",
    shape=TINY,
    prompts=2,
    group=4,
    prompt=6,
    length=5,
    micro_batch=4,
    optimizer="sgd",
    at_least=3.0,
)
CARD = Card(bandwidth=2.0**30, flops=2.0**40)
RATE = Measure(name="tiny rollout", unit="tokens/s", ours=64.0, theirs=16.0, peer="TRL")


@pytest.mark.parametrize("shape", [TINY, replace(TINY, tied=False)])
def test_the_counted_parameters_are_those_of_the_model(shape):
    model = random_qwen(shape, 96, CPU, torch.bfloat16)
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert shape.parameters == model.num_parameters()
    looked_up = 0 if shape.tied else model.get_input_embeddings().weight.numel()
    assert shape.multiplying_parameters == model.num_parameters() - looked_up


def test_the_loads_have_the_size_of_their_name_and_fit_into_the_memory_of_a_gpu():
    for load, (billions, state) in zip(LOADS, ((0.494, 8), (7.616, 4)), strict=True):
        shape = load.shape
        assert shape.parameters / 1e9 == pytest.approx(billions, abs=0.0005)
        assert load.completions % load.micro_batch == 0
        work = Work(
            micro_batch=load.micro_batch,
            prompts=load.micro_batch,
            rows=load.completions,
            prompt=load.prompt,
            completion=load.length,
            bf16=True,
            checkpointing=False,
            reference=False,
        )
        states = state * shape.parameters  # bytes: weights, gradients and moments of 16 bits
        kept = max(activations(shape, work, "fsdp2"), kv_cache(shape, work, width=2))
        assert states + kept < 0.9 * 80e9


def test_weights_are_the_same_every_time():
    one, other = (random_qwen(TINY, 96, CPU, torch.float32).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_bytes_of_sampling_are_those_counted_by_hand():
    # one prompt of 3 tokens, 2 completions of 4: weights 4 times, the prompt's keys and values in
    # the last 3 passes, and 0, 1 and 2 earlier tokens of each completion
    kept = 2 * 2 * 2 * 8  # keys and values, layers, heads, their size
    numbers = 4 * TINY.parameters + kept * (3 * 3 + 2 * (0 + 1 + 2))
    found = sampling_bytes(TINY, prompts=1, group=2, prompt=3, length=4, itemsize=2)
    assert found == 2 * numbers
    alone = sampling_bytes(TINY, prompts=2, group=1, prompt=3, length=4, itemsize=2)
    assert alone - found == 2 * kept * 3 * 3  # the second copy of the prompt


def test_operations_are_two_and_six_of_each_parameter():
    n = 96 * 32 + 2 * (2 * 32 * 32 + 2 * 32 * 16 + 32 + 2 * 16 + 3 * 32 * 48 + 2 * 32) + 32
    assert (sampling_flops(TINY), training_flops(TINY)) == (2 * n, 6 * n)
    assert training_flops(replace(TINY, tied=False)) == 6 * n  # the head, and no embedding


@given(needs=st.integers(1, 2**20), halvings=st.integers(0, 8))
def test_a_share_is_what_the_rate_needs_over_the_limit_and_halves_with_it(needs, halvings):
    slow = replace(RATE, ours=RATE.ours / 2**halvings)
    found = share(slow, "of bandwidth", needs, 2.0**30)
    assert found.ours == 64 * needs / 2**30 / 2**halvings
    assert found.theirs == 16 * needs / 2**30
    assert (found.unit, found.name) == ("share", "tiny rollout, of bandwidth")
    assert (found.ratio, found.met) == (None, None)


def test_of_rates_more_is_better():
    assert RATE.ratio == 4.0
    assert replace(RATE, at_least=4.0).met
    assert not replace(RATE, at_least=4.1).met


def test_limits_of_cards_are_of_dense_operations():
    assert all(1e12 < card.bandwidth < 1e13 for card in CARDS.values())
    assert all(3e14 < card.flops < 1e15 for card in CARDS.values())  # sparse ones are above


@pytest.fixture(scope="module")
def found():
    return bench_load(LOAD, CPU, torch.bfloat16, CARD, rounds=1)


def test_both_sides_are_measured_and_their_shares_follow_from_the_rates(found):
    rollout, training, _, *of_limits = found
    assert [one.name for one in found] == [
        "tiny rollout",
        "tiny training",
        "tiny step",
        "tiny rollout, of bandwidth",
        "tiny rollout, of arithmetic",
        "tiny training, of arithmetic",
    ]
    assert [one.at_least for one in found] == [3.0, None, 3.0, None, None, None]
    for rates in ([one.ours for one in found], [one.theirs for one in found]):
        assert min(rates) > 0
        assert 40 / rates[0] + 40 / rates[1] == pytest.approx(rates[2])  # 2 x 4 x 5 tokens
    read = sampling_bytes(TINY, prompts=2, group=4, prompt=6, length=5, itemsize=2) / 40
    needs = (read / 2**30, 2 * TINY.parameters / 2**40, 6 * TINY.parameters / 2**40)
    for rate, one, need in zip((rollout, rollout, training), of_limits, needs, strict=True):
        assert one.ours == pytest.approx(rate.ours * need, rel=1e-12)
        assert one.theirs == pytest.approx(rate.theirs * need, rel=1e-12)


def models():
    """How many models there are, garbage included."""
    return sum(type(one) is Qwen2ForCausalLM for one in gc.get_objects())


@pytest.mark.usefixtures("found")
def test_the_model_of_a_step_is_gone_before_the_next_one_is_made():
    gc.collect()
    assert models() == 0  # neither side keeps one
    seen = []

    class Counting(GRPOTrainer):
        def __init__(self, **given):
            seen.append(models())
            super().__init__(**given)

    gc.disable()
    try:
        for _ in range(2):
            step_rates(replace(OURS, trainer=Counting), LOAD, CPU, torch.float32)
    finally:
        gc.enable()
    assert seen == [1, 1]


def test_there_are_no_shares_of_a_card_without_known_limits():
    assert shares(LOAD, CARDS.get("NVIDIA X1"), torch.bfloat16, RATE, RATE) == []
    assert len(shares(LOAD, CARDS["NVIDIA H200"], torch.bfloat16, RATE, RATE)) == 3


def test_other_completions_than_those_of_the_load_are_an_error():
    class Short(GRPOTrainer):
        def generate(self, prompts):
            generated = super().generate(prompts)
            return replace(generated, completion_ids=[row[1:] for row in generated.completion_ids])

    with pytest.raises(RuntimeError, match="16 x 5 tokens expected, found"):
        step_rates(replace(OURS, trainer=Short), LOAD, CPU, torch.float32)


@pytest.mark.parametrize(
    ("side", "scoring"), [(lambda: OURS, "score"), (theirs, "_calculate_rewards")]
)
def test_only_the_sampling_of_a_step_counts_as_rollout(side, scoring):
    trainer = side().trainer
    score = getattr(trainer, scoring)
    slow = type("Slow", (trainer,), {scoring: lambda *given: busy(0.4) or score(*given)})
    rates = step_rates(replace(side(), trainer=slow), LOAD, CPU, torch.float32)
    assert 40 / rates["training"] > 0.4
    assert 40 / rates["rollout"] + 0.4 < rates["step"]


def busy(seconds):
    end = perf_counter() + seconds
    while perf_counter() < end:
        pass


def rows(found):
    return [{"bench": "gpu", **asdict(one), "ratio": one.ratio, "met": one.met} for one in found]


def test_the_chart_has_ratios_of_the_rates_and_shares_apart(found):
    drawn = chart(rows([replace(found[0], ours=12345.0, theirs=1234.5), *found[3:]])).decode()
    assert ">10.00x: 12345 against 1234 tokens/s</text>" in drawn
    assert ">gpu (share)</text>" in drawn
    assert ">gpu: tiny rollout, of bandwidth</text>" in drawn


def test_the_page_says_that_nothing_was_measured_until_it_is(found, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    page = tmp_path / "runs" / "reports" / "speed.md"
    content = {"paper": "bench", "scale": "cpu", "machine": "m"}
    alone = {**rows([replace(RATE, unit="s")])[0], "bench": "step"}
    write_record(new_record("bench", **content, measures=[alone], created="2026-01-01"))
    render_all()
    assert "The workload `gpu` has not been run on a GPU yet" in page.read_text()
    write_record(new_record("bench", **content, measures=rows(found), created="2026-01-02"))
    render_all()
    text = page.read_text()
    assert "not been run" not in text
    assert all(f"| gpu | {one.name} " in " ".join(text.split()) for one in found)


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
def test_without_a_gpu_all_else_is_measured_and_one_line_says_what_is_not(capsys):
    assert [*runnable(), "gpu"] == list(BENCHES)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("not measured: ")
    assert "gpu: found no CUDA device" in line
