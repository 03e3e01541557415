"""Gains are split by form without rest, in every run's record, held by the check, on its page."""

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_records import made, published, run_record

from core.pages.gains_by_form import forms_tables
from core.paper.registry import find_paper
from core.records.answers import content_of, name_of
from core.records.form_splits import form_splits
from core.records.places import Shelf, record_file, report_folder
from core.records.record import read_records, write_record
from core.records.record_text import parse_record, record_text
from core.records.schema import runs_of
from core.run.check import check_papers
from eval.errors import BadValue
from eval.samples.forms import form_of, split_by_form
from eval.samples.store import Sample
from eval.stats.seeds import over_seeds

SLUG = "deepseekmath-grpo"
OUTPUTS = ("1+1=2\nThe answer is \\boxed{2}.", "The answer is \\boxed{2}.", "```python\n```", "1")
ANSWERS = st.tuples(st.sampled_from(OUTPUTS), st.sampled_from([True, False, None]))


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


def sample(number, output, *, correct):
    return Sample(
        benchmark="pocket-gsm8k",
        id=str(number),
        sample=0,
        output=output,
        tokens=1,
        truncated=False,
        extracted=None,
        correct=correct,
        rule="",
        reason="",
    )


@given(st.lists(st.tuples(ANSWERS, ANSWERS), min_size=1, max_size=30), st.randoms())
def test_the_parts_of_a_gain_add_up_to_it_in_any_order(pairs, random):
    before, after = (
        [sample(n, pair[side][0], correct=pair[side][1]) for n, pair in enumerate(pairs)]
        for side in (0, 1)
    )
    random.shuffle(after)
    found = split_by_form(before, after)
    right = [sum(s.correct is True for s in side) for side in (before, after)]
    parts = (found.changed, found.unchanged)
    assert sum(part.won - part.lost for part in parts) == right[1] - right[0]
    assert sum(part.n for part in parts) == len(pairs)
    assert found.changed.n == sum(a[0] != b[0] for a, b in pairs)
    assert all(0 <= part.won + part.lost <= part.n for part in parts)


def test_forms_are_lines_corrections_programs_and_boxes_and_no_numbers():
    assert len({form_of(output) for output in OUTPUTS}) == len(OUTPUTS)
    assert form_of("1+2=3\n3+4=7\n\\boxed{7}") == form_of("1-2=9\n9*4=8\n\\boxed{8}")
    assert form_of("1+2=4\nNo: 1+2=3\n\\boxed{3}") != form_of("1+2=4\n4-2=2\n\\boxed{2}")


@pytest.mark.parametrize("after", [[0], [0, 2], [0, 1, 1]])
def test_answers_to_other_problems_are_refused(after):
    answers = [sample(n, "1", correct=True) for n in (0, 1)]
    with pytest.raises(BadValue, match="one to each of the same"):
        split_by_form(answers, [sample(n, "1", correct=True) for n in after])


def test_only_greedy_answers_to_the_very_same_question_are_split():
    record = run_record(40)
    before, after = record["start_scores"], record["scores"]
    assert form_splits(before, after, made).keys() == {row["benchmark"] for row in after}
    for more in ({"metric": "pass@4"}, {"samples": 4}, {"temperature": 1.0}, {"draw": 5}):
        assert form_splits(before, [row | more for row in after], made) == {}
    in_programs = [[row | {"mode": "pal"} for row in rows] for rows in (before, after)]
    assert "pocket-math pal" in form_splits(*in_programs, made)
    assert form_splits(before, in_programs[1], made) == {}


def problems():
    return check_papers([SLUG])[SLUG]


def forged(record, **said):
    """The record with other contents, under the name and seal that it then has."""
    path = record_file(SLUG, record["digest"])
    other = {**parse_record(path.read_text()), **said}
    if other["forms"] is None:
        del other["forms"]
    other["content"] = content_of(other)
    path.unlink()
    path.with_name(f"{name_of(other)}.json").write_text(record_text(other))
    return other


def test_a_split_that_the_samples_do_not_give_is_named():
    record = run_record(40)
    published(SLUG)
    assert problems() == []
    split = record["forms"]["pocket-math"]
    swapped = {"changed": split["unchanged"], "unchanged": split["changed"]}
    forged(record, forms=record["forms"] | {"pocket-math": swapped})
    assert any("pocket-math: forms are" in line for line in problems())


def test_a_record_without_a_split_is_read_and_names_no_problem():
    record = run_record(40)
    older = forged(record, forms=None)
    assert name_of(older) == record["digest"]
    published(SLUG)
    assert problems() == []
    assert not (report_folder(SLUG, "cpu", Shelf.PUBLISHED) / f"{SLUG}-forms.md").exists()


def test_a_run_that_is_written_again_keeps_its_record_unless_its_split_is_another():
    record = run_record(40)
    assert write_record({k: v for k, v in record.items() if k != "digest"}) == record
    one = record["forms"]["pocket-math"]
    other = record["forms"] | {"pocket-math": one | {"changed": one["changed"] | {"won": 1}}}
    again = write_record({k: v for k, v in record.items() if k != "digest"} | {"forms": other})
    assert again["supersedes"] == record["digest"]


def test_the_page_shows_the_gain_and_both_parts_over_seeds():
    rights = (40, 44, 47)
    for seed, right in enumerate(rights):
        run_record(right, seed=seed)
    published(SLUG)
    (table,) = forms_tables(find_paper(SLUG), runs_of(read_records(SLUG)), "cpu")
    gain, same, other, changed = next(row for _, _, row in table.rows()).cells
    expected = over_seeds([100 * (right - 20) / 60 for right in rights])
    assert (gain.value, gain.low, gain.high) == (expected.value, *expected.interval())
    assert same.value + other.value == pytest.approx(gain.value)
    assert changed.value == pytest.approx(gain.value), "those solved say so in a box"
    for name in ("report.md", "report.html"):
        page = (report_folder(SLUG, "cpu", Shelf.PUBLISHED) / name).read_text()
        assert f"{gain.value:.1f}" in page
        assert "by form" in page


def test_one_seed_has_the_interval_of_its_problems():
    record = run_record(15)
    (table,) = forms_tables(find_paper(SLUG), [record], "cpu")
    for _, _, row in table.rows():
        assert all(cell.low < cell.value < cell.high for cell in row.cells[:1])
    assert row.cells[0].value < 0
    assert asdict(row.cells[0])["n"] == 60
