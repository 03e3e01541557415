"""Trainings that should differ and do not: equal weights, samples or curves of two records."""

from dataclasses import replace

import pytest

from core.paper.registry import find_paper
from core.verdicts.consistency import identical_trainings

PAPER = find_paper("dpo")
LOSSES = [[4, 0.7], [8, 0.0]]


def record(seed, *, norms=LOSSES, weights="a", noise=0.0):
    """A record of a training of a seed; its losses are another seed's plus noise."""
    return {
        "kind": "run",
        "arm": "dpo",
        "seed": seed,
        "scale": "cpu",
        "digest": f"{seed}",
        "paper": "dpo",
        "config": {},
        "train": {"weights": weights},
        "scores": [],
        "sampling": {},
        "curves": {"loss": [[step, loss + noise] for step, loss in LOSSES], "grad_norm": norms},
    }


@pytest.mark.parametrize(("weights", "said"), [("a", ["weights"]), ("b", [])])
def test_equal_weights_of_two_seeds_are_reported(weights, said):
    found = list(identical_trainings(PAPER, [record(20), record(21, weights=weights, noise=0.1)]))
    named = [name for line in found for name in ("weights", "curves") if f"its {name} are" in line]
    assert named == said


def test_arms_that_score_different_weights_of_one_training_have_its_curves():
    arms = {"live": {}, "ema": {"same_as": "live"}}
    paper = replace(PAPER, arms=arms)
    live, average = ({**record(20, weights=arm), "arm": arm} for arm in arms)
    assert list(identical_trainings(paper, [live, average])) == []
    (line,) = identical_trainings(replace(PAPER, arms={"live": {}, "ema": {}}), [live, average])
    assert " its curves are those of " in line


@pytest.mark.parametrize(("value", "said"), [(98.9, 1), (99.0, 0)])
def test_equal_samples_are_reported_unless_nearly_all_are_right(value, said):
    rows = [{"value": value, "digest": "s"}]
    runs = [{**record(seed, weights=f"{seed}", noise=seed), "scores": rows} for seed in (20, 21)]
    lines = list(identical_trainings(PAPER, runs))
    assert [" its samples are those of " in line for line in lines] == [True] * said


def test_weights_of_trainings_that_diverged_are_not_compared_and_their_curves_are():
    """None of their weights is a number, so that they are equal whatever the seed."""
    diverged = [record(seed, norms=LOSSES[:1], noise=seed) for seed in (20, 21)]
    assert list(identical_trainings(PAPER, diverged)) == []
    same = [record(seed, norms=LOSSES[:1]) for seed in (20, 21)]
    assert [" its curves are those of " in line for line in identical_trainings(PAPER, same)] == [
        True
    ]
