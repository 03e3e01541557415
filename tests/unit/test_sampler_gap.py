"""How far a sampler is from what is trained: by hand, of equal ones, and of a short run."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from core.claims import START, Claim, probability
from core.families.table import ROWS
from core.forward.sampler_gap import SAMPLER_GAPS, AnswerLogps, trained_logps
from core.paper import Paper
from core.rollout.engine import Sampling, in_order
from core.rollout.native.native import NativeEngine
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.record import measure
from papers.dr_grpo import PAPER


def told(sampled, trained):
    return AnswerLogps(*(torch.tensor(column).double().log() for column in (sampled, trained)))


ANSWERS = [
    told([0.5, 0.9, 0.8], [0.4, 0.9, 0.9]),
    told([0.9, 0.9], [0.8, 0.9]),
    told([0.6], [0.9]),
    told([0.02, 0.9, 0.7, 0.8], [0.04, 0.9, 0.7, 0.8]),
]
GAPS = [math.log(5 / 4), math.log(9 / 8), math.log(9 / 8), math.log(3 / 2), math.log(2)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sampler_difference/head_float32", sum(GAPS) / 10),
        ("sampler_difference/head_bfloat16", sum(GAPS) / 10),
        # One of ten tokens is the tenth that is least likely: 0.02.
        ("sampler_difference/unlikely_tokens", math.log(2)),
        ("sampler_difference/likely_tokens", sum(GAPS[:-1]) / 9),
        ("largest_sampler_difference/long_answers", (0.1 + 0.02) / 2),
        ("largest_sampler_difference/short_answers", (0.1 + 0.3) / 2),
    ],
)
def test_differences_by_hand(name, expected):
    assert SAMPLER_GAPS[name][1](ANSWERS).value == pytest.approx(expected)


@pytest.mark.parametrize("head", ["float32", "bfloat16"])
def test_the_correlation_is_that_of_all_probabilities(head):
    found = SAMPLER_GAPS[f"sampler_correlation/head_{head}"][1](ANSWERS)
    q, p = (np.concatenate([one[side].exp() for one in ANSWERS]) for side in (0, 1))
    assert found.value == pytest.approx(np.corrcoef(q, p)[0, 1], rel=1e-9)
    left = []
    for out in range(4):
        rest = [one for place, one in enumerate(ANSWERS) if place != out]
        q, p = (np.concatenate([one[side].exp() for one in rest]) for side in (0, 1))
        left.append(np.corrcoef(q, p)[0, 1])
    half = 1.959964 * math.sqrt(3 * np.var(left))
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))


def test_the_middle_one_of_an_odd_number_is_long_and_short():
    odd, even = ANSWERS[:3], [ANSWERS[1], ANSWERS[0]]
    long, short = (
        SAMPLER_GAPS[f"largest_sampler_difference/{which}_answers"][1]
        for which in ("long", "short")
    )
    assert long(odd).value == pytest.approx(long([*even]).value + short(even).value - 0.1)
    assert short(odd).value == pytest.approx((0.1 + 0.3) / 2)
    assert long(ANSWERS[:1]) == short(ANSWERS[:1])


@pytest.mark.parametrize("name", SAMPLER_GAPS)
def test_a_sampler_that_is_what_is_trained_differs_by_nothing(name):
    same = [AnswerLogps(one.sampled, one.sampled) for one in ANSWERS]
    expected = 1.0 if "correlation" in name else 0.0
    assert SAMPLER_GAPS[name][1](same).value == pytest.approx(expected, abs=1e-12)


def test_in_one_arithmetic_training_says_of_a_token_what_the_engine_said(tiny_llama):
    prompts, sampling = [[5, 6, 7], [8], [9, 4]], Sampling(max_tokens=9, ends=frozenset({1}))
    found = in_order(NativeEngine(tiny_llama.eval()).sample(prompts, sampling, [1, 2, 3]), 3)
    trained = trained_logps(tiny_llama, prompts, [one.tokens for one in found], pad=0)
    for one, logps in zip(found, trained, strict=True):
        assert logps.tolist() == pytest.approx(one.logps, abs=1e-5)


@pytest.mark.parametrize("family", [f for f in ROWS if f.sampler_gaps], ids=lambda f: f.name)
def test_families_declare_all_of_them(family):
    assert set(family.sampler_gaps) == SAMPLER_GAPS.keys()


def asking(names, **settings) -> Paper:
    sides = [probability(name).of(START) for name in names]
    claims = tuple(Claim(f"claim-{n}", ".", side > 0.0) for n, side in enumerate(sides))
    profile = {"max_steps": 1, "heldout_problems": 6, "benchmarks": (), "max_completion_length": 24}
    arms = {"dr-grpo": settings, "grpo": {"scale_rewards": "group"} | settings}
    return replace(PAPER, slug="asking", claims=claims, arms=arms, profiles={"cpu": profile})


def found_at_the_start(names, **settings):
    chain = Chain(resolve(asking(names, **settings)))
    for stage in chain.training:
        stage.run()
    return {name: one["before"] for name, one in measure(chain).items()}


def test_a_short_run_measures_its_heads_and_its_rounded_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    found = found_at_the_start(SAMPLER_GAPS, rollout_bits=4)
    assert found.keys() == SAMPLER_GAPS.keys()
    rounded = [value for name, value in found.items() if "tokens" in name or "answers" in name]
    heads = [value for name, value in found.items() if name.startswith("sampler_difference/head")]
    assert min(rounded) > 10 * 1e-6
    assert 0.0 < max(heads) < 0.05
    whole = found_at_the_start([name for name in SAMPLER_GAPS if "answers" in name])
    assert max(whole.values()) < 1e-5 < min(rounded)


def test_they_are_computed_where_a_claim_asks_alone():
    assert not Chain(resolve(asking(()))).quantity_pairs
