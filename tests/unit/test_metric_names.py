"""Scores that differ in their temperature alone have names, columns and sets of their own."""

import pytest

from core.pages.runs import measured_in, score_of
from core.records.metric_names import metric_names
from core.records.sample_files import own_sets
from core.stages.watch.wandb_report import mean_scores


def rows(*temperatures, metric="avg@2"):
    base = {"benchmark": "s", "mirrors": "s", "mode": "cot", "metric": metric}
    return [
        base | {"value": 10 * t, "digest": f"d{t}"} | ({"temperature": t} if t else {})
        for t in temperatures
    ]


@pytest.mark.parametrize(
    ("scores", "names"),
    [
        (rows(0.2), ["avg@2"]),
        (rows(0.2, 0.8), ["avg@2 at 0.2", "avg@2 at 0.8"]),
        (rows(0.0, 0.8), ["avg@2 at 0", "avg@2 at 0.8"]),
        (rows(0.2, 0.2), ["avg@2", "avg@2"]),
        (rows(0.2) + rows(0.8, metric="maj@2"), ["avg@2", "maj@2"]),
    ],
)
def test_the_temperature_is_named_where_only_it_differs(scores, names):
    assert metric_names(scores) == names


def test_tables_sets_and_logs_keep_both_scores():
    run = {
        "arm": "main",
        "scores": rows(0.2, 0.8),
        "start_scores": [],
        "sampling": {},
        "train": {},
    }
    assert measured_in([run]) == [("s", "avg@2 at 0.2"), ("s", "avg@2 at 0.8")]
    row = score_of(run, "scores", ("s", "cot", "avg@2 at 0.8"))
    assert row["value"] == 8.0
    assert own_sets(run) == {
        "scores/s/cot/avg@2 at 0.2": "d0.2",
        "scores/s/cot/avg@2 at 0.8": "d0.8",
    }
    assert mean_scores([run]) == {
        "score/main/s/cot/avg@2 at 0.2": 2.0,
        "score/main/s/cot/avg@2 at 0.8": 8.0,
    }
