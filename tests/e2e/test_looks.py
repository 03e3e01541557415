"""`repro run --claims` looks at its claims more than once and runs on only where one is open."""

from dataclasses import replace

import pytest

from core.claims import Claim, final, score, simulated
from core.records.record import read_records
from core.run.order import run_order
from core.run.request import Order
from core.verdicts.judge import judge
from core.verdicts.simulations import with_simulations
from eval.stats.seeds import Look
from papers.deepseekmath_grpo import PAPER

NEVER = 1e-9  # a level at which three seeds decide nothing
GSM8K = score("gsm8k")
OPEN = Claim("open", "s", final("entropy").of("online-rft") > 0.0)
STUCK = Claim("stuck", "s", GSM8K.of("grpo") > GSM8K.of("online-rft"))  # both at 0 %
AVERAGE = simulated(
    "core.laws.weight_averages:squared_distance", displaced=False, time=0.5, seeds=20
)
FAR = Claim("far", "s", AVERAGE > 0.0)
THREE = replace(PAPER, claims=(OPEN, STUCK, FAR))


@pytest.fixture
def order(root, settings):
    del root
    return Order(
        paper=THREE,
        arms=("grpo", "online-rft"),
        seeds=(0, 1, 2),
        looks=(Look(2, NEVER), Look(3)),
        arguments=settings,
    )


def test_only_what_an_undecided_claim_needs_goes_on_and_the_same_command_gives_the_same(
    order, capfd
):
    outcome = run_order(order)
    ran = sorted((run["arm"], run["seed"]) for run in outcome.runs)
    assert ran == [("grpo", 0), ("grpo", 1), *(("online-rft", seed) for seed in range(3))]
    first, second, third = outcome.verdicts
    assert (first["verdict"], first["seeds"]) == ("held", [0, 1, 2])
    assert (second["verdict"], second["seeds"]) == ("no room", [0, 1])
    assert outcome.claims["looks"] == [[2, NEVER], [3, 0.05]]
    assert (third["verdict"], third["seeds"]) == ("held", [*range(20)])
    said = capfd.readouterr().err
    assert "simulating squared_distance(displaced=False, time=0.5), 20 seeds" in said
    assert "after look 1 of 2, 1 claim is undecided: open" in said
    simulated_paper = with_simulations(THREE, read_records(THREE.slug))
    assert judge(simulated_paper, outcome.runs, order.looks) == outcome.verdicts
    again = run_order(order)
    assert again.claims["digest"] == outcome.claims["digest"]
    said = capfd.readouterr().err
    assert "one rollout" not in said
    assert "simulating" not in said
    hopeless = run_order(replace(order, looks=(Look(2, NEVER), Look(3, NEVER))))
    assert {run["seed"] for run in hopeless.runs} == {0, 1}
    assert "more seeds decide with a chance of less than 10 %: open" in capfd.readouterr().err
    assert "fewer than 10 %: they are not run" in hopeless.verdicts[0]["reason"]
