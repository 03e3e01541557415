"""Samples without texts give what those with texts give, and records of both are one record."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_records import run_record

from core.cli.checking import check
from core.pages.render import render_all
from core.paper.registry import find_paper
from core.records.places import record_files, run_samples_file
from core.records.run_samples import file_problem, read_run_samples, sample_files_of
from core.records.sample_files import sample_files
from core.records.sealed import absent_texts, is_sealed
from core.stages.record import store_record
from eval.samples.evaluation import score
from eval.samples.forms import split_by_form
from eval.samples.sealing import seal_samples
from eval.samples.store import Sample, Sealed, read_samples, regrade, write_samples
from eval.sets.benchmarks import find_benchmark
from eval.stats.summary import curve

SLUG = "deepseekmath-grpo"
OTHER = next(arm for arm in find_paper(SLUG).arms if arm != find_paper(SLUG).main_arm)
SUITE = find_benchmark("pocket-math")
PROBLEMS = SUITE.load(limit=6)
TEXTS = (
    "The answer is \\boxed{{{0}}}.",
    "{0}",
    "1+1=2\nNo: 1+1=3\nso it is {0}",
    "The answer is \\boxed{{}}.",
    "\\boxed{{{0}}} or \\boxed{{7}}",
    "```python\nprint({0})\n```\n```output\n{0}\n```\n",
    "I do not know.",
    "",
    "The answer is \\boxed{{{0}",
)
DRAWN = st.lists(
    st.lists(st.sampled_from(TEXTS), min_size=2, max_size=2),
    min_size=len(PROBLEMS),
    max_size=len(PROBLEMS),
)


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


def samples_of(texts, mode):
    """Graded samples, so many of each problem."""
    asked = [
        Sample(
            benchmark=SUITE.name,
            id=problem.id,
            sample=number,
            output=text.format(problem.answer),
            tokens=len(text),
            truncated=False,
            extracted=None,
            correct=None,
            rule="",
            reason="",
        )
        for problem, row in zip(PROBLEMS, texts, strict=True)
        for number, text in enumerate(row)
    ]
    return regrade(asked, PROBLEMS, mode)


@pytest.mark.parametrize("mode", ["cot", "pal"])
@given(texts=DRAWN)
def test_outcomes_are_judged_scored_and_split_as_their_samples_are(mode, texts):
    whole = samples_of(texts, mode)
    short = seal_samples(whole, PROBLEMS, mode)
    assert regrade(short, PROBLEMS, mode) == short
    for one, other in zip(whole, short, strict=True):
        assert replace(other, output=one.output) == Sealed(**vars(one), form=other.form)
    assert curve(short, (1, 2)) == curve(whole, (1, 2))
    assert score(short, SUITE, ("avg@2",)) == score(whole, SUITE, ("avg@2",))
    first, second = ([s for s in whole if s.sample == number] for number in (0, 1))
    after = [s for s in short if s.sample == 1]
    assert split_by_form(first, after) == split_by_form(first, second)


def test_no_more_of_a_text_is_kept_than_its_answer_and_it_is_read_as_it_was_written(tmp_path):
    whole = samples_of([[TEXTS[0], TEXTS[6]]] * len(PROBLEMS), "cot")
    short = seal_samples(whole, PROBLEMS, "cot")
    answers = [f"\\boxed{{{problem.answer}}}" for problem in PROBLEMS]
    assert [one.output for one in short] == [text for answer in answers for text in (answer, "")]
    digest = write_samples(tmp_path / "outcomes", short)
    assert read_samples(tmp_path / "outcomes", digest) == short


def test_a_run_without_texts_passes_its_check_which_says_what_is_absent(capsys):
    run_record(40, arm=OTHER, sealed=True)
    render_all((SLUG,))
    assert check([SLUG]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{SLUG}: ok", f"  {absent_texts(SLUG)}"]
    assert f"no texts of {OTHER} are stored" in absent_texts(SLUG)


def test_a_run_with_texts_says_that_none_is_absent():
    run_record(40, arm=OTHER)
    assert absent_texts(SLUG) == ""


def test_a_record_has_one_name_with_texts_and_without_and_the_first_one_stands():
    whole = run_record(40, arm=OTHER)
    again = run_record(40, arm=OTHER, sealed=True)
    assert again == whole
    assert not is_sealed(again)
    (path,) = record_files(SLUG)
    path.unlink()
    short = run_record(40, arm=OTHER, sealed=True)
    assert is_sealed(short)
    assert short["digest"] == whole["digest"]
    assert short["content"] != whole["content"]


def test_a_run_that_comes_again_publishes_the_samples_its_standing_record_names(tmp_path):
    whole = run_record(40, arm=OTHER)
    short = run_record(41, arm=OTHER, seed=1, sealed=True)
    for record in (whole, short):
        files = {}
        for digest in sample_files(record):
            files[digest] = tmp_path / digest
            write_samples(files[digest], read_run_samples(record, digest))
        run_samples_file(SLUG, record["digest"]).unlink()
        other = write_samples(tmp_path / "other", [])
        again = {name: value for name, value in record.items() if name != "digest"}
        assert store_record(files | {other: tmp_path / "other"}, again) == record
        assert not any(file_problem(path, sets) for path, sets in sample_files_of(record))
