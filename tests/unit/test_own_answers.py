"""Quantities of a policy's own answers: by hand, and of a policy held against itself."""

import math
from dataclasses import replace

import pytest
import torch

from core.claims import START, Claim, final, probability
from core.families.table import ROWS
from core.forward.own_answers import OWN_ANSWERS, AnswerStatistics, answer_statistics
from core.paper import Paper
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.record import measure
from core.verdicts.unmeasured import lacking
from eval.errors import BadValue
from papers.dr_grpo import PAPER


def said(logps, entropy):
    return AnswerStatistics(
        torch.tensor(logps, dtype=torch.float64), torch.tensor(entropy).double()
    )


OWN = [said([-1.0, -2.0], [0.9, 0.1]), said([-0.5, -0.5, -1.0], [0.0, 0.0, 0.6])]
OWN += [said([-1.0] * 5, [0.2, 0.1, 0.1, 0.0, 0.0])]
BEGUN = [said([-1.5, -2.5], [0.1, 0.8]), said([-0.5, -1.0, -0.5], [0.0, 0.0, 0.9])]
BEGUN += [said([-1.0] * 5, [0.0] * 5)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kl_to_start", (0.5 + 0.5 + 0.0 + 0.5 - 0.5) / 10),
        ("answer_tokens", (2 + 3 + 5) / 3),
        # Two of ten tokens are the top fifth: 0.9 and 0.6 of 2.0 nats; the start's are 0.8 and 0.9.
        ("entropy/share_of_top_fifth", 1.5 / 2.0),
        ("entropy/overlap_of_top_fifth", 1 / 2),
    ],
)
def test_quantities_by_hand(name, expected):
    assert OWN_ANSWERS[name](OWN, BEGUN).value == pytest.approx(expected)


def test_a_policy_that_is_its_start_diverges_by_nothing_and_is_uncertain_where_it_was():
    assert OWN_ANSWERS["kl_to_start"](OWN, OWN).value == 0.0
    overlap = OWN_ANSWERS["entropy/overlap_of_top_fifth"](OWN, OWN)
    assert (overlap.value, overlap.low, overlap.high) == (1.0, 1.0, 1.0)


def test_what_a_model_says_of_answers_is_its_softmax(tiny_llama):
    prompts, answers = [[5, 6, 7], [8]], [[9, 10], [11, 12, 13, 14]]
    found = answer_statistics(tiny_llama.eval(), prompts, answers, pad=0)
    for prompt, answer, one in zip(prompts, answers, found, strict=True):
        logits = tiny_llama(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
        logps = logits.double().log_softmax(-1)
        expected = logps.gather(-1, torch.tensor(answer).unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(one.logps, expected, atol=1e-5, rtol=0)
        entropy = -(logps.exp() * logps).sum(-1)
        torch.testing.assert_close(one.entropy, entropy, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", [one for one in ROWS if one.own_answers], ids=lambda f: f.name)
def test_families_declare_quantities_that_there_are(family):
    assert set(family.own_answers) <= OWN_ANSWERS.keys()


def asking(*claims: Claim) -> Paper:
    profile = {"max_steps": 1, "heldout_problems": 4, "benchmarks": (), "max_completion_length": 8}
    arms = {"dr-grpo": {}, "grpo": {"scale_rewards": "group"}}
    return replace(PAPER, slug="asking", claims=claims, arms=arms, profiles={"cpu": profile})


def test_they_are_computed_of_the_arms_that_claims_read_and_of_no_others():
    less = probability("kl_to_start").of("dr-grpo") < 1.0
    asked = asking(Claim("less", "Less.", less))
    assert [s.subject for s in Chain(resolve(asked, arm="dr-grpo")).probabilities] == [
        "kl_to_start"
    ] * 2
    assert not Chain(resolve(asked, arm="grpo")).probabilities
    assert not Chain(resolve(asking())).probabilities


def test_a_short_run_measures_its_start_as_no_distance_from_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    near = probability("kl_to_start").of("dr-grpo") < probability("kl_to_start").of(START)
    skewed = probability("entropy/share_of_top_fifth").of(START) > 0.5
    other = probability("kl_to_start/pocket-mgsm-zh").of("dr-grpo") < 0.5
    tests = {"near": near, "skewed": skewed, "other": other}
    chain = Chain(resolve(asking(*(Claim(name, ".", test) for name, test in tests.items()))))
    for stage in chain.training:
        stage.run()
    found = measure(chain)
    drifts = {"kl_to_start", "kl_to_start/pocket-mgsm-zh"}
    assert found.keys() == {*drifts, "entropy/share_of_top_fifth"}
    for name in drifts:
        assert found[name]["before"] == 0.0
        assert 0.0 < abs(found[name]["after"]) < 0.5
    assert len({found[name]["after"] for name in drifts}) == 2  # of other problems
    assert 0.2 < found["entropy/share_of_top_fifth"]["before"] <= 1.0
    assert all(math.isfinite(one["after"]) and one["n"] == 4 for one in found.values())


def test_the_divergence_along_a_training_is_nothing_first_and_at_the_end_that_of_its_policy(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    asked = asking(Claim("less", "Less.", probability("kl_to_start").of("dr-grpo") < 1.0))
    settings = ("heldout_kl=true", "heldout_every=1", "max_steps=2", "learning_rate=1e-3")
    settings += ("logging_steps=2",)  # the steps between are logged, too
    chain = Chain(resolve(asked, arguments=settings))
    for stage in chain.training:
        stage.run()
    curve = chain.train.run()["curves"]["held_out/kl_to_start"]
    assert curve[0] == [0, 0.0]
    assert [step for step, _ in curve] == [0, 1, 2]
    assert curve[-1][1] == pytest.approx(measure(chain)["kl_to_start"]["after"], abs=1e-6)
    assert curve[-1][1] != 0


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            ("heldout_kl=true", "heldout_problems=0"),
            "heldout_kl is set and heldout_problems is not",
        ),
        (("heldout_kl=maybe",), "heldout_kl"),
    ],
)
def test_a_divergence_of_no_problems_is_refused(settings, told):
    with pytest.raises(BadValue, match=told):
        resolve(PAPER, arguments=settings)


def test_a_claim_of_a_divergence_that_is_not_logged_says_what_it_lacks():
    drift = final("held_out/kl_to_start").of("dr-grpo") < 1.0
    found = lacking(Claim("near", "Near.", drift), resolve(PAPER).run, ())
    assert found == ["the divergence from the start is not logged (heldout_kl=false)"]
