"""Records and pages of profiles, made of runs whose numbers are known."""

import re
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
from profile_records import made, record_all

from core.cli.finding import compare as compare_records
from core.pages.profiles import columns_of, profiles_files, write_profile
from core.profiles.effects import EFFECTS
from core.profiles.findings import FINDINGS, Finding
from core.profiles.mechanisms import MECHANISMS
from core.profiles.naming import find_algorithm
from core.profiles.probes import PROBES
from core.profiles.profiling import compare
from core.profiles.profiling import recorded as profile_recorded
from core.profiles.runs import Request, chain_of, run_all
from core.profiles.scores import Row, profiles, recorded_effect, values_of
from core.profiles.trainings import TRAININGS
from core.records.places import Shelf
from core.records.record import read_record, record_file, write_record
from core.spread.pool import FailedUnit
from eval.errors import BadValue
from eval.stats.probe_scores import ProbeScore
from eval.tables.filters import short


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    monkeypatch.setattr("core.profiles.scores.EFFECTS", {})  # those of the records made here
    return record_all()


def test_the_published_effects_are_those_of_the_published_records():
    archive = profiles(Shelf.PUBLISHED)
    for name, effect in EFFECTS.items():
        recorded: Any = recorded_effect(PROBES[name], archive)
        assert effect.value == pytest.approx(recorded.value, rel=1e-5)
        assert effect.error == pytest.approx(recorded.error, rel=1e-3)


@pytest.mark.long
def test_a_finding_of_every_published_algorithm_is_supported_by_its_scores():
    """The comparisons that it names are computed again from the records, at one learning rate."""
    columns = columns_of(profiles(Shelf.PUBLISHED))
    assert {column.name for column in columns} == FINDINGS.keys()
    for column in columns:
        finding = FINDINGS[column.name]
        named = [*finding.better, *finding.worse, *finding.alike]
        assert sorted(re.findall("{([^}]+)}", finding.text)) == sorted(named)
        assert column.finding is not None, column.name
        assert column.base["kernels"] == column.record["kernels"]
        if "below its start" in finding.text:
            assert any(column.name in column.rows[name].row.below_start for name in finding.worse)


def test_an_algorithm_that_ends_below_its_start_is_marked(recorded):
    """The start has 20 % and all but this one end near 60 %."""
    broken = made("rloo", -50)
    rows = {row.probe.name: row for row in compare(broken, recorded["grpo"]).rows}
    assert {row.below_start for row in rows.values()} == {("rloo",)}
    assert compare(recorded["dapo"], recorded["grpo"]).rows[0].remarks == ()
    page = write_profile(broken, recorded["grpo"]).read_text(encoding="utf-8")
    assert page.count("rloo ends below its start") > 3
    table = str(profiles_files(Shelf.HERE)["profile.md"])
    marked = next(line for line in table.splitlines() if line.startswith("| [rloo]"))
    assert "↓" in marked
    assert "↓" not in next(line for line in table.splitlines() if line.startswith("| [dapo]"))


def test_a_finding_needs_its_comparisons_at_one_rate():
    def row(value, error=0.1, rates=(1.0, 1.0)):
        score = ProbeScore(value, value - error, value + error)
        return Row(probe=PROBES["learns"], score=score, rates=rates)

    finding = Finding(text="", better=("a",), worse=("b",), alike=("c",))
    rows = {"a": row(1.0), "b": row(-1.0), "c": row(0.05)}
    assert finding.holds(rows)
    for name, other in (("a", row(0.05)), ("b", row(1.0)), ("c", row(1.0))):
        assert not finding.holds({**rows, name: other})
        assert not finding.holds({k: v for k, v in rows.items() if k != name})
    assert not finding.holds({**rows, "a": row(1.0, rates=(1.0, 3.0))})


def test_profiles_are_compared_with_those_of_their_processor(recorded):
    """Seeds start from other weights on another one."""
    elsewhere = {"kernels": {**recorded["grpo"]["kernels"], "processor": "another"}}
    values = {"seeds": [*range(20, 28)], "values": [0.0] * 8, "statistic": [0.5] * 8}
    probes = recorded["grpo"]["probes"] | {"learns": values}
    other = write_record({**recorded["grpo"], **elsewhere, "probes": probes, "created": "2099"})
    assert other["supersedes"] is None
    (column,) = columns_of(profiles())
    assert column.base["digest"] == recorded["grpo"]["digest"]
    effect: Any = recorded_effect(PROBES["learns"], profiles())
    assert effect.value == pytest.approx(20, abs=2)


def test_a_record_is_read_back_as_it_was_written(recorded):
    for record in recorded.values():
        assert read_record(record_file("profile", record["digest"])) == record
    dapo = recorded["dapo"]
    assert dapo["config"]["settings"]["epsilon_high"] == 0.28
    assert dapo["seeds"] == [*range(20, 28)]
    assert dapo["probes"].keys() == PROBES.keys()
    assert dapo["rates"]["choice"]["best"] == 3e-4
    step, mean, low, high = dapo["trainings"]["choice"]["curves"]["reward"][0]
    assert step == 16
    assert low < mean < high


def test_an_algorithm_half_as_good_as_each_mechanism_scores_a_half(recorded):
    rows = {row.probe.name: row for row in compare(recorded["dapo"], recorded["grpo"]).rows}
    assert rows.keys() == PROBES.keys()
    for name, row in rows.items():
        assert row.score is not None, (name, row.reason)
        assert row.score.value == pytest.approx(0.5, abs=0.12)
        assert row.score.is_apart


def test_a_measure_that_changed_does_not_read_the_values_of_the_one_before(recorded):
    other = {**recorded["grpo"]["probes"]["learns"], "measure": "another"}
    old = {**recorded["grpo"], "probes": {"learns": other}}
    assert values_of([old], "learns") == {}
    assert len(values_of([old, recorded["grpo"]], "learns")) == 8
    (row,) = compare(recorded["dapo"], old).rows
    assert row.score is None


def test_the_page_of_an_algorithm_has_its_worst_seed(recorded):
    runs = recorded["dapo"]["trainings"]["choice"]["runs"]
    ends = [run["accuracy"][1] for run in runs]
    page = write_profile(recorded["dapo"], recorded["grpo"])
    own = f"{short(fmean(ends))} ({short(min(ends))} to {short(max(ends))})"
    assert re.search(rf"\| choice +\| +{re.escape(own)} +\|", page.read_text(encoding="utf-8"))
    assert f"<td>{own}</td>" in page.with_suffix(".html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("recorded")
def test_the_page_of_a_mechanism_names_the_rewards_that_it_changes():
    archive = profiles()
    (own,), (grpo,) = archive["soft-punishment"], archive["grpo"]
    page = write_profile(own, grpo).read_text(encoding="utf-8")
    assert "`rewards=Accuracy(" in page
    assert "SoftOverlong(" in page
    assert "`rewards=" not in write_profile(grpo, own).read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["svg", "png"])
def test_three_profiles_are_drawn_in_one_picture(recorded, form, tmp_path, capsys):
    names = [made(name, 5)["digest"] for name in ("rloo", "dr-grpo")] + [recorded["dapo"]["digest"]]
    figure = tmp_path / f"three.{form}"
    compare_records(*names, figure=figure)
    assert "dr-grpo" in capsys.readouterr().out
    picture = figure.read_bytes()
    assert picture.startswith(b"<?xml" if form == "svg" else b"\x89PNG")
    assert form == "png" or all(name in picture for name in (b"rloo", b"dr-grpo", b"dapo"))


def test_what_three_profiles_cannot_be_is_said(recorded, tmp_path):
    one, other, figure = recorded["dapo"]["digest"], recorded["grpo"]["digest"], tmp_path / "x.svg"
    with pytest.raises(BadValue, match="a third profile is drawn only, add --figure"):
        compare_records(one, other, one)
    with pytest.raises(BadValue, match="expected different algorithms"):
        compare_records(one, other, one, figure=figure)
    with pytest.raises(BadValue, match="--samples is for runs"):
        compare_records(one, other, samples=2)
    assert not figure.exists()


@pytest.mark.usefixtures("recorded")
def test_pages_show_every_probe_and_count_the_scores_of_chance():
    files: dict[str, Any] = {**profiles_files(Shelf.HERE)}
    assert {"profile.md", "profile.html", "probes.md", "profile/dapo.md"} <= files.keys()
    assert {"profile/dapo.svg", "profile/dapo-curves.svg"} <= files.keys()
    assert not {f"profile/{name}.md" for name in MECHANISMS} & files.keys()
    table = files["profile.md"]
    assert f"{len(PROBES)} of {len(PROBES)} scores have a star; 1 would" in table
    for probe in PROBES.values():
        assert probe.question in files["profile/dapo.md"]
        assert f'id="{probe.name}"' in files["profile/dapo.html"]
        assert f"| {probe.name} " in files["probes.md"]
    links = re.findall(r'href="(profile/dapo\.html#[^"]+)"', files["profile.html"])
    assert [link.partition("#")[2] for link in links] == [*PROBES]


def test_a_failed_process_is_noted_and_the_others_go_on(tmp_path, monkeypatch):
    def run_units(units, _jobs, failed):
        ran.extend(unit.name for unit in units)
        failed(FailedUnit(f"{units[0].name}: BadValue: too few prompts", 2))

    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    monkeypatch.setattr("core.profiles.runs.run_units", run_units)
    algorithm = find_algorithm(["ppo"])
    chains = [chain_of(algorithm, "hard-prompts", seed, 1.0) for seed in (20, 21)]
    probes = (PROBES["rarely-right"],)
    request = Request(algorithm=algorithm, arguments=("ppo",), probes=probes, seeds=3, jobs=1)
    failures: dict[str, dict[int, str]] = {}
    ran: list[str] = []
    assert run_all(request, chains, failures) == {ran[0]}
    assert failures == {"hard-prompts": {20: "BadValue: too few prompts"}}
    assert len(ran) == 2


def test_a_failed_training_leaves_its_probes_without_a_score(recorded):
    failures = {"choice": {21: "loss is nan"}}
    record = made("rloo", 5, failures=failures)
    rows = {row.probe.name: row for row in compare(record, recorded["grpo"]).rows}
    assert rows["learns"].score is None
    assert rows["learns"].reason == "rloo: seed 21 failed: loss is nan"
    assert rows["many-updates"].score is not None
    page = write_profile(record, recorded["grpo"]).read_text(encoding="utf-8")
    assert "seed 21 failed: loss is nan" in page


def test_a_family_without_samples_has_scores_where_it_is_trained(recorded):
    record = made("dft", 5)
    rows = {row.probe.name: row for row in compare(record, recorded["grpo"]).rows}
    assert rows["learns"].score is not None
    assert rows["old-sampler"].reason == "dft: the family sft is not trained in this world"


def test_without_a_profile_of_plain_grpo_there_are_no_pages(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    assert profiles_files(Shelf.HERE) == {}


def test_a_record_made_with_the_kernels_here_is_taken_for_the_same_question(recorded, monkeypatch):
    def asked(name, seeds=8, only=("learns", "limit")):
        probes = tuple(PROBES[one] for one in only)
        return Request(
            algorithm=find_algorithm([name]), arguments=(name,), probes=probes, seeds=seeds, jobs=1
        )

    assert profile_recorded(asked("grpo")) == recorded["grpo"]
    assert profile_recorded(asked("grpo", seeds=3)) == recorded["grpo"]
    assert profile_recorded(asked("grpo", seeds=9)) is None
    assert profile_recorded(asked("rloo")) is None
    assert profile_recorded(asked("no-clip")) is None  # its record has one probe
    changed = replace(PROBES["limit"], measure=PROBES["learns"].measure)
    of_another = replace(asked("grpo"), probes=(changed,))
    assert profile_recorded(of_another) is None
    monkeypatch.setattr("core.profiles.record.acting_kernels", lambda: {"torch": "other"})
    assert profile_recorded(asked("grpo")) is None


def test_an_algorithm_that_is_plain_grpo_has_zeros_without_intervals(recorded):
    same = write_record({**recorded["grpo"], "arm": "rloo", "digest": "", "supersedes": None})
    rows = {row.probe.name: row for row in compare(same, recorded["grpo"]).rows}
    assert rows["learns"].score == ProbeScore(0.0, None, None)
    assert "| +0.00 |" in str(profiles_files(Shelf.HERE)["profile.md"])


def test_the_difficulty_is_read_in_plain_grpo_whatever_the_other_algorithm_is(recorded):
    dapo = recorded["dapo"]
    easy = {**dapo["probes"]["small-groups"], "statistic": [0.0] * 8}
    base = {**dapo, "probes": {**dapo["probes"], "small-groups": easy}}
    rows = {row.probe.name: row for row in compare(recorded["grpo"], base).rows}
    assert rows["small-groups"].score is not None


@pytest.mark.usefixtures("recorded")
def test_the_page_of_probes_has_the_rates_of_a_pair_and_no_score_of_chance_against_itself():
    page = str(profiles_files(Shelf.HERE)["probes.md"])
    learns = next(line for line in page.splitlines() if line.startswith("| learns "))
    assert "| one of its pair " in learns
    assert "0.0003 and 0.0003" in learns


def test_every_training_belongs_to_a_probe():
    places = {probe.place for probe in PROBES.values()}
    assert places | {TRAININGS[place].base for place in places} == TRAININGS.keys()
