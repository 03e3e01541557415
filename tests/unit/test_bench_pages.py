"""What `repro bench` makes of its measures: exponents, what is met, the chart and the page."""

import subprocess
import sys
from dataclasses import asdict, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.bench import table
from core.bench.commands import WATCH, output
from core.bench.growth import AXES, Shape, endless, exponent, prompts, slope
from core.bench.measure import Measure, in_turn, peak_memory, several_in_turn
from core.pages.render import render_all
from core.pages.speed_chart import chart
from core.records.places import record_files, results
from core.records.record import new_record, read_records, write_record
from core.run.check import check_papers
from core.run.publish import move, publish
from eval.errors import BadValue

PAIR = Measure(name="GRPO step, beta 0", unit="CPU s", ours=2.0, theirs=8.0, peer="TRL", at_least=3)
ALONE = Measure(name="repro list", unit="s", ours=0.27, at_most=0.4)
CURVE = [
    Measure(name="length", at=at, unit="CPU s", ours=0.01 * at, theirs=0.001 * at**1.5, peer="TRL")
    for at in (64, 128, 256)
]


def row(bench, measure):
    return {"bench": bench, **asdict(measure), "ratio": measure.ratio, "met": measure.met}


ROWS = [
    row("step", PAIR),
    row("commands", ALONE),
    *(row("growth", one) for one in (*CURVE, exponent(CURVE, at_least=1.0))),
]


@given(power=st.floats(-3, 3), factor=st.floats(1e-3, 1e3))
def test_the_slope_of_a_power_is_its_exponent_in_any_unit(power, factor):
    x = [2.0, 4.0, 16.0, 32.0]
    y = [value**power for value in x]
    assert slope(x, y) == pytest.approx(power, abs=1e-9)
    assert slope(x, [factor * value for value in y]) == pytest.approx(power, abs=1e-9)
    assert slope([factor * value for value in x], y) == pytest.approx(power, abs=1e-9)


def test_a_fixed_cost_makes_the_exponent_of_linear_growth_smaller():
    x = [32.0, 64.0, 128.0]
    assert 0.5 < slope(x, [10.0 + value for value in x]) < 1.0


def test_each_side_of_a_curve_has_its_own_exponent():
    found = exponent(CURVE, at_least=1.0)
    assert (found.ours, found.theirs) == (pytest.approx(1.0), pytest.approx(1.5))
    assert found.met


def test_peak_memory_is_not_that_of_the_process_before():
    ballast = torch.ones(2**27)
    assert peak_memory() > ballast.nbytes / 1e9
    code = "from core.bench.measure import peak_memory; print(peak_memory())"
    child = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert 0.001 < float(child.stdout) < ballast.nbytes / 1e9
    hold = [sys.executable, "-c", "held = b'1' * 2**27"]
    watched = int(output([sys.executable, "-c", WATCH, *hold])) * 1024
    assert 2**27 < watched < ballast.nbytes


def test_what_was_measured_is_recorded_though_the_next_fails(root, monkeypatch):  # noqa: ARG001
    def broken():
        raise BadValue("broken")

    monkeypatch.setattr(table, "BENCHES", {"commands": lambda: [ALONE], "step": broken})
    with pytest.raises(BadValue):
        table.bench(["commands", "step"])
    (record,) = read_records("bench")
    assert record["measures"] == [row("commands", ALONE)]


@pytest.mark.parametrize(
    ("measure", "met"),
    [
        (PAIR, True),
        (replace(PAIR, at_least=4.0), True),
        (replace(PAIR, at_least=4.1), False),
        (replace(PAIR, at_least=None), None),
        (ALONE, True),
        (replace(ALONE, at_most=0.2), False),
        (replace(PAIR, at_least=None, at_most=1.9), False),
    ],
)
def test_a_measure_is_met_by_its_ratio_or_by_ours(measure, met):
    assert measure.met is met


def test_both_sides_take_turns_and_give_their_medians():
    calls = []

    def side(name, values):
        times = iter(values)
        return lambda: (calls.append(name), [next(times)])[1]

    found = in_turn(side("a", [1, 9, 2]), side("b", [5, 4, 30]), 3, name="n", unit="s")
    assert (found.ours, found.theirs) == (2, 5)
    assert calls == ["a", "b"] * 3


def test_several_quantities_of_the_same_runs_have_medians_of_their_own():
    def side(runs):
        values = iter(runs)
        return lambda: dict(zip(("step", "memory"), next(values), strict=True))

    ours, theirs = side([(1, 5), (9, 6), (2, 7)]), side([(8, 1), (7, 3), (6, 2)])
    named = {"memory": {"name": "m", "unit": "GB"}, "step": {"name": "s", "unit": "s"}}
    found = several_in_turn(ours, theirs, 3, named, peer="TRL")
    assert [(one.name, one.ours, one.theirs, one.peer) for one in found] == [
        ("m", 6, 2, "TRL"),
        ("s", 2, 7, "TRL"),
    ]


def test_the_policy_of_growth_never_ends_and_its_prompts_are_exact():
    tokenizer, model = endless()
    shape = Shape(completions=32, group=8, prompt=24)
    texts = prompts(shape)
    ids = tokenizer(texts, return_tensors="pt")["input_ids"]
    assert ids.shape == (4, 24)
    assert len(set(texts)) == 4
    with torch.no_grad():
        logits = model(ids).logits
    assert logits.shape[-1] <= tokenizer.eos_token_id
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id


def test_every_point_of_growth_is_whole_groups_of_whole_micro_batches():
    shapes = [
        replace(shape, **{axis: at}) for axis, (shape, places) in AXES.items() for at in places
    ]
    assert all(shape.completions % shape.group == 0 for shape in shapes)
    assert all(shape.completions <= 64 or shape.completions % 64 == 0 for shape in shapes)


def test_the_chart_names_every_workload_and_is_the_same_every_time():
    drawn = chart(ROWS)
    assert chart(ROWS) == drawn
    text = drawn.decode()
    for words in ("step: GRPO step, beta 0", "4.00x: 2 against 8 CPU s", "commands: repro list"):
        assert f">{words}</text>" in text
    assert ">exponents 1.00 and 1.50</text>" in text
    assert "length" not in chart(ROWS[:2]).decode()


def store(created, *rows):
    content = {"paper": "bench", "scale": "cpu", "machine": "m", "measures": list(rows)}
    return write_record(new_record("bench", **content, created=created))


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    return tmp_path


def test_the_page_shows_the_newest_measures_of_every_workload_and_what_is_met(root):
    store("2026-01-01", *ROWS)
    store("2026-01-02", row("step", replace(PAIR, ours=4.0)))
    assert render_all() == ([root / "runs" / "reports" / "speed.md"], [])
    page = (root / "runs" / "reports" / "speed.md").read_text()
    lines = {line.split("|")[2].strip(): line for line in page.splitlines() if "|" in line}
    assert "2.00" in lines["GRPO step, beta 0"]
    assert "ratio ≥ 3 | **no**" in lines["GRPO step, beta 0"]
    assert "ours ≤ 0.4 | yes" in lines["repro list"]
    assert page.count("2026-01-02") == 1
    assert page.count("| length ") == len(CURVE)


@pytest.mark.usefixtures("root")
def test_the_page_is_checked_against_its_records():
    assert problems() == []  # nothing was measured yet
    record = store("2026-01-01", *ROWS)
    assert problems() == []  # nothing was published yet
    move([record])
    assert len(problems()) == 2  # page and chart are missing
    publish()
    assert problems() == []
    page = results().parent / "reports" / "speed.md"
    page.write_text(page.read_text().replace("4.00", "5.00"))
    assert problems() == [f"report: {page} differs from its records: run `repro publish`"]
    publish()
    assert problems() == []
    path = results() / "bench" / f"{record['digest']}.json"
    path.write_text(path.read_text().replace("8.0", "9.0").replace("8,", "9,"))
    assert len(problems()) == 1
    assert "altered" in problems()[0]


def problems():
    return check_papers()["speed"] if record_files() else []
