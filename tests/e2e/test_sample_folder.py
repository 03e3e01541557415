"""`repro eval --out`: kill -9 and the same command end with the bytes of an uninterrupted run."""

import gzip
import json
import os
import signal
from shutil import copytree

import pandas
import pytest
from killed import run_to_fsync
from pyarrow.parquet import read_table

from core.spread.preloaded import SERVER

SAMPLED = ("--benchmarks", "pocket-math", "--limit", 40, "--samples", 16, "--max-tokens", 6)
GREEDY = ("--benchmarks", "pocket-math,pocket-cmath", "--limit", 5, "--max-tokens", 6)


def killed(at, *arguments):
    """The command, killed when it secures a file for the `at`-th time."""
    process = SERVER.Process(
        target=run_to_fsync, args=(at, [str(a) for a in arguments], dict(os.environ))
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def files(folder):
    """What a finished command leaves."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.startswith(".")}


@pytest.mark.long
def test_kill_9_twice_ends_with_the_same_bytes(repro, tiny_model, tmp_path):
    """Killed in the third batch, then, resumed, between the samples and their page."""
    straight, cut = tmp_path / "straight", tmp_path / "cut"
    done = repro("eval", tiny_model, *SAMPLED, "--out", straight)
    assert done.exit_code == 0, done.output
    killed(4, "eval", tiny_model, *SAMPLED, "--out", cut)
    assert [p.name for p in cut.iterdir()] == ["pocket-math.journal"]
    killed(2, "eval", tiny_model, *SAMPLED, "--out", cut)
    assert sorted(files(cut)) == ["pocket-math.journal", "pocket-math.jsonl.gz"]
    again = repro("eval", tiny_model, *SAMPLED, "--out", cut)
    assert (again.exit_code, again.stdout) == (0, done.stdout), again.output
    assert files(cut) == files(straight)
    assert sorted(files(cut)) == ["pocket-math.html", "pocket-math.json", "pocket-math.jsonl.gz"]


@pytest.fixture(scope="module")
def greedy(run_once, tiny_model, tmp_path_factory):
    """A folder of greedy samples of two benchmarks, and what the command printed."""
    folder = tmp_path_factory.mktemp("greedy") / "out"
    return folder, run_once(("eval", tiny_model, *GREEDY, "--out", folder, "--json"))[1].stdout


@pytest.fixture
def kept(greedy, tmp_path):
    """A copy of the folder for one test, and what the command printed."""
    return copytree(greedy[0], tmp_path / "out"), greedy[1]


def test_a_row_says_what_was_asked_answered_and_judged(kept, repro, tiny_model):
    folder, printed = kept
    lines = gzip.decompress((folder / "pocket-math.jsonl.gz").read_bytes()).splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 5
    for row in rows:
        assert row["prompt"].endswith("put your final answer within \\boxed{}.")
        assert row["prompt_tokens"] == len(row["prompt"]) + 2  # one a character, two of the chat
        assert row["truncated"] == (row["tokens"] == 6)
        assert row["correct"] is False
        assert row["reason"]
        assert row["paper_correct"] is False
        assert row["paper_reason"]
    without = repro("eval", tiny_model, *GREEDY, "--json")
    assert without.stdout == printed
    frame = pandas.read_json(folder / "pocket-math.jsonl.gz", lines=True, dtype=False)
    frame.to_parquet(folder / "pocket-math.parquet")
    assert read_table(folder / "pocket-math.parquet").to_pylist() == rows


def test_finished_samples_are_read_not_drawn(kept, repro, tiny_model):
    folder, printed = kept
    before = files(folder)
    (folder / "pocket-math.html").unlink()
    again = repro("eval", tiny_model, *GREEDY, "--out", folder, "--json")
    assert (again.exit_code, again.stdout) == (0, printed)
    assert files(folder) == before
    (folder / "pocket-math.jsonl.gz").unlink()
    assert repro("eval", tiny_model, *GREEDY, "--out", folder).exit_code == 0
    assert files(folder) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--max-tokens", 7], "max_tokens=6, asked for 7; give another --out"),
        (["--limit", 6], "problems=5, asked for 6"),
        (["--seed", 1], "seed=0, asked for 1"),
    ],
)
def test_samples_of_another_question_are_refused(kept, repro, tiny_model, change, message):
    folder, _ = kept
    before = files(folder)
    refused = repro("eval", tiny_model, *GREEDY, *change, "--out", folder)
    assert refused.exit_code == 2
    assert message in refused.stderr.splitlines()[-1]
    assert files(folder) == before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pocket-math.jsonl.gz", b"cut", "was altered or cut off; delete it to make it again"),
        ("pocket-math.json", b"{}", "not a note with its digest"),
        ("pocket-math.json", None, "without the note of this command beside it"),
    ],
)
def test_damaged_and_foreign_files_are_one_line(kept, repro, tiny_model, name, content, message):
    folder, _ = kept
    path = folder / name
    path.unlink() if content is None else path.write_bytes(content)
    refused = repro("eval", tiny_model, *GREEDY, "--out", folder)
    assert refused.exit_code == 2
    (line,) = refused.stderr.splitlines()
    assert message in line


def test_folders_of_samples_are_compared_in_a_table(kept, repro, tmp_path):
    folder, _ = kept
    other = tmp_path / "other"
    assert repro("eval", "pocket-base", *GREEDY, "--out", other).exit_code == 0
    table = repro("table", "samples", folder, other, "--json")
    assert table.exit_code == 0, table.output
    (found,) = json.loads(table.stdout)
    titles = [column["title"] for column in found["columns"]]
    assert (found["baseline"], titles) == ("out", ["pocket CMATH", "pocket MATH"])
    (section,) = found["blocks"][0]["sections"]
    assert [row["labels"] for row in section["rows"]] == [["out"], ["other"]]
    for arguments, message in (
        (["samples", folder], "expected at least two"),
        (["samples", folder, folder], "expected every system once"),
        (["samples", folder, tmp_path / "none"], "no such file"),
        (["deepseekmath", folder], "expected no files after it"),
    ):
        refused = repro("table", *arguments)
        assert refused.exit_code == 2
        assert message in refused.stderr


def test_the_page_of_finished_outputs_is_the_page_of_their_samples(kept, repro, tmp_path):
    folder, _ = kept
    page = tmp_path / "page.html"
    file = folder / "pocket-math.jsonl.gz"
    done = repro("score", file, "--benchmark", "pocket-math", "--html", page)
    assert done.exit_code == 0, done.output
    texts = [path.read_text() for path in (page, folder / "pocket-math.html")]
    pages = [json.loads(text.split('json">')[1].split("</script>")[0]) for text in texts]
    names = ("asked", "id", "level", "subject", "prompt", "answer")
    made, kept_page = ([[row[n] for n in names] for row in one["problems"]] for one in pages)
    assert made == kept_page
    assert pages[0]["formulas"] == pages[1]["formulas"] != {}
