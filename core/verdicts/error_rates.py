"""Simulates how often verdicts are wrong and which effects they detect.

`python -m core.verdicts.error_rates` writes reports/rates.md.
"""

from dataclasses import dataclass
from pathlib import Path

from core.paper.registry import find_paper
from core.records.files import write_atomic
from core.records.places import Shelf
from core.records.record import read_records, standard
from core.records.schema import runs_of
from core.verdicts.variance_components import Components, components
from eval.stats.normal_claims import (
    MISSES,
    RATIOS,
    SEEDS,
    SHARES,
    look_rate,
    simulate_misses,
    simulate_misses_with_starts,
)
from eval.stats.seeds import LOOKS, NANO_LOOKS
from eval.stats.simulated import RULES, TRAINING, Rate, World, rates
from eval.tables.render import environment
from eval.terminal import say

NORMAL_RUNS = 100_000  # behind each line of claims whose seeds scatter normally
DEVIATIONS = (0.0, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)  # effects, in deviations of a seed's difference
RUNS = 12_000  # simulations behind each line of the page
SOURCE = "deepseekmath-grpo"  # the variance components are measured in its runs of the pocket world
EFFECTS = (0.0, 1.0, 2.0, 5.0, 10.0)
TO_SEE = {2.0: 70, 5.0: 99}  # effect in points: percent of cases that the looks should decide
OWN, POOLED, SINGLE = RULES
PAIR = (TRAINING,) * 2
UNEQUAL = (1.6, 1.6, 0.6, 0.6, 0.6)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A simulated world judged under one rule, at several true effects in points."""

    title: str
    rule: str
    world: World
    effects: tuple[float, ...] = EFFECTS


MEASURED = Scenario(title="measured components", rule=OWN, world=World(training=PAIR))
SCENARIOS = (
    MEASURED,
    Scenario(
        title="one set of problems for all seeds",
        rule=OWN,
        world=World(training=PAIR, shared=True),
        effects=(0.0, 2.0),
    ),
    *(
        Scenario(title=title, rule=rule, world=world, effects=(0.0, 2.0))
        for title, world in (
            ("arms that scatter alike", World()),
            ("the two arms scatter by 1.6 points, three others by 0.6", World(training=UNEQUAL)),
        )
        for rule in RULES
    ),
)


def simulate(scenario: Scenario, runs: int = RUNS, seed: int = 0) -> list[Rate]:
    """Return the rates of verdicts of a scenario, one for each of its effects."""
    return [
        rates(RULES[scenario.rule], scenario.world, effect, runs=runs, seed=seed)
        for effect in scenario.effects
    ]


def shown_components() -> list[Components]:
    """Return the variance components of the published runs, for each averaged set of benchmarks.

    Only arms that claims compare count: control arms are meant to end elsewhere.
    """
    paper = find_paper(SOURCE)
    runs = runs_of(standard(read_records(SOURCE, Shelf.PUBLISHED)), "cpu")
    return components(paper, [run for run in runs if run["arm"] in paper.claimed_arms("cpu")])


def main() -> Path:
    """Simulate all scenarios, write reports/rates.md and return its path."""
    simulated: list[tuple[Scenario, list[Rate]]] = []
    for scenario in SCENARIOS:
        say(f"rates: {scenario.title}, {scenario.rule}")
        simulated.append((scenario, simulate(scenario)))
    measured = simulated[0][1]
    template = environment("md").get_template("rates.md.j2")
    page = template.render(
        source=SOURCE,
        components=shown_components(),
        measured=measured,
        seen={rate.effect: rate.looks for rate in measured},
        to_see=TO_SEE,
        lines=[(scenario, rate) for scenario, rates_at in simulated for rate in rates_at],
        runs=RUNS,
        looks=LOOKS,
        error=100 * (0.05 * 0.95 / RUNS) ** 0.5,
        missed=[
            simulate_misses(seeds, ratio, runs=NORMAL_RUNS) for seeds in SEEDS for ratio in RATIOS
        ],
        misses=MISSES,
        starts=[
            simulate_misses_with_starts(look.seeds, share, runs=NORMAL_RUNS)
            for look in LOOKS
            for share in SHARES
        ],
        nano_looks=NANO_LOOKS,
        nano=[look_rate(NANO_LOOKS, effect, runs=NORMAL_RUNS) for effect in DEVIATIONS],
        normal_runs=NORMAL_RUNS,
    )
    return write_atomic(Shelf.PUBLISHED.reports / "rates.md", page)


if __name__ == "__main__":
    main()
