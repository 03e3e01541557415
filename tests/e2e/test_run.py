"""`repro run` from nothing to a record: the same one every time, and damaged files are refused."""

import json
from shutil import copytree
from typing import Any

import pytest
from changed_settings import changed
from huggingface_hub import ModelCard

from core.models.chat_templates import template_text
from core.pages.card import elsewhere
from core.records.found import model_of
from core.records.passed import Passed
from core.records.places import DONE, record_files
from core.records.record import read_records
from core.records.run_samples import file_problem, read_run_samples, sample_files_of
from core.records.sample_files import own_sets, sample_files
from core.records.schema import runs_of
from core.stages.sources import model_version
from core.stages.stage import CARD
from core.verdicts.regrade import Regrader
from eval.samples.store import Sealed

PAPER = "deepseekmath-grpo"


def records(kind="run"):
    found: list[Any] = read_records(PAPER)  # Any: records of several kinds
    return [record for record in found if record["kind"] == kind]


@pytest.fixture(scope="module")
def first(run_once, settings):
    """The folder and the result of one short run."""
    return run_once(("run", PAPER, "--jobs", "1", *settings))


@pytest.fixture
def done(first, root):
    """The result of one short run, which is in this folder."""
    folder, result = first
    copytree(folder, root, dirs_exist_ok=True)
    return result


def test_a_run_writes_a_record_and_shows_table_verdicts_and_report(done, root):
    (run,) = records()
    assert not (root / "results").exists()
    assert (run["arm"], run["seed"], run["scale"], run["main"]) == ("grpo", 0, "cpu", True)
    assert run["config"]["beta"] == {"value": 0.04, "source": "deepseekmath-grpo s4.2"}
    assert run["config"]["max_steps"] == {"value": 3, "source": "command line"}
    assert [row["benchmark"] for row in run["scores"]] == [
        "pocket-gsm8k",
        "pocket-math",
        "pocket-mgsm-zh",
        "pocket-cmath",
    ]
    for row in (*run["scores"], *run["start_scores"]):
        assert row["n"] == 4
        assert 0 <= row["low"] <= row["value"] <= row["high"] <= 100
        assert row["limited"]
    for path, sets in sample_files_of(run):
        assert path.is_relative_to(root / "runs" / "results")
        assert file_problem(path, sets) == ""
    steps = [step for step, _ in run["curves"]["held_out/accuracy"]]
    assert steps == [0, 2, 3]
    assert [step for step, _ in run["curves"]["reward"]] == [1, 2, 3]
    assert run["sampling"]["pocket-math"]["after"]["k"] == [1, 2, 4]
    (claims,) = records("claims")
    verdicts = {v["id"]: v["verdict"] for v in claims["verdicts"]}
    assert len(verdicts) == 8
    assert verdicts["k3-nonnegative-unbiased"] == "held"
    assert verdicts["grpo-improves-policy"] == "no room"  # nothing is solved before or after
    assert "+ grpo" in done.stdout
    assert "held       k3-nonnegative-unbiased" in done.stdout
    assert "report.md" in done.stdout.splitlines()[-1]
    assert "one rollout" in done.stderr
    assert "rollout" in done.stderr.split("phase")[1]


def test_the_same_command_skips_what_is_done_and_gives_the_same_record(
    first, done, root, repro, settings, monkeypatch
):
    """The first line says where the record is; the report is named from where one stands."""
    monkeypatch.chdir(root)
    before = [(p, p.stat().st_mtime_ns) for p in record_files(PAPER)]
    again = repro("run", PAPER, "--jobs", 1, *settings)
    assert again.exit_code == 0
    first_line = again.stderr.splitlines()[0]
    assert first_line.startswith(f"{PAPER}, grpo seed 0 at cpu: recorded ")
    assert " s ago in runs/results/" in first_line or " min ago in runs/results/" in first_line
    assert "trained before" in again.stderr
    assert "one rollout" not in again.stderr
    assert [(p, p.stat().st_mtime_ns) for p in record_files(PAPER)] == before
    assert again.stdout == done.stdout.replace(f"{first[0]}/", "")


def test_a_card_beside_the_model_tells_what_the_record_says(done, repro, settings):
    """Scores, settings, verdicts and citation; a model is the same with a card and without."""
    del done
    (run,) = records()
    folder = model_of(run)
    card: Any = ModelCard.load(folder / CARD)  # Any: the data of a card is untyped
    found = {row.dataset_type: row.metric_value for row in card.data.eval_results}
    assert found == {row["benchmark"]: row["value"] for row in run["scores"]}
    for name, one in run["config"].items():
        assert f"| {name} | {elsewhere(one['value'])} | {one['source']} |" in card.text
    assert str(folder.parent.parent.parent) not in card.content  # no folder of this machine
    (claims,) = records("claims")
    for verdict in claims["verdicts"]:
        told = f"| {verdict['statement']} | {verdict['verdict']} |" in card.text
        assert told == (run["digest"] in verdict["runs"])
    assert run["data"]["digest"] in card.text
    assert "eprint = {2402.03300}" in card.text
    version = model_version(str(folder))
    (folder / CARD).unlink()
    assert model_version(str(folder)) == version
    assert repro("run", PAPER, "--jobs", 1, *settings).exit_code == 0
    assert str(ModelCard.load(folder / CARD)) == str(card)


@pytest.mark.usefixtures("noisy", "done")
def test_with_json_standard_output_is_json_alone(repro, settings):
    result = repro("run", PAPER, "--jobs", 1, "--json", *settings)
    found = json.loads(result.stdout)
    assert {len(found["runs"]), len(found["verdicts"])} == {1, 8}
    assert "a library says" in result.stderr


@pytest.mark.long
def test_force_does_everything_again_and_comes_to_the_same_record(done, repro, settings):
    del done
    before = [p.name for p in record_files(PAPER)]
    again = repro("run", PAPER, "--jobs", 1, "--force", *settings)
    assert again.exit_code == 0
    assert "one rollout" in again.stderr
    assert [p.name for p in record_files(PAPER)] == before


def test_an_arm_beside_the_main_one_leaves_outcomes_and_the_digests_of_its_texts(
    done, repro, settings
):
    """Both are judged again; the texts stay where the stages lie, and nowhere else."""
    del done
    assert repro("run", PAPER, "--arm", "online-rft", "--jobs", 1, *settings).exit_code == 0
    (run,) = [run for run in runs_of(read_records(PAPER)) if run["arm"] == "online-rft"]
    assert (
        list(Regrader(Passed(ask_again=True)).find_damage(run))
        == list(Regrader(Passed(ask_again=True)).problems(run))
        == []
    )
    texts = {row.get("texts") for row in run["scores"]} | {*run["train"].get("texts", {}).values()}
    stored = {digest for _, sets in sample_files_of(run) for digest in sets.values()}
    assert stored == set(sample_files(run))
    assert not texts & set(own_sets(run).values())
    for row in run["scores"]:
        assert all(isinstance(one, Sealed) for one in read_run_samples(run, row["digest"]))


def stage_file(root, name, file):
    (folder,) = [p for p in (root / "runs").glob(f"{name}-*") if (p / file).exists()][:1]
    return folder / file


@pytest.mark.parametrize(
    ("stage", "file"),
    [
        ("train", "model/model.safetensors"),
        ("train", DONE),
        ("data", "rows.jsonl"),
        ("eval", "samples.jsonl.gz"),
    ],
)
def test_a_damaged_stage_is_named_and_forcing_repairs_it(done, repro, settings, root, stage, file):
    del done
    path = stage_file(root, stage, file)
    path.write_bytes(path.read_bytes()[:-30])
    again = repro("run", PAPER, "--jobs", 1, *settings)
    assert again.exit_code == 2
    assert "DamagedFile" in again.stderr.splitlines()[-1]
    assert str(path) in again.stderr
    assert "--force" in again.stderr


def test_a_damaged_record_is_named(done, repro, settings):
    del done
    path = record_files(PAPER)[0]
    path.write_text(path.read_text()[:-40])
    again = repro("run", PAPER, "--jobs", 1, *settings)
    assert again.exit_code == 2
    assert str(path) in again.stderr.splitlines()[-1]


def test_a_damaged_record_is_named_in_the_list(repro, root):
    path = root / "results" / "deepseekmath-grpo" / "0123456789abcdef.json"
    path.parent.mkdir(parents=True)
    for text in ("[1]", '{"kind": "ru', "[" * 100_000):
        path.write_text(text)
        result = repro("list")
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert str(path) in line


def test_an_overridden_run_enters_no_table(done, repro):
    del done
    table = repro("table", "deepseekmath-pocket")
    assert table.exit_code == 2
    assert "`repro run deepseekmath-grpo` makes one" in table.stderr


@pytest.mark.parametrize("place", ["a file", "/proc"])
def test_a_folder_that_cannot_be_written_is_noticed_first(repro, root, settings, place):
    """A link into /proc is one that even root cannot write to."""
    if place == "a file":
        (root / "runs").touch()
    else:
        (root / "runs").symlink_to(place)
    result = repro("run", PAPER, "--jobs", 1, *settings)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"BadValue: {root / 'runs'}")
    assert "cannot be written" in line
    assert not list(root.glob("*/train-*"))


def test_a_damaged_record_is_noticed_first(repro, root, settings):
    path = root / "results" / PAPER / "0123456789abcdef.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    result = repro("run", PAPER, "--jobs", 1, *settings)
    assert (result.exit_code, str(path) in result.stderr) == (2, True)
    assert not list(root.glob("runs/train-*"))


def test_a_base_model_without_a_chat_template_is_one_line(repro, root, settings, tiny_model):
    base = copytree(tiny_model, root / "base")
    (base / "chat_template.jinja").unlink()
    run = repro("run", PAPER, "--jobs", 1, *changed(settings, f"model={base}"))
    scored = repro("eval", base, "--benchmarks", "pocket-gsm8k", "--limit", 1)
    for result in (run, scored):
        assert result.exit_code == 2
        line = result.stderr.splitlines()[-1]
        assert line.startswith(f"BadValue: {base} has no chat template, as base models have none")
    assert not list(root.glob("runs/train-*"))


def test_a_base_model_is_trained_and_scored_with_a_plain_template(
    repro, root, settings, tiny_model
):
    base = copytree(tiny_model, root / "base")
    (base / "chat_template.jinja").unlink()
    asked = changed(settings, f"model={base}", "benchmarks=gsm8k", "heldout_problems=0")
    result = repro("run", PAPER, "--jobs", 1, *asked, "chat_template=plain")
    assert result.exit_code in (0, 1), result.output
    (trained,) = root.glob("runs/train-*/model")
    plain = template_text("plain")
    assert (trained / "chat_template.jinja").read_text() == plain
    suite = ("--benchmarks", "pocket-gsm8k", "--limit", 2, "--max-tokens", 6)
    given = ("--chat-template", "plain", "--out", root / "given")
    assert repro("eval", trained, *suite, "--out", root / "own").exit_code == 0
    assert repro("eval", trained, *suite, *given).exit_code == 0
    own, other = (
        json.loads((root / n / "pocket-gsm8k.json").read_text()) for n in ("own", "given")
    )
    assert own["digest"] == other["digest"]
    assert other["asked"]["chat_template"] == plain
    again = repro("eval", trained, *suite, "--out", root / "given")
    assert (again.exit_code, "made with chat_template=" in again.stderr) == (2, True)


def test_a_chat_template_that_is_no_file_is_named_before_training(repro, root, settings):
    result = repro("run", PAPER, "--jobs", 1, *settings, "chat_template=palin")
    assert result.exit_code == 2
    assert "MissingFile: chat_template=palin: cannot be read" in result.stderr.splitlines()[-1]
    assert not list(root.glob("runs/train-*"))


@pytest.mark.long
def test_two_seeds_in_processes(repro, settings):
    result = repro("run", PAPER, "--arm", "grpo", "--seeds", 2, "--jobs", 2, "--json", *settings)
    assert result.exit_code in (0, 1), result.output
    found = json.loads(result.stdout)
    assert len(set(found["runs"])) == 2
    assert {run["seed"] for run in records()} == {0, 1}
    verdict = {v["id"]: v for v in found["verdicts"]}["grpo-improves-policy"]
    assert verdict["seeds"] == [0, 1]
    assert "[grpo 0]" in result.stderr
    assert "[start 0]" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "deepseekmath-gpro"), "UnknownPaper: no paper 'deepseekmath-gpro': did you mean"),
        (("show", "nope"), "UnknownPaper: no paper 'nope'"),
        (("run", PAPER, "--arm", "gropo"), "no arm 'gropo': did you mean grpo?"),
        (("run", PAPER, "--claims", "--arm", "rft"), "--arm rft with --claims"),
        (("run", PAPER, "--at", "moon"), "no scale 'moon': known: cpu, gpu, paper"),
        (("run", PAPER, "epsilon_hgih=0.3"), "no field 'epsilon_hgih': did you mean epsilon_high"),
        (("plan", PAPER, "num_generations=8.5"), "num_generations=8.5: expected int"),
        (("run", PAPER, "twins={}", "benchmarks=('gsm9k',)"), "no benchmark 'gsm9k'"),
        (("run", PAPER, "model=/nowhere"), "no folder /nowhere"),
        (("run", PAPER, "data=gsm9k"), "no training data 'gsm9k': did you mean gsm8k"),
        (("table", "deepsekmath"), "no table or paper 'deepsekmath': did you mean deepseekmath"),
        (("new", "Bad Slug", "--arxiv", "1"), "slug 'Bad Slug': expected lower-case words"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(repro, arguments, message):
    result = repro(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr.strip().splitlines()[-1]
    assert "Traceback" not in result.output
