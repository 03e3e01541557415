"""Measures of claims beside curves: scores asked in other ways, settings, orders of arms."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.claims import (
    START,
    BadClaim,
    Claim,
    MissingMeasure,
    at_step,
    distance,
    final,
    highest,
    inside,
    least,
    log2,
    lowest,
    most,
    problems,
    rank_correlation,
    score,
    setting,
)
from core.paper import Evaluation
from core.run.paper_problems import given_scores, runs_in_worlds
from core.settings.resolve import resolve
from core.stages.evaluate import score_rows
from core.stages.questions import questions, questions_of
from eval.errors import BadValue, UnknownName
from eval.samples.evaluation import Completion, Decoding, run_benchmark
from eval.samples.parts import score_parts
from eval.sets.benchmarks import find_benchmark
from papers.cmath import PAPER as CMATH
from papers.dft import PAPER as DFT
from papers.ssd import PAPER as SSD

numbers = st.lists(st.integers(-50, 50).map(float), min_size=3, max_size=7)
X, Y = final("x"), final("y")


def run(x=0.0, y=0.0, **more):
    """A record whose curves end at two values."""
    return {"curves": {"x": [(1, x)], "y": [(1, y)], "held_out/a": [(1, x)]}, "config": {}, **more}


def arms_of(xs, ys):
    """One seed's records of an arm for each pair."""
    return {str(i): run(x, y) for i, (x, y) in enumerate(zip(xs, ys, strict=True))}


def correlation(xs, ys):
    runs = arms_of(xs, ys)
    return rank_correlation(X, Y, *runs).values([runs])[0]


@given(numbers)
def test_a_rank_correlation_sees_the_order_of_the_arms_alone(xs):
    if len(set(xs)) == 1:
        with pytest.raises(MissingMeasure, match="the same value"):
            correlation(xs, xs)
        return
    assert correlation(xs, xs) == pytest.approx(1)
    assert correlation(xs, [x**3 for x in xs]) == pytest.approx(1)
    assert correlation(xs, [-x for x in xs]) == pytest.approx(-1)


def test_a_rank_correlation_by_hand_and_over_all_orders_it_is_zero():
    assert correlation([1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(0.6)
    assert correlation([1, 1, 2], [1, 2, 3]) == pytest.approx(0.8660254)
    every = [correlation([1, 2, 3, 4], order) for order in permutations([1, 2, 3, 4])]
    assert sum(every) == pytest.approx(0, abs=1e-12)
    with pytest.raises(BadClaim, match="at least three arms"):
        rank_correlation(X, Y, "a", "b")


@given(numbers)
def test_the_most_of_several_sides_is_the_least_of_their_opposites(xs):
    runs = arms_of(xs, [0.0] * len(xs))
    sides = [X.of(arm) for arm in runs]
    (largest,) = most(*sides).values([runs])
    assert largest == max(xs) == -least(*(0 - side for side in sides)).values([runs])[0]


def test_the_setting_of_the_arm_that_does_best():
    rates = {"a": 1e-4, "b": 2e-4, "c": 4e-4}
    runs = {
        name: run(held, config={"learning_rate": {"value": rates[name], "source": "s"}})
        for name, held in zip(rates, (2.0, 1.0, 3.0), strict=True)
    }
    rate, by = setting("learning_rate"), final("held_out/a")
    assert rate.of(lowest(by, *rates)).values([runs]) == [2e-4]
    assert rate.of(highest(by, *rates)).values([runs]) == [4e-4]
    assert Claim("c", "s", rate.of("a") < 1).arms == ("a",)
    with pytest.raises(MissingMeasure, match="no setting 'beta' that is a number"):
        setting("beta").of("a").values([runs])
    with pytest.raises(MissingMeasure, match="that is a number"):
        setting("f").read(run(config={"f": {"value": "linear", "source": "s"}}), "a")


@given(st.permutations([1e-3, 2e-3, 4e-3, 8e-3]), st.permutations([3.0, 1.0, 2.0, 4.0]))
def test_the_best_rate_of_a_grid_is_inside_unless_it_is_the_least_or_the_largest(rates, losses):
    runs = {
        f"arm-{n}": run(loss, config={"learning_rate": {"value": rate, "source": "s"}})
        for n, (rate, loss) in enumerate(zip(rates, losses, strict=True))
    }
    best_rate = rates[losses.index(min(losses))]
    best = lowest(final("held_out/a"), *runs)
    assert inside("learning_rate", best).values([runs]) == [best_rate in (2e-3, 4e-3)]
    rate = setting("learning_rate").of(best)
    steps = log2(rate) - log2(1e-3)
    assert steps.values([runs])[0] == pytest.approx(sorted(rates).index(best_rate))
    assert {arm for arm, _ in inside("learning_rate", best).needs} == {*runs}


def test_logarithms_and_grids_that_say_nothing_are_refused():
    runs = {"a": run(0.0), "b": run(1.0)}
    with pytest.raises(MissingMeasure, match="a value is 0, expected above 0"):
        log2(final("held_out/a").of("a")).values([runs])
    assert not log2(final("held_out/accuracy").of("a")).percent
    with pytest.raises(BadClaim, match="at least three arms, so that one can be inside"):
        inside("learning_rate", lowest(final("held_out/a"), "a", "b"))


curves = st.lists(st.floats(-9, 9), min_size=1, max_size=9).map(lambda v: list(enumerate(v)))


@given(curves, curves, curves)
def test_the_distance_of_curves_is_a_distance(one, other, third):
    length = min(map(len, (one, other, third)))
    cut = {"a": one[:length], "b": other[:length], "c": third[:length]}
    runs = {arm: {"curves": {"m": curve}} for arm, curve in cut.items()}

    def apart(a, b):
        return distance("m", a, b).values([runs])[0]

    assert apart("a", "a") == 0
    assert apart("a", "b") == apart("b", "a") >= 0
    assert apart("a", "c") <= apart("a", "b") + apart("b", "c") + 1e-9


def test_curves_are_compared_where_both_are_logged():
    runs = {"a": {"curves": {"m": [(0, 1.0), (5, 4.0), (7, 9.0)]}},
            "b": {"curves": {"m": [(0, 2.0), (5, 1.0)]}},
            "c": {"curves": {"m": [(3, 1.0)]}}}  # fmt: skip
    assert distance("m", "a", "b").values([runs]) == [2.0]
    with pytest.raises(MissingMeasure, match="no step in common"):
        distance("m", "a", "c").values([runs])


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=9), st.integers(1, 30))
def test_a_curve_at_a_step_is_its_first_point_from_there(values, step):
    points = [(3 * i, value) for i, value in enumerate(values)]
    record, measure = {"curves": {"m": points}}, at_step("m", step)
    if step > points[-1][0]:
        with pytest.raises(MissingMeasure, match=f"has no step {step}"):
            measure.read(record, "a")
    else:
        assert measure.read(record, "a") == values[-(-step // 3)]


ROWS = [
    {"mirrors": "m", "metric": "top1", "mode": "cot", "value": 1.0},
    {"mirrors": "m", "metric": "top1", "mode": "tir", "value": 2.0},
    {"mirrors": "m", "metric": "avg@4", "mode": "cot", "temperature": 1.0, "value": 3.0},
    {"mirrors": "m", "metric": "avg@4", "mode": "cot", "temperature": 0.6, "value": 4.0,
     "by": {"level": {"1": {"value": 5.0}, "2": {"value": 3.0}}}},
]  # fmt: skip


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        (score("m"), 1.0),
        (score("m", mode="tir"), 2.0),
        (score("m", metric="avg@4", temperature=1.0), 3.0),
        (score("m", metric="avg@4", temperature=0.6), 4.0),
        (score("m", metric="avg@4", temperature=0.6, level=2), 3.0),
        (score("m", metric="maj@4", temperature=1.0), None),
        (score("m", temperature=1.0), None),
        (score("m", level=1), None),
        (score("m", metric="avg@4", temperature=0.6, level=3), None),
    ],
)
def test_a_score_is_the_one_that_was_asked_in_this_way(measure, value):
    record = {"scores": ROWS, "start_scores": ROWS[:1], "train": {"steps": 2}}
    if value is None:
        with pytest.raises(MissingMeasure, match="of m"):
            measure.read(record, "a")
    else:
        assert measure.read(record, "a") == value
        untrained = {"scores": ROWS, "start_scores": [], "train": {"steps": 0}}
        assert measure.read(untrained, START) == value
    if measure != score("m"):
        with pytest.raises(MissingMeasure):
            measure.read(record, START)


def test_a_claim_on_a_score_that_no_evaluation_gives_is_found():
    given_ = given_scores(DFT, [])
    asked = Claim("c", "s", score("math500", metric="avg@16", temperature=1.0).of("dft") > 0)
    assert list(problems(asked, DFT.arms, DFT.benchmarks, given_)) == []
    for measure in (score("math500"), score("math500", metric="avg@8", temperature=1.0)):
        claim = Claim("c", "s", measure.of("dft") > 0)
        (line,) = problems(claim, DFT.arms, DFT.benchmarks, given_)
        assert "no evaluation asks for" in line
    by = Claim("c", "s", score("cmath", level=1).of(START) > 0)
    assert list(problems(by, (), CMATH.benchmarks, given_scores(CMATH, []))) == []
    by = Claim("c", "s", score("cmath", subject="a").of(START) > 0)
    (line,) = problems(by, (), CMATH.benchmarks, given_scores(CMATH, []))
    assert line.endswith("by subject")
    with pytest.raises(BadClaim, match="expected one field"):
        score("cmath", level=1, subject="a")


def test_an_evaluation_of_one_scale_is_done_there_alone():
    ways = (Evaluation(), Evaluation(samples=4, temperature=0.5, scale="cpu", passage="s1"))
    paper = replace(CMATH, evaluations=ways, claims=())
    samples = {
        scale: {question.decoding.samples for question in questions(resolve(paper, scale=scale))}
        for scale in ("cpu", "gpu")
    }
    assert samples == {"cpu": {1, 4}, "gpu": {1}}
    with pytest.raises(UnknownName, match="no scale 'cpi': did you mean cpu"):
        resolve(replace(paper, evaluations=(replace(ways[1], scale="cpi"),)))


def test_the_evaluations_of_a_paper_score_the_suites_of_its_worlds():
    scores = {(need.name, *need.how) for need in given_scores(SSD, runs_in_worlds(SSD))}
    assert ("nano-grammar", "distinct@256", "cot", 1.0) in scores
    assert ("nano-grammar", "avg@256", "cot", 1.6) in scores
    assert ("nano-grammar", "top1", "cot", 1.0) not in scores


@pytest.fixture(scope="module")
def asked():
    """Samples of a suite of which every problem up to level 4 is solved."""
    suite = find_benchmark("pocket-cmath")
    limit = 60
    found = suite.load(limit=limit)
    texts = [f"\\boxed{{{p.answer}}}" if p.level <= 4 else "?" for p in found]

    def sampler(prompts, decoding):
        del prompts, decoding
        return [[Completion(text, 1, truncated=False)] for text in texts]

    return suite, found, run_benchmark(sampler, suite, limit=limit, decoding=Decoding())


def test_scores_by_a_field_are_those_of_its_problems_and_make_the_whole(asked):
    suite, found, samples = asked
    parts = score_parts(samples, suite, "top1", "level")
    assert list(parts) == [str(level) for level in sorted({p.level for p in found})]
    assert {level: part["value"] for level, part in parts.items()} == {
        level: 100.0 if int(level) <= 4 else 0.0 for level in parts
    }
    assert sum(part["n"] for part in parts.values()) == len(found)
    with pytest.raises(BadValue, match="expected one of level, subject, language"):
        score_parts(samples, suite, "top1", "solution")


def test_an_evaluation_by_a_field_splits_its_scores_and_another_does_not(asked):
    _, _, samples = asked
    settings = resolve(CMATH, arguments=("eval_limit=60",)).run
    for way, there in ((CMATH.evaluations[0], True), (Evaluation(), False)):
        question, *distracted = questions_of(way, settings)
        assert len(distracted) == 6
        (row,) = score_rows(samples, question)
        assert ("by" in row) == there
        if there:
            record = {"scores": [row | {"mirrors": "cmath"}], "train": {"steps": 0}}
            claim = next(c for c in CMATH.claims if c.slug == "cmath-grade-order").test
            assert claim.values([{"main": record}]) == ([100.0], [0.0])
