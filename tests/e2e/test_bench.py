"""`repro bench` measures what is named and stores the numbers as a record."""

import json

import pytest
import torch

from core.bench.growth import Shape, bench_growth, slope
from core.pages.speed import speed_files
from core.records.record import read_records


@pytest.mark.usefixtures("root")
def test_the_light_commands_are_measured_recorded_and_reported(repro):
    result = repro("bench", "commands", "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [row["name"] for row in rows] == ["repro --help", "repro list"]
    assert all(0.01 < row["ours"] < 60 for row in rows)  # a process was really started
    (record,) = read_records("bench")
    assert record["measures"] == rows
    drawn = speed_files([record])["speed.svg"].decode()
    assert ">commands: repro list</text>" in drawn
    assert ">commands: repro --help</text>" in drawn


def test_an_unknown_benchmark_is_misuse(repro, root):  # noqa: ARG001 - a new folder
    result = repro("bench", "comands")
    assert result.exit_code == 2
    assert "did you mean commands?" in result.output


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
def test_a_benchmark_of_a_gpu_without_one_is_misuse(repro, root):
    result = repro("bench", "gpu")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "found no CUDA device, expected one: run it on a machine with a GPU" in line
    assert not (root / "runs" / "results" / "bench").exists()


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")  # TRL reads it
def test_growth_measures_both_sides_at_every_point():
    axes = {
        "completions": (Shape(length=4, group=4), (4, 8)),
        "length": (Shape(completions=4, group=4), (4, 8)),
        "group": (Shape(completions=16, length=4), (2, 4)),
    }
    found = bench_growth(axes, 1)
    points = [one for one in found if one.at is not None]
    places = [(axis, at) for axis, (_, ats) in axes.items() for at in ats]
    assert [(one.name, one.at) for one in points] == places
    assert all(one.ours > 0 and one.theirs > 0 for one in points)
    by_completions, by_length, one_group = found[len(points) :]
    assert by_completions.ours == pytest.approx(slope([4, 8], [one.ours for one in points[:2]]))
    assert by_length.theirs == pytest.approx(slope([4, 8], [one.theirs for one in points[2:4]]))
    assert one_group.name == "one group of 16"
    assert one_group.peer == "ours, 8 groups of 2"
    assert one_group.ratio > 0
