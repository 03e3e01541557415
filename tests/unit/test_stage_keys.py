"""What the rows of a run are made of is in the key of the stage that makes them."""

import re
from shutil import copytree

import pytest

from core.data.sets import find_sets
from core.families.grpo import GRPO
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.data import Data
from eval.sets.prompts import REQUESTS
from papers.deepseekmath_grpo import PAPER


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of benchmarks: two of the same file names, and one that chooses from another."""
    for name in ("gsm8k", "math"):
        for split in ("train", "test"):
            path = tmp_path / "data" / name / f"{split}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'{{"id": "{name}-{split}"}}\n')
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def rows_key(*arguments):
    return Chain(resolve(PAPER, arguments=arguments)).train.data.key


def suite_key(suite):
    asked = ("twins={}", f"benchmarks=('{suite}',)", "at_k_benchmarks=0")
    chain = Chain(resolve(PAPER, arguments=asked))
    (stage,) = chain.evaluations(chain.start)
    return stage.key


class Wider(GRPO):
    """The same trainer, of rows with another column."""

    columns = (*GRPO.columns, "label")


class Renamed(GRPO):
    """The same rows for a family of another name."""

    name = "other"


def test_rows_made_for_another_trainer_are_other_rows():
    keys = {Data(find_sets("pocket"), family()).key for family in (GRPO, Wider, Renamed)}
    assert keys >= {rows_key()}
    assert len(keys) == 3


@pytest.mark.parametrize("name", ["gsm8k", "math"])
def test_each_part_of_joined_data_counts_though_their_files_have_one_name(folder, name):
    before = rows_key("data=gsm8k+math")
    (folder / name / "train.jsonl").write_text("other rows\n")
    assert rows_key("data=gsm8k+math") != before


def test_a_part_of_another_set_changes_with_that_set(folder):
    before, other = suite_key("math500"), suite_key("gsm8k")
    (folder / "math" / "test.jsonl").write_text("other problems\n")
    assert suite_key("math500") != before
    assert suite_key("gsm8k") == other


def test_a_folder_beside_the_files_is_no_error(folder):
    before = suite_key("gsm8k")
    copytree(folder / "math", folder / "gsm8k" / "old")
    assert suite_key("gsm8k") == before


def test_a_question_asked_in_other_words_is_another_one(monkeypatch):
    rows, suites = rows_key(), (suite_key("pocket-gsm8k"), suite_key("pocket-cmath"))
    monkeypatch.setitem(REQUESTS, ("cot", "en"), "Answer.")
    assert rows_key() != rows
    assert suite_key("pocket-gsm8k") != suites[0]
    assert suite_key("pocket-cmath") == suites[1]  # asked in Chinese


def test_held_out_answers_of_another_length_are_another_curve():
    keys = {Chain(resolve(PAPER, arguments=(f"eval_max_tokens={n}",))).train.key for n in (12, 96)}
    assert len(keys) == 2


def test_a_person_reads_what_a_folder_holds_and_a_key_finds_it(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    chain = Chain(resolve(PAPER, arguments=("data=pocket-gsm8k+pocket-math",)), seed=2)
    stages = [chain.data, chain.start, chain.train, chain.evaluations(chain.start)[0]]
    names = [stage.folder.name for stage in stages]
    assert [name[: -len(stage.key)] for name, stage in zip(names, stages, strict=True)] == [
        "data-pocket-gsm8k+pocket-math-",
        "start-pocket-instruct-2-",
        "train-deepseekmath-grpo-grpo-seed2-",
        "eval-pocket-gsm8k-",
    ]
    older = tmp_path / "runs" / f"train-another-paper-{chain.train.key}"
    older.mkdir(parents=True)
    assert chain.train.folder == older


def test_what_no_name_of_a_folder_may_hold_stays_out_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    odd = tmp_path / "my rows; * ü" / f"{'long' * 30}.jsonl"
    odd.parent.mkdir()
    odd.write_text('{"prompt": "1", "answer": "1"}\n')
    data = Chain(resolve(PAPER, arguments=(f"data={odd}", "heldout_problems=0"))).data
    assert re.fullmatch(r"data-[A-Za-z0-9_.+=-]{1,60}-[0-9a-f]{16}", data.folder.name)
    data.run()
    assert data.is_done
