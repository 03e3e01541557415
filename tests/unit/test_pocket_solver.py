"""The fallible solver: its rates, its range, and that nothing but skill tells right from wrong."""

from collections import Counter, defaultdict
from math import log
from random import Random
from statistics import correlation

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.pocket.habits import HABITS, HIGHEST, LOWEST, Habits
from eval.pocket.simulate import is_majority_right, simulate, success_probability
from eval.pocket.solver import STRATEGIES, Solver, fallible_solution, right_solution
from eval.pocket.steps import step_verdicts
from eval.pocket.suites import SUITES, drafts

PART = 144  # all kinds and levels of every suite
CONTEXT = st.tuples(st.integers(0, 20), st.integers(-1, 20))
DRAFT = st.deferred(
    lambda: st.sampled_from([made for suite in SUITES for made in drafts(suite, "valid")])
)


@pytest.fixture(scope="module", autouse=True)
def made():
    """The drafts, which are made once: an example of a property must not wait for them."""
    for suite in SUITES:
        drafts(suite, "valid")


@given(st.sampled_from(sorted(HABITS)), CONTEXT, st.sampled_from(["en", "zh"]))
def test_rates_are_within_their_bounds_and_a_function_of_the_context(kind, context, language):
    rate = Habits().rate(kind, context, language)
    assert LOWEST <= rate <= HIGHEST
    assert rate == Habits().rate(kind, context, language)


@pytest.mark.parametrize("kind", [kind for kind in HABITS if HABITS[kind].wrong])
def test_shares_of_hard_contexts_are_as_stated(kind):
    """Over many seeds, since contexts of one group go together."""
    rates = [
        Habits(seed=seed).rate(kind, (group, one), "en")
        for seed in range(40)
        for group in range(10)
        for one in range(5)
    ]
    habit = HABITS[kind]
    assert sum(rate > 0.5 for rate in rates) / len(rates) == pytest.approx(habit.wrong, abs=0.05)
    assert sum(rate > 0.9 for rate in rates) / len(rates) == pytest.approx(habit.rare, abs=0.025)
    assert not any(habit.common + 1e-9 < rate < 0.6 for rate in rates)


def test_a_quarter_of_the_contexts_has_a_rate_of_each_language():
    contexts = [(a, b) for a in range(40) for b in range(40)]
    differ = [Habits().rate("event", c, "en") != Habits().rate("event", c, "zh") for c in contexts]
    assert sum(differ) / len(differ) == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize("suite", SUITES)
def test_the_demonstrator_is_in_its_range(suite):
    found = simulate(drafts(suite, "valid")[:PART], Habits())
    assert 40 <= found.greedy <= 65
    assert abs(found.greedy - found.sampled) <= 8
    assert found.greedy + 20 <= found.pass_at_k < 97


def test_the_simulator_agrees_with_solutions_drawn():
    made = drafts("pocket-math", "valid")[:40]
    drawn = [
        fallible_solution(draft, build).answer == draft.answer
        for draft in made
        for build in range(100)
    ]
    expected = sum(success_probability(draft, Habits()) for draft in made) / len(made)
    assert sum(drawn) / len(drawn) == pytest.approx(expected, abs=0.02)


@given(DRAFT, st.integers(0, 9))
def test_a_right_answer_may_have_wrong_steps_but_right_steps_have_a_right_answer(made, build):
    told = fallible_solution(made, build)
    if len(told.lines) == made.level and all(right for _, right in told.lines):
        assert told.answer == made.answer


@given(DRAFT, st.integers(0, 9), st.sampled_from(sorted(set(STRATEGIES) - {"short", "careful"})))
def test_labels_are_those_of_a_judge_with_the_solution(made, seed, strategy):
    random = Random(seed)
    solver = Solver(
        errs=lambda _kind, _cue, rate: random.random() < rate,
        language=made.language,
        strategy=STRATEGIES[strategy],
    )
    told = solver.solve(made)
    if strategy == "plain":
        judged = step_verdicts(made.question, made.answer, told.text, made.solution)
        assert [right for _, right in judged[:-1]] == [right for _, right in told.lines]
    first = dict(reversed(told.lines))
    assert all(first[text] for text in made.plan.lines if text in first)


@given(DRAFT)
def test_right_solutions_are_plain_checked_or_terse(made):
    *lines, last = made.solution.splitlines()
    sides = [line.rpartition("=") for line in lines]
    texts = {
        "plain": lines,
        "redo": lines,
        "careful": [
            text for left, _, right in sides for text in (f"{left}={right}", f"{right}={left}")
        ],
        "short": [right for *_, right in sides],
    }
    for strategy in STRATEGIES:
        told = right_solution(made, strategy)
        assert told.text.splitlines() == [*texts[strategy], last]
        assert all(right for _, right in told.lines)


def test_strategies_trade_length_for_reliability():
    made = drafts("pocket-gsm8k", "valid")[:PART]
    right, length = {}, {}
    for name, strategy in STRATEGIES.items():
        random = Random(0).random
        solver = Solver(errs=lambda _k, _c, rate, draw=random: draw() < rate, strategy=strategy)
        told = [solver.solve(draft) for draft in made]
        right[name] = sum(t.answer == d.answer for t, d in zip(told, made, strict=True))
        length[name] = sum(len(t.text) for t in told)
    assert right["short"] < right["plain"] < right["careful"]
    assert right["plain"] < right["redo"]
    assert length["short"] < length["plain"] < length["redo"] < length["careful"]


def outcomes():
    for suite in SUITES:
        for made in drafts(suite, "valid"):
            told = fallible_solution(made, 0)
            yield made, told, told.answer == made.answer


def test_length_tells_little_about_correctness():
    for language in ("en", "zh"):
        found = [(len(t.lines), right) for m, t, right in outcomes() if m.language == language]
        assert abs(correlation(*zip(*found, strict=True))) < 0.25


def test_the_first_character_tells_little_about_correctness():
    """Mutual information in nats, less what chance alone gives a table of this size."""
    table = defaultdict(Counter)
    for _, told, right in outcomes():
        table[told.text[0]][right] += 1
    n = sum(sum(row.values()) for row in table.values())
    share = Counter()
    for row in table.values():
        share.update(row)
    information = sum(
        count / n * log(count * n / (sum(row.values()) * share[right]))
        for row in table.values()
        for right, count in row.items()
    )
    assert information - (len(table) - 1) / (2 * n) < 0.05


def test_who_never_errs_is_right_and_who_always_takes_the_majority_is_as_simulated():
    made = drafts("pocket-cmath", "valid")[:PART]
    found = simulate(made, Habits())
    assert found.greedy == 100 * sum(is_majority_right(draft, Habits()) for draft in made) / PART
    flawless = Habits({kind: type(habit)(0.0, 0.0, LOWEST) for kind, habit in HABITS.items()})
    assert all(is_majority_right(draft, flawless) for draft in made)
