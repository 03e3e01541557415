"""The error of test problems that all seeds share, against what is known by hand."""

from itertools import count
from random import Random

import pytest

from core.claims import START, at_step, final, gain_at_k, late, score
from core.records.places import results
from core.records.run_samples import write_run_samples
from core.verdicts.shared_problems import shared_variance
from eval.samples.store import Sample, digest_of

N, SLUG, NAME = 600, "a-paper", "gsm8k"
CURVE = "held_out/accuracy"
MADE, NUMBERS = {}, count()  # samples by digest; the records that are made


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


def stored(right, k=1):
    """Make samples in which each problem has so many right answers of k; return their digest."""
    rows = [
        Sample(
            benchmark="pocket-gsm8k",
            id=f"p{i:04}",
            sample=j,
            output="",
            tokens=1,
            truncated=False,
            extracted="1" if j < wanted else None,
            correct=j < wanted,
            rule="boxed",
            reason="",
        )
        for i, wanted in enumerate(right)
        for j in range(k)
    ]
    digest = digest_of(rows)
    MADE[digest] = rows
    return digest


def run(digest, right, start, **more):
    """A record of a run, from what is right of each problem before and after."""
    fields = {"benchmark": "pocket-gsm8k", "mode": "cot", "mirrors": NAME, "metric": "top1", **more}

    def row(values):
        return {**fields, "value": 100 * sum(values) / len(values), "digest": stored(values)}

    return written(
        {
            "digest": f"{digest}{next(NUMBERS)}",
            "paper": SLUG,
            "start_scores": [row(start)],
            "scores": [row(right)],
            "train": {},
            "curves": {},
            "sampling": {},
        }
    )


def written(record):
    """Store the samples of a record; return it."""
    write_run_samples(record, MADE.__getitem__, results())
    return record


def drawn(random, share, n=N):
    return [int(random.random() < share) for _ in range(n)]


def of_arms(left, right, start, **more):
    return {"a": run("a", left, start, **more), "b": run("b", right, start, **more)}


A_OVER_B = score(NAME).of("a") > score(NAME).of("b")


def test_it_is_the_variance_of_the_problems_mean_difference():
    """Of a binomial with two sides: p (1 - p) / n each; a block jackknife knows it to a third."""
    random = Random(0)
    found = []
    for _ in range(8):
        case = of_arms(drawn(random, 0.5), drawn(random, 0.5), drawn(random, 0.5))
        found.append(shared_variance(A_OVER_B, [case, case]))
    assert sum(found) / len(found) == pytest.approx(2 * 50**2 / N, rel=0.25)


def test_arms_that_answer_alike_differ_by_no_problem():
    same = drawn(Random(1), 0.5)
    case = of_arms(same, same, drawn(Random(2), 0.5))
    assert shared_variance(A_OVER_B, [case, case]) == 0
    assert shared_variance(score(NAME).of("a") > score(NAME).of(START), [case, case]) > 0


def test_a_draw_of_its_own_for_each_seed_leaves_nothing_to_add():
    random = Random(3)
    own, same = [], []
    for seed in range(2):
        values = [drawn(random, 0.5) for _ in range(3)]
        own.append(of_arms(*values, draw=seed))
        same.append(of_arms(*values, draw=7))
    assert shared_variance(A_OVER_B, own) == 0
    assert shared_variance(A_OVER_B, same) > 0
    assert shared_variance(A_OVER_B, same[:1]) == 0  # one seed has no interval to widen


def test_samples_at_k_count_too():
    random = Random(4)
    before, after = ([random.randint(0, 4) for _ in range(N)] for _ in range(2))
    rows = {
        when: {"k": [1, 4], "digest": stored(values, 4)}
        for when, values in (("before", before), ("after", after))
    }
    rises = [(b > 0) - (a > 0) for a, b in zip(before, after, strict=True)]
    for row, values in zip(rows.values(), (before, after), strict=True):
        row["pass"] = [25 * sum(values) / N, 100 * sum(v > 0 for v in values) / N]
        row["maj"] = [0.0, 0.0]
    sampled = {"suite": {"mirrors": NAME, **rows}}
    record = written(run("a", before, before) | {"digest": "sampled", "sampling": sampled})
    test = gain_at_k("pass", NAME).of("a") > 0
    found = shared_variance(test, [{"a": record}, {"a": record}])
    mean = sum(rises) / N
    expected = sum((100 * (rise - mean)) ** 2 for rise in rises) / N**2
    assert found == pytest.approx(expected, rel=0.7)


def watched(arm, random, shares):
    """A record of a run with answers to the held-out problems at the steps 0, 1, 2, ..."""
    answers = [drawn(random, share) for share in shares]
    record = run(arm, [1], [1])
    record["curves"] = {CURVE: [[step, 100 * sum(right) / N] for step, right in enumerate(answers)]}
    record["train"] = {"held_out": {str(step): stored(right) for step, right in enumerate(answers)}}
    return written(record)


def test_the_held_out_problems_of_a_curve_count_at_each_of_its_steps():
    """The mean of two independent draws of answers has half the variance of one."""
    random = Random(5)
    last, both = [], []
    for _ in range(8):
        case = {arm: watched(arm, random, [0.5, 0.5, 0.5]) for arm in "ab"}
        for found, measure in ((last, final(CURVE)), (both, late(CURVE, 1 / 3))):
            found.append(shared_variance(measure.of("a") > measure.of("b"), [case, case]))
    assert sum(last) / len(last) == pytest.approx(2 * 50**2 / N, rel=0.25)
    assert sum(both) / len(both) == pytest.approx(50**2 / N, rel=0.25)


def test_without_the_answers_of_a_step_the_variance_is_not_known():
    random = Random(6)
    case = {arm: watched(arm, random, [0.5, 0.5]) for arm in "ab"}
    test = final(CURVE).of("a") > final(CURVE).of("b")
    assert shared_variance(test, [case, case]) > 0
    for record in case.values():
        record["train"] = {}
    assert shared_variance(test, [case, case]) is None
    entropy = at_step("entropy", 1).of("a") > 0.0
    for record in case.values():
        record["curves"]["entropy"] = [[1, 1.0]]
    assert shared_variance(entropy, [case, case]) == 0


def test_held_out_problems_of_a_world_that_draws_them_by_the_seed_add_nothing():
    random = Random(7)
    case = {arm: watched(arm, random, [0.5, 0.5]) for arm in "ab"}
    test = final(CURVE).of("a") > final(CURVE).of("b")
    for regime, is_added in ((None, True), ("choice", False)):
        for record in case.values():
            record["config"] = {"regime": {"value": regime}}
        assert (shared_variance(test, [case, case]) > 0) is is_added
