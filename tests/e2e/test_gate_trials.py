"""`repro run --claims` tries the gates of claims on a seed that is never judged."""

from dataclasses import replace

import pytest

from core.claims import Claim, final
from core.records.record import read_records
from core.run.gate_trials import MissedGates
from core.run.order import run_order
from core.run.request import Order
from core.settings.resolve import resolve
from core.settings.run_settings import TRIAL_SEED
from core.stages.chain import Chain
from core.stages.record import trial_record
from core.verdicts.verdict_records import changed_claims
from papers.deepseekmath_grpo import PAPER

ENTROPY = final("entropy")
POSITIVE = ENTROPY.of("grpo") > 0.0
ACTS = Claim("acts", "s", POSITIVE, acts=ENTROPY.of("grpo") >= 0.01)
IDLE = Claim(
    "idle",
    "s",
    ENTROPY.of("online-rft") > ENTROPY.of("grpo"),
    acts=ENTROPY.of("online-rft") >= 1000.0,
)
UNREAD = Claim("unread", "s", ENTROPY.of("rft") > 0.0, acts=final("no-curve").of("rft") >= 0.0)


@pytest.fixture
def order(root, settings):
    """Return the order of `--claims` for a paper with these claims."""
    del root

    def made(*claims):
        paper = replace(PAPER, claims=claims)
        arms, seeds = paper.claimed_arms("cpu"), (0, 1)
        return Order(paper=paper, arms=arms, seeds=seeds, fair=True, arguments=settings)

    return made


def test_a_claim_that_misses_a_gate_is_left_out_and_its_arms_do_not_run(order, capfd):
    outcome = run_order(order(ACTS, IDLE, UNREAD))
    assert sorted((run["arm"], run["seed"]) for run in outcome.runs) == [("grpo", 0), ("grpo", 1)]
    said = capfd.readouterr().err
    assert "claim idle is not run: on the trial seed, which is not judged, inert: " in said
    assert "expected >= 1000" in said
    assert "claim unread is not run" in said
    assert "a gate cannot be read: " in said
    acts, idle, unread = outcome.verdicts
    assert acts["gates"][0]["below"] == "inert"
    assert len(acts["gates"][0]["values"]) == 2
    assert (idle["verdict"], unread["verdict"]) == ("inert", "undecided")
    assert idle["reason"].startswith("on the trial seed, which is not judged, final(entropy)")
    assert "a gate cannot be read: " in unread["reason"]
    assert (idle["p"], idle["runs"]) == (None, [])
    assert {*outcome.claims["planned"]} == {"acts"}
    paper = replace(PAPER, claims=(ACTS, IDLE, UNREAD))
    assert changed_claims(paper, outcome.claims, outcome.runs) == []
    forgotten = outcome.claims | {"missed": {}}
    assert changed_claims(paper, forgotten, outcome.runs) == ["idle", "unread"]
    seeds = {record["seed"] for record in read_records(PAPER.slug) if record["kind"] == "run"}
    assert TRIAL_SEED not in seeds


def test_nothing_runs_if_no_claim_passes_its_gates(order):
    with pytest.raises(MissedGates, match="idle: inert: ") as raised:
        run_order(order(IDLE))
    assert raised.value.exit_code == 1
    assert [record for record in read_records(PAPER.slug) if record["kind"] == "run"] == []


def test_a_trial_has_scores_only_where_a_preparation_made_its_rows(root, settings):
    del root
    sampled = {"num_prompts": 6, "num_generations": 2, "least_reward": 0.0}
    paper = replace(
        PAPER,
        claims=(),
        benchmarks=("gsm8k",),
        preparations={"accepted": {"family": "rejection-sampling", **sampled}},
        arms={
            "own": {"family": "sft", "data": "prepared:accepted"},
            "plain": {"family": "sft", "data": "pocket-worked"},
        },
    )
    shared = (settings[0], "max_steps=1", "eval_limit=4", "heldout_problems=2")
    chains = {arm: Chain(resolve(paper, arm=arm, arguments=shared), 1000) for arm in paper.arms}
    own, plain = (trial_record(chain) for chain in chains.values())
    assert own["data"]["name"] == "prepared:accepted"
    assert [row["mirrors"] for row in (*own["start_scores"], *own["scores"])] == ["gsm8k"] * 2
    assert plain["start_scores"] == plain["scores"] == []
    assert all(record["curves"] for record in (own, plain))
    assert read_records(PAPER.slug) == []
