"""A plug-in's own world: its problems, data, starting model and regime, and the seeds it judges."""

import json
from dataclasses import replace

import pytest

from core.paper.registry import find_paper
from core.records.record import read_records
from core.run.order import run_order
from core.run.request import Order
from core.verdicts.judge import judge
from papers.dapo import PAPER as DAPO

CHOICE = {
    "config": {"regime": {"value": "choice", "source": "arm"}},
    "scores": [],
    "start_scores": [],
    "curves": {"entropy": [[1, 0.5], [2, 0.4]], "held_out/accuracy": [[0, 30.0], [2, 31.0]]},
}

PLUGIN = """
from functools import partial
from random import Random

from core.claims import Claim, late
from core.data.data_set import GRADED, DataSet
from core.data.sources import Generated, Problems
from core.families.nano import BASES, regime, start
from core.families.worlds import World
from core.paper import Paper
from core.rewards import Accuracy
from eval.sets.benchmarks import Benchmark
from eval.sets.generator import Generator
from eval.sets.problem import Answers, Problem

SIZES = {"train": 60, "valid": 40, "test": 20}


def echoes(split, seed):
    random, letters = Random(f"{split} {seed}"), "abc" if split == "train" else "def"
    return [
        Problem(
            id=f"{split}-{seed}-{n}", question=f"{x}=", answer=x, answers=Answers((x,), "whole")
        )
        for n, x in enumerate(random.choices(letters, k=SIZES[split]))
    ]


def demonstrations(seed):
    return [{"prompt": p.question, "completion": p.answer} for p in echoes("train", seed)]


SUITE = Benchmark(
    name="echo", title="Echo", n=20, max_tokens=3, generator=Generator(echoes, "echo 1"),
    frame="{}", in_turn=True,
)
ROWS = DataSet(name="echo", columns=GRADED, source=Problems(("echo",), holds_out=True))
SHOWN = DataSet(name="echo-demonstrations", source=Generated(demonstrations, "echo 1", "echo"))
WORLD = World(
    name="echo",
    regimes={
        "echo": {
            **regime("echo", "echo-start", updates=2, rate=1e-3, tokens=3, batch=16,
                     of_a_rollout=1),
            "heldout_problems": 10,
        }
    },
    preparations={
        "echo-start": {
            **start("echo", target=0, every=2, steps=4, batch=8, tokens=3),
            "heldout_problems": 10,
        }
    },
    bases=BASES,
    seeds=(40, 41, 42),
    cannot_show="a single letter",
)
PAPER = Paper(
    slug="echoes",
    title="Echoes",
    arxiv="2501.00001",
    family="grpo",
    model="pocket-instruct",
    data="pocket",
    rewards=(Accuracy(),),
    arms={"plain": {"regime": "echo"}, "wide": {"regime": "echo", "scale_rewards": "none"}},
    claims=(Claim("same", "They differ.", late("reward").of("plain") > late("reward").of("wide")),),
)
"""


@pytest.fixture
def paper(tmp_path, monkeypatch):
    path = tmp_path / "echoes_of_a_plugin.py"
    path.write_text(PLUGIN)
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    monkeypatch.setenv("REPRO_PLUGINS", "")  # `use` adds the file
    return find_paper(str(path))


def test_its_claims_are_judged_on_its_seeds_from_one_start_for_each(paper, tmp_path):
    outcome = run_order(Order(paper=paper, arms=paper.claimed_arms("cpu"), seeds=(0, 1), fair=True))
    runs = outcome.runs
    assert sorted((run["arm"], run["seed"]) for run in runs) == [
        (arm, seed) for arm in ("plain", "wide") for seed in (40, 41)
    ]
    (verdict,) = outcome.claims["verdicts"]
    assert verdict["seeds"] == [40, 41]
    starts = {run["seed"]: run["model"]["digest"] for run in runs}
    assert len({*starts.values()}) == 2
    assert all(run["model"]["digest"] == starts[run["seed"]] for run in runs)
    trained = [path.name for path in (tmp_path / "runs").glob("train-echo-*")]
    assert len(trained) == 2  # one for each seed, which both arms start from
    assert {row["benchmark"] for run in runs for row in run["scores"]} == {"echo"}
    assert {row["draw"] for run in runs for row in run["scores"]} == {40, 41}
    assert json.dumps(read_records("echoes"))


def test_a_seed_that_it_does_not_judge_has_no_verdict():
    paper = replace(DAPO, claims=(DAPO.claims[0],))
    runs = [
        {"arm": arm, "seed": seed, "digest": f"{arm} {seed}", **CHOICE}
        for arm in paper.claims[0].arms
        for seed in (0, 9, 100, 101)
    ]
    (verdict,) = judge(paper, runs)
    assert (verdict["verdict"], verdict["runs"]) == ("undecided", [])
    assert "no run of" in verdict["reason"]
    in_the_pocket_world = [{**run, "config": {}} for run in runs]
    assert "no run of" not in judge(paper, in_the_pocket_world)[0]["reason"]
