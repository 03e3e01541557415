"""Error rates, coverage and power of verdicts, simulated with problems: within their bounds.

Each share is allowed three standard errors of its simulation beside its bound: of rates that
are just the bound, one in 700 would fail. The draws are fixed, so a failure stays until mended.
"""

from itertools import product

import numpy as np
import pytest

from core.paper.registry import find_paper
from core.records.places import Shelf
from core.run.visible import problems_of, seen_at, visible_effects
from core.settings.resolve import resolve
from core.verdicts import shuffled_labels
from core.verdicts.error_rates import MEASURED, POOLED, RUNS, SCENARIOS, UNEQUAL, shown_components
from core.verdicts.shuffled_labels import BOUND, noise_of, shufflable, shuffled_rates
from eval.stats.normal_claims import (
    MISSES,
    RATIOS,
    SEEDS,
    SHARES,
    look_rate,
    simulate_misses_with_starts,
)
from eval.stats.seeds import LEVEL, LOOKS, NANO_LOOKS, Look, over_seeds, seed_effect
from eval.stats.simulated import (
    BUILD,
    PROBLEMS,
    RATE,
    RULES,
    SAME_SEED,
    TRAINING,
    World,
    contains,
    draw,
    expected_spread,
    own_spread,
    rates,
)

WORLD = MEASURED.world
SHARED = World(training=(1.0, 1.0), shared=True)  # as in a world whose seeds share problems


def slack(share: float, runs: int) -> float:
    """Three standard errors of a share, in percent."""
    return 300 * (share * (1 - share) / runs) ** 0.5


def test_without_an_effect_at_most_five_percent_are_decided_and_intervals_cover():
    runs = 1200
    found = rates(own_spread, WORLD, 0.0, runs=runs, seed=1)
    for share in (*found.fixed.values(), found.looks):
        assert share <= 5 + slack(0.05, runs)
    for share in (*found.coverage.values(), found.stopped):
        assert 94 - slack(0.06, runs) <= share <= 97 + slack(0.03, runs)


@pytest.mark.parametrize(("effect", "power"), [(2.0, 70.0), (5.0, 99.0)])
def test_the_looks_see_what_they_should(effect: float, power: float):
    runs = 300
    found = rates(own_spread, WORLD, effect, runs=runs, seed=2)
    assert found.looks >= power - slack(power / 100, runs)
    assert found.stopped >= 94 - slack(0.06, runs)


def test_problems_that_all_seeds_share_are_in_the_interval():
    """Without their variance the same intervals would miss at least every tenth time."""
    runs, seeds = 400, 8
    random, covered, alone = np.random.default_rng(3), 0, 0
    for _ in range(runs):
        drawn = draw(random, SHARED, 0.0, seeds)
        covered += contains(own_spread(drawn, seeds), LEVEL, 0.0)
        alone += contains(over_seeds(drawn.differences(seeds).tolist()), LEVEL, 0.0)
    assert 100 * covered / runs >= 94 - slack(0.06, runs)
    assert 100 * alone / runs < 90


def test_a_rule_with_too_narrow_intervals_is_found_out():
    """One spread of all arms, where they scatter differently, is three times too bold."""
    runs = 300
    found = rates(RULES[POOLED], World(training=UNEQUAL), 0.0, runs=runs, seed=4)
    assert found.looks > 5 + slack(0.05, runs)


def test_the_components_give_the_spread_and_the_correlations_that_were_measured():
    random = np.random.default_rng(5)
    old = [draw(random, SHARED, 0.0, 8) for _ in range(100)]
    found = np.mean([np.var(one.scores, axis=1, ddof=1) for one in old])
    answers = RATE * (100 - RATE) * (1 - 0.78) / PROBLEMS  # that seeds of an arm do not share
    assert found == pytest.approx(BUILD**2 + SHARED.training[0] ** 2 + answers, rel=0.12)
    new = [draw(random, WORLD, 0.0, 8) for _ in range(150)]
    spread = np.sqrt(np.mean([np.var(one.differences(8), ddof=1) for one in new]))
    assert spread == pytest.approx(expected_spread(PROBLEMS), rel=0.08)


def test_the_components_are_those_of_the_shipped_runs():
    """Of the suites that are trained on, which most claims read."""
    (found,) = (one for one in shown_components() if "gsm8k" in one.benchmarks)
    assert found.problems == PROBLEMS
    assert found.training == pytest.approx(TRAINING, abs=0.01)
    assert found.alike == pytest.approx(SAME_SEED, abs=0.01)
    assert found.rate == pytest.approx(RATE, abs=0.1)


@pytest.mark.parametrize("look", LOOKS)
def test_a_difference_as_large_as_the_margin_is_rarely_called_a_tie(look: Look):
    random = np.random.default_rng(6)
    runs = 3000
    values = random.normal(1.0, 0.3, size=(runs, look.seeds))
    ties = sum(
        seed_effect(row.tolist(), level=look.level, equal=1.0).verdict == "tie" for row in values
    )
    assert 100 * ties / runs <= 100 * look.level + slack(look.level, runs)


def test_the_page_is_of_these_scenarios_and_within_its_bounds():
    page = (Shelf.PUBLISHED.reports / "rates.md").read_text(encoding="utf-8")
    table = page.split("## Verdicts")[1].split("Bounds:")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")][2:]
    by_effect = {float(row[0]): [float(cell) for cell in row[1:]] for row in rows}
    assert list(by_effect) == list(MEASURED.effects)
    assert max(by_effect[0.0][:4]) <= 5 + slack(0.05, RUNS)
    assert all(94 <= share <= 97 + slack(0.03, RUNS) for share in by_effect[0.0][4:8])
    for scenario in SCENARIOS:
        assert page.count(f"| {scenario.title} ") >= len(scenario.effects)


def test_the_page_shows_the_intervals_with_shared_problems_within_their_bounds():
    page = (Shelf.PUBLISHED.reports / "rates.md").read_text(encoding="utf-8")
    table = page.split("## Problems that all seeds share")[1].split("## ")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")][2:]
    shown = {(int(row[0]), float(row[1])): (float(row[2]), float(row[3])) for row in rows}
    assert shown.keys() == set(product(SEEDS, RATIOS))
    assert all(a <= b for row in shown.values() for a, b in zip(row, MISSES.values(), strict=True))


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("look", LOOKS)
def test_seeds_that_share_starts_are_no_replications(look: Look, share: float):
    runs = 20_000
    found = simulate_misses_with_starts(look.seeds, share, runs=runs, seed=9)
    assert found.by_start <= 5.2 + slack(0.05, runs)
    if look.seeds > 3 and share >= 0.25:
        assert found.by_seed > 5.5 + slack(0.055, runs)


def test_the_page_shows_the_intervals_with_shared_starts_within_their_bound():
    page = (Shelf.PUBLISHED.reports / "rates.md").read_text(encoding="utf-8")
    table = page.split("## Seeds that share a starting model")[1].split("## ")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")][2:]
    shown = {(int(row[0]), float(row[1]) / 100): float(row[2]) for row in rows}
    assert shown.keys() == set(product([look.seeds for look in LOOKS], SHARES))
    assert max(shown.values()) <= 5.5


@pytest.mark.parametrize("looks", [LOOKS, NANO_LOOKS])
def test_looks_decide_at_most_five_percent_without_an_effect(looks: tuple[Look, ...]):
    runs = 20_000
    found = look_rate(looks, 0.0, runs=runs, seed=8)
    assert found.decided <= 5 + slack(0.05, runs)
    assert sum(look.level for look in looks) == pytest.approx(0.05)
    assert look_rate(looks, 3.0, runs=runs, seed=8).decided > 95


@pytest.mark.long
def test_shuffled_labels_are_seldom_decided(monkeypatch):
    """Of all published runs; at ten times the level the bound is broken."""
    draws = 30
    found = shuffled_rates(draws, seed=3)
    assert found.claims > 50
    for decided, shuffled in ((found.decided, found.shuffled), (found.decided_apart, found.apart)):
        assert 100 * decided / shuffled <= BOUND + slack(BOUND / 100, shuffled)
    monkeypatch.setattr(shuffled_labels, "LEVEL", 10 * LOOKS[0].level)
    loose = shuffled_rates(draws, seed=3)
    assert 100 * loose.decided / loose.shuffled > 3 * BOUND


def test_labels_are_shuffled_among_the_arms_of_a_world():
    """The noise that is judged has the mean 0, and no run stands for two arms."""
    paper = find_paper("dr-grpo")
    found = {claim.slug: by_arm for claim, by_arm in shufflable(paper)}
    by_arm = found["wrong-answers-shorter"]
    assert "length-divisor-dominates" in found
    assert {*by_arm} == {arm for arm in paper.arms if arm.endswith("-length")}
    (claim,) = (claim for claim in paper.claims if claim.slug == "wrong-answers-shorter")
    noise = noise_of(claim, claim.test, by_arm, ("no-std-length", "dr-grpo-length"))
    assert len(noise) == NANO_LOOKS[0].seeds
    assert sum(noise) == pytest.approx(0.0, abs=1e-9)
    assert max(noise) > 0.1


def test_a_plan_names_the_effects_that_the_simulation_sees():
    """With the problems of the page, the last look alone decides its own effect in 80 %."""
    paper = find_paper("deepseekmath-grpo")
    settings = resolve(paper).run
    found = visible_effects(paper, settings)
    assert found.keys() == {claim.slug for claim in paper.claims if problems_of(claim, settings)}
    assert all(seen == sorted(seen, reverse=True) for seen in found.values())
    last = LOOKS[-1]
    effect, runs = seen_at(last, 2000), 300
    decided = rates(own_spread, WORLD, effect, runs=runs, looks=(last,), seed=7).looks
    assert decided == pytest.approx(80, abs=slack(0.8, runs) + 3)
