"""Running a benchmark and scoring its samples: denominators, metrics, and what a score carries."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from eval.errors import BadValue
from eval.grading import GRADER_VERSION
from eval.samples.evaluation import Completion, Decoding, Sample, curve, run_benchmark, score
from eval.sets.benchmarks import find_benchmark
from eval.stats.estimates import wilson
from eval.stats.voting import Ballots

POCKET = find_benchmark("pocket-gsm8k")
PROBLEMS = POCKET.load()


class Answers:
    """A sampler that gives each problem's right answer to the first `right` problems."""

    def __init__(self, right: int, extra: int = 0):
        self.known = {POCKET.prompt(p): p.answer for p in PROBLEMS[:right]}
        self.extra = extra

    def __call__(
        self, prompts: Sequence[str], decoding: Decoding
    ) -> Sequence[Sequence[Completion]]:
        return [
            [
                Completion(rf"\boxed{{{self.known.get(p, -1)}}}", 4, p not in self.known)
                for _ in range(decoding.samples + self.extra)
            ]
            for p in prompts
        ]


def test_greedy_accuracy_over_the_whole_test_set():
    samples = run_benchmark(Answers(300), POCKET, decoding=Decoding())
    [found] = score(samples, POCKET, seed=7)
    low, high = wilson(300, POCKET.n)
    assert (found.value, found.low, found.high) == pytest.approx(
        (100 * 300 / POCKET.n, 100 * low, 100 * high)
    )
    assert (found.n, found.samples, found.limited) == (POCKET.n, 1, False)
    assert (found.metric, found.method, found.seed) == ("top1", "wilson", 7)
    assert (found.mode, found.grader, found.benchmark) == ("cot", GRADER_VERSION, "pocket-gsm8k")
    assert found.truncated == pytest.approx(100 * (POCKET.n - 300) / POCKET.n)
    assert found.unanswered == found.undecided == 0


def test_fewer_problems_than_the_test_set_are_marked():
    samples = run_benchmark(Answers(3), POCKET, limit=5, decoding=Decoding())
    assert [s.id for s in samples] == [p.id for p in PROBLEMS[:5]]
    [found] = score(samples, POCKET)
    assert (found.n, found.limited, found.value) == (5, True, 60)


def graded(rows: dict[str, list[str | None]], right: str = "1") -> list[Sample]:
    """Samples with these extracted answers."""
    return [
        Sample(
            benchmark=POCKET.name,
            id=key,
            sample=k,
            output="",
            tokens=1,
            truncated=False,
            extracted=answer,
            correct=None if answer == "?" else answer == right,
            rule="boxed",
            reason="",
        )
        for key, row in rows.items()
        for k, answer in enumerate(row)
    ]


ROWS: dict[str, list[str | None]] = {
    "a": ["1", "1", "2", "3"],  # the vote is right
    "b": ["1", "2", "2.0", None],  # the vote is wrong: 2 and 2.0 are one answer
    "c": ["1", "2", None, None],  # a tie, half
    "d": [None, None, None, None],
    "e": ["2", "?", "?", "?"],
}


def test_metrics_by_hand():
    samples = graded(ROWS)
    found = {s.metric: s for s in score(samples, POCKET, ["avg@4", "maj@4", "pass@4", "pass@2"])}
    assert found["avg@4"].value == pytest.approx(100 * (0.5 + 0.25 + 0.25) / 5)
    assert found["maj@4"].value == pytest.approx(100 * (1 + 0 + 0.5) / 5)
    assert found["pass@4"].value == pytest.approx(100 * 3 / 5)
    assert found["pass@2"].value == pytest.approx(100 * (5 / 6 + 1 / 2 + 1 / 2) / 5)
    assert found["avg@4"].unanswered == pytest.approx(100 * 7 / 20)
    assert found["avg@4"].undecided == pytest.approx(100 * 3 / 20)
    for one in found.values():
        assert 0 <= one.low <= one.value <= one.high <= 100
        assert one.low <= one.low90 <= one.high90 <= one.high


def test_what_stands_beside_a_score():
    samples = graded(ROWS)
    cut = [replace(samples[0], truncated=True), *samples[1:]]
    lost = [replace(s, rule="timeout") if s.correct is None else s for s in cut]
    [found] = score(lost, POCKET, ["avg@4"])
    assert (found.truncated, found.timeouts) == (100 / 20, 3)
    means = [0.5, 0.25, 0.25, 0, 0]
    within = float(np.mean([4 / 3 * m * (1 - m) for m in means]))
    assert found.sample_variance == pytest.approx(within)
    assert found.question_variance == pytest.approx(max(0, np.var(means, ddof=1) - within / 4))
    [unknown] = score([replace(cut[0], truncated=None), *cut[1:]], POCKET, ["avg@4"])
    assert unknown.truncated is None
    [single] = score([s for s in samples if s.sample == 0], POCKET)
    assert single.question_variance is single.sample_variance is None


def test_the_first_k_samples_vote_in_the_order_of_drawing():
    samples = graded({"a": ["1", "2", "2", "1"], "b": ["2", "1", "1", "2"]})
    for shuffled in (samples, samples[::-1]):
        found = {s.metric: s for s in score(shuffled, POCKET, ["maj-first@4", "maj-first@3"])}
        assert found["maj-first@4"].value == 50
        assert found["maj-first@3"].value == 50
        assert found["maj-first@4"].method == "clopper-pearson"


def test_the_share_of_different_right_answers_is_their_expected_number_among_k():
    samples = graded({"a": ["1", "1", "1", "1"], "b": ["1", "2", "2", "2"]})
    answers = {("a", 3): "2", ("b", 0): "3"}
    right = [
        replace(s, correct=True, extracted=answers.get((s.id, s.sample), s.extracted))
        for s in samples
    ]
    found = {s.metric: s.value for s in score(right, POCKET, [f"distinct@{k}" for k in (1, 2, 4)])}
    # Of two of four samples, one of which differs from the others, 1.5 are different on average.
    assert found == pytest.approx({"distinct@1": 100, "distinct@2": 75, "distinct@4": 50})
    wrong = [replace(s, correct=False) if s.id == "b" else s for s in right]
    assert score(wrong, POCKET, ["distinct@4"])[0].value == pytest.approx(25)


def test_curves_start_at_the_mean_and_pass_never_falls():
    found = curve(graded(ROWS), [1, 2, 4])
    assert found["k"] == [1, 2, 4]
    assert found["maj"][0] == pytest.approx(found["pass"][0]) == pytest.approx(20)
    assert found["pass"] == sorted(found["pass"])
    intervals = {"maj", "maj_low", "maj_high", "pass", "pass_low", "pass_high"}
    assert set(found) == {"k", "distinct", *intervals}


def test_different_right_answers_are_counted_in_every_draw_of_k():
    right = [[*"ab a"], [*"cccc"], [*" xx "]]  # a space is a wrong answer
    samples = [
        Sample(
            benchmark="pocket-gsm8k", id=str(problem), sample=number, output=text, tokens=1,
            truncated=False, extracted=text, correct=text != " ", rule="", reason="",
        )
        for problem, row in enumerate(right)
        for number, text in enumerate(row)
    ]  # fmt: skip
    for k, found in zip((1, 2, 3, 4), curve(samples, [1, 2, 3, 4])["distinct"], strict=True):
        draws = [[len({*few} - {" "}) for few in combinations(row, k)] for row in right]
        assert found == pytest.approx(np.mean([np.mean(row) for row in draws]))
    assert curve(samples, [4])["distinct"] == [(2 + 1 + 1) / 3]


def test_the_order_of_samples_does_not_matter():
    samples = graded(ROWS)
    metrics = ["avg@4", "maj@2", "pass@3"]
    values = [s.value for s in score(samples, POCKET, metrics)]
    assert [s.value for s in score(samples[::-1], POCKET, metrics)] == pytest.approx(values)


@pytest.mark.parametrize(
    "metric",
    ["top1", "avg@3", "maj@5", "maj-first@5", "pass@5", "distinct@5", "best@4", "maj@0"],
)
def test_metrics_that_the_samples_cannot_give_are_refused(metric: str):
    with pytest.raises(BadValue, match=metric):
        score(graded(ROWS), POCKET, [metric])


def test_gaps_doubles_and_strangers_are_refused():
    samples = graded(ROWS)
    for damaged in (samples[:-1], [*samples, samples[0]]):
        with pytest.raises(BadValue, match=r"has the numbers \["):
            score(damaged, POCKET, ["pass@1"])
    with pytest.raises(BadValue, match="no samples of pocket-gsm8k"):
        score([], POCKET)
    with pytest.raises(BadValue, match="is of gsm8k, expected pocket-gsm8k"):
        score([replace(samples[0], benchmark="gsm8k")], POCKET)


def test_a_sampler_that_returns_too_many_is_refused():
    with pytest.raises(BadValue, match=r"\[2\] completions for 2 prompts x 1 samples"):
        run_benchmark(Answers(1, extra=1), POCKET, limit=2, decoding=Decoding())


@pytest.mark.parametrize(
    "arguments",
    [{"samples": 2}, {"samples": 0}, {"temperature": -1.0}, {"top_p": 0.0}, {"max_tokens": 0}],
)
def test_decoding_that_makes_no_sense_is_refused(arguments: dict):
    with pytest.raises(BadValue, match=next(iter(arguments))):
        Decoding(**arguments)


def test_wrong_answers_are_equal_as_texts_where_whole_outputs_count():
    """As numbers 02 and 2 are equal: their group of two would tie with the right answers."""
    texts = ["02", "2", "35", "35", "7"]
    for rule, right in (("whole output", 1.0), ("boxed", 0.5)):
        row = [
            Sample(
                benchmark="pocket-gsm8k", id="a", sample=number, output=text, tokens=1,
                truncated=False, extracted=text, correct=text == "35", rule=rule, reason="",
            )
            for number, text in enumerate(texts)
        ]  # fmt: skip
        assert Ballots([row]).expected_votes(5, seed=0) == [right]
