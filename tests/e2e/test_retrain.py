"""Forged records of runs under right digests: what checks see, and what only training does."""

import json
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace

import pytest
from short_run import MODULE, SLUG
from typer.testing import CliRunner

from core.cli.main import app
from core.paper.registry import find_entry
from core.records.answers import content_of, name_of
from core.records.passed import Passed
from core.records.places import own_results, record_file
from core.records.run_samples import read_run_samples, write_run_samples
from core.records.sample_files import sample_files
from core.run.check import whole_records
from core.run.retrain import REMOVED, differences, draw_runs, retrained_problems
from core.settings.canonical import canonical
from core.spread.pool import Unit, run_units
from core.stages.watch.adapters import CORRELATION
from core.verdicts.regrade import Regrader
from core.verdicts.up_to_date import asked_problems
from eval.plugins import VARIABLE, use
from eval.samples.store import digest_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with one recorded run."""
    root = tmp_path_factory.mktemp("short")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_ROOT", str(root))
        patch.setenv(VARIABLE, "")
        (root / "short_run.py").write_text(MODULE)
        use(root / "short_run.py")
        run_units([Unit("grpo 0", ("one", SLUG, "--arm", "grpo", "--at", "cpu"))], 1)
        yield root


@pytest.fixture(scope="module")
def record(folder):
    """The record of the run."""
    del folder
    return next(r for r in whole_records(SLUG)[0] if r["kind"] == "run")


def test_training_again_gives_the_record(folder, capsys):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (one,) = draw_runs([find_entry(SLUG)], 1, draw=3)
    assert retrained_problems(one) == []
    assert "compared exactly" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def set_at(*path, to):
    """Return a forgery that sets one value, or changes it if `to` is a function."""

    def forge(record):
        place = record
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = to(place[path[-1]]) if callable(to) else to

    return forge


def times(factor):
    """Return a change of the values of a curve."""
    return lambda points: [[step, value * factor + 0.001] for step, value in points]


def shorter(points):
    return points[:-1]


def swapped_curves(record):
    curves = record["curves"]
    curves["loss"], curves["reward"] = curves["reward"], curves["loss"]


SAMPLES = {}  # those of the record and of its forged copies, by digest


def other_samples(record):
    """Samples have other texts, under their right digest."""
    row = record["scores"][0]
    told = [replace(sample, output=sample.output + " ") for sample in SAMPLES[row["digest"]]]
    row["digest"] = digest_of(told)
    SAMPLES[row["digest"]] = told


SCORE = ("scores", 0)
# What is forged in the record of the run.
FORGERIES = {
    "longer completions": set_at("curves", "completions/mean_length", to=times(1.5)),
    "a higher reward": set_at("curves", "reward", to=times(1.1)),
    "a slightly higher entropy": set_at("curves", "entropy", to=times(1.0)),
    "another gradient": set_at("curves", "grad_norm", to=times(0.5)),
    "another loss": set_at("curves", "loss", to=times(2)),
    "another held-out accuracy": set_at("curves", "held_out/accuracy", to=times(1.2)),
    "a shorter curve": set_at("curves", "reward", to=shorter),
    "an invented curve": set_at("curves", "kl", to=[[1, 0.5]]),
    "a curve left out": lambda record: record["curves"].pop("entropy"),
    "two curves swapped": swapped_curves,
    "other weights": set_at("train", "weights", to="0" * 64),
    "more steps": set_at("train", "steps", to=3),
    "other held-out answers": set_at("train", "held_out", "2", to="0" * 64),
    "held-out answers left out": lambda record: record["train"].pop("held_out"),
    "a higher score": set_at(*SCORE, "value", to=90),
    "a narrower interval": set_at(*SCORE, "low", to=lambda low: low + 1),
    "more problems": set_at(*SCORE, "n", to=600),
    "another draw": set_at(*SCORE, "draw", to=4),
    "scores of the start as those of the trained model": lambda record: record.update(
        scores=record["start_scores"]
    ),
    "a lower start": set_at("start_scores", 0, "value", to=0),
    "scores left out": lambda record: record["scores"].clear(),
    "other samples": other_samples,
    "another seed": set_at("seed", to=1),
    "another learning rate": set_at("config", "learning_rate", "value", to=3e-4),
    "another source of a setting": set_at("config", "learning_rate", "source", to="s9"),
    "another starting model": set_at("model", "digest", to="0" * 64),
    "another size": set_at("size", to="7.0B"),
    "other data": set_at("data", "digest", to="0" * 64),
    "fewer rows": set_at("data", "rows", to=10),
    "fewer tokens in a batch": set_at("train", "plan", to={}),
}
# Circumstances, which no number follows from.
UNSEEN = {
    "a faster training": set_at("timings", "wall_s", to=0.1),
    "an earlier day": set_at("created", to="2020-01-01T00:00:00+00:00"),
    "another Python": set_at("versions", "python", to="2.7"),
    "another version of the grader": set_at(*SCORE, "grader", to="0"),
}


def forged(record, forge):
    """Return a forged copy of a record under its right digests."""
    SAMPLES.update({digest: read_run_samples(record, digest) for digest in sample_files(record)})
    copy = deepcopy({k: v for k, v in record.items() if k not in ("digest", "content")})
    forge(copy)
    made = canonical(copy)
    made["content"] = content_of(made)
    named = {**made, "digest": name_of(made)}
    with suppress(KeyError):  # it names samples that nobody made
        write_run_samples(named, SAMPLES.__getitem__, own_results())
    return named


def is_seen(record, copy):
    """Return whether checks or training again, which gives the record, see a forged copy."""
    regrader = Regrader(Passed(ask_again=True))
    found = [*regrader.find_damage(copy)] or [*regrader.problems(copy)]
    return bool(found or [*asked_problems(find_entry(SLUG).load(), copy, 1.0)]) or bool(
        [*differences(copy, record)]
    )


@pytest.mark.usefixtures("folder")
def test_30_of_34_forgeries_are_seen(record):
    assert not is_seen(record, forged(record, lambda _: None))
    seen = {name: is_seen(record, forged(record, f)) for name, f in (FORGERIES | UNSEEN).items()}
    assert [name for name, is_it in seen.items() if not is_it] == [*UNSEEN]
    assert (len(FORGERIES), len(seen)) == (30, 34)


@pytest.mark.usefixtures("folder")
def test_a_forged_curve_fails_the_command(record):
    """`repro check --retrain` trains again, names the curve and exits with 1."""
    copy = forged(record, FORGERIES["longer completions"])
    path = record_file(SLUG, record["digest"])
    path.write_text(json.dumps({k: v for k, v in copy.items() if k != "digest"}))
    refused = CliRunner().invoke(app, ["check", SLUG, "--retrain", "1", "--draw", "5", "--json"])
    (line,) = json.loads(refused.stdout)["retrained"]
    assert "curves completions/mean_length" in line
    assert (refused.exit_code, "--draw 5" in refused.stderr) == (1, True)


@pytest.mark.usefixtures("folder")
def test_only_a_metric_that_was_added_later_may_be_missing_from_a_record(record):
    again = deepcopy(record)
    again["curves"][CORRELATION] = [[1, 0.5]]
    again |= {"pairs": "1" * 64, "probabilities": {"kl": {"after": 0.5}}}
    assert [*differences(record, again)] == []
    forged_curve = deepcopy(again)
    forged_curve["curves"][CORRELATION] = [[1, 0.4]]
    for recorded in (forged_curve, record | {"curves": {}}):
        assert [*differences(recorded, again)]
    assert [*differences(again, record)]


@pytest.mark.usefixtures("folder")
def test_only_a_metric_that_was_removed_later_may_be_missing_from_a_retraining(record):
    older, again = deepcopy(record), deepcopy(record)
    again["curves"] = {n: v for n, v in record["curves"].items() if f"curves {n}" not in REMOVED}
    older["curves"] = again["curves"] | {"completions/clipped_ratio": [[1, 0.5]]}
    assert [*differences(older, again)] == []
    kept = deepcopy(older)
    kept["curves"]["completions/clipped_ratio"] = [[1, 0.4]]
    assert [*differences(older, kept)]
    assert [*differences(again, older)]


@pytest.mark.parametrize("asked", [("--retrain", "99"), ("--draw", "1"), ("--within", "5")])
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_drawn_is_misuse(asked):
    refused = CliRunner().invoke(app, ["check", SLUG, *asked])
    assert (refused.exit_code, "--retrain" in refused.stderr) == (2, True)


@pytest.mark.parametrize(("name", "is_other"), [("prepared:pairs", False), ("pairs", True)])
def test_rows_that_a_model_made_may_differ_with_the_processor(record, name, is_other):
    first = deepcopy(record) | {"data": {"name": name, "rows": 9, "digest": "1" * 64}}
    second = deepcopy(first) | {"data": {"name": name, "rows": 8, "digest": "2" * 64}}
    second["train"]["kernels"] = {"processor": "another"}
    second["scores"] = [row | {"digest": "3" * 64} for row in second["scores"]]
    lines = list(differences(first, second))
    assert any(line.startswith("data is ") for line in lines) == is_other


@pytest.mark.parametrize(("field", "is_other"), [("digest", False), ("parameters", True)])
@pytest.mark.parametrize("rounds_an_answer", [False, True])
def test_the_weights_of_a_start_may_differ_with_the_processor(
    record, field, is_other, rounds_an_answer
):
    second = deepcopy(record)
    second["model"][field] = 7
    second["train"]["kernels"] = {"processor": "another"}
    if rounds_an_answer:
        second["scores"] = [row | {"digest": "3" * 64} for row in second["scores"]]
    lines = [line for line in differences(record, second) if line.startswith("model ")]
    assert bool(lines) == is_other
