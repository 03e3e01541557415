"""The stress test lets a sound verifier pass and finds each way to be paid for nothing."""

import re
from dataclasses import dataclass

import pytest

from core.rewards import Accuracy
from core.rewards.verifiers import check_rewards, verifier_of
from eval.errors import BadValue
from eval.grading.stress import EXPECTED, stress
from eval.pocket.suites import SUITES
from eval.sets.benchmarks import find_benchmark
from eval.sets.prompts import with_request


@dataclass(frozen=True)
class Generous(Accuracy):
    """Pays for a box, whatever is in it."""

    def __call__(self, *, completions, **_):
        return [self.right if "boxed" in text else self.wrong for text in completions]


POCKET = find_benchmark("pocket-gsm8k").load()[:20]


def failures(judge) -> set[str]:
    """The trials that a verifier of one output and answer fails."""

    def verifier(outputs, answers, languages):
        del languages
        return [judge(o, a) for o, a in zip(outputs, answers, strict=True)]

    return {trial.name for trial in stress(verifier, POCKET) if not trial.passed}


@pytest.mark.parametrize("name", SUITES)
@pytest.mark.parametrize("reward", [Accuracy(), Accuracy(right=0.5, wrong=-1.0)])
def test_the_accuracy_reward_passes(name, reward):
    trials = stress(verifier_of(reward), find_benchmark(name).load()[::50])
    assert [t.name for t in trials] == list(EXPECTED)
    assert [t.name for t in trials if not t.passed] == []
    assert all(t.tried == 20 and t.undecided == 0 for t in trials)


def test_each_weakness_is_found():
    def holds(output, answer):
        return re.search(rf"(?<!\d){answer}(?!\d)", output) is not None

    assert failures(holds) == {
        "all options in a box",
        "a box for each option",
        "gold quoted from the question",
        "box inside a failed attempt",
        "box taken back",
    }
    assert "empty answer" in failures(lambda output, _: not output)
    assert "garbage" in failures(lambda output, _: "matrix" in output)
    assert "a very long number" in failures(lambda output, _: "9" * 999 in output)
    assert failures(lambda *_: True) == {name for name, must in EXPECTED.items() if must is False}
    assert failures(lambda *_: False) == {"gold"}


def test_no_verdict_is_counted_and_is_neither_right_nor_paid():
    trials = {t.name: t for t in stress(lambda outputs, *_: [None] * len(outputs), POCKET)}
    assert all(t.undecided == t.tried == 20 and t.accepted == 0 for t in trials.values())
    assert {name for name, t in trials.items() if not t.passed} == {"gold"}


def test_prompts_that_ask_for_no_box_are_told_of():
    bare = [{"id": p.id, "prompt": p.question, "answer": p.answer} for p in POCKET]
    assert "no prompt tried asks for a boxed answer" in check_rewards([Accuracy()], bare)


def test_training_stops_at_a_reward_that_pays_for_nothing():
    rows = [{"id": p.id, "prompt": with_request(p.question), "answer": p.answer} for p in POCKET]
    assert check_rewards([Accuracy()], rows).endswith("answers tried as they must be, 0 undecided")
    assert check_rewards([len], rows) == ""
    with pytest.raises(BadValue, match=r"Generous\(.*\) fails its stress test: empty box \(5 of 5"):
        check_rewards([Generous()], rows)
