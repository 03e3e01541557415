"""Laws of the pairs of worked solutions and their revisions in the pocket world."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from core.data.pocket_pairs import pocket_pairs
from core.data.sets import POCKET
from eval.grading import grade
from eval.pocket.revisions import mistakes, revised_pair, revision
from eval.pocket.steps import step_verdicts
from eval.pocket.suites import SIZES, SUITES, drafts

PLACES = st.integers(0, SIZES["valid"] - 1)
PROBLEMS = st.builds(lambda suite, place: drafts(suite, "valid")[place], st.sampled_from([*SUITES]),
                     PLACES)  # fmt: skip
RANDOMS = st.integers(0, 2**32).map(Random)


def wrong_lines(draft, text):
    """The lines of a solution that are wrong, whatever the lines before them say."""
    verdicts = step_verdicts(draft.question, draft.answer, text)
    return [place for place, (_, is_right) in enumerate(verdicts) if not is_right]


def is_right(draft, text):
    return grade(text, draft.answer, draft.language).correct


@given(PROBLEMS, RANDOMS)
def test_a_revision_has_one_wrong_step_and_a_wrong_answer(draft, random):
    pair = revised_pair(draft, random)
    if pair is None:
        assert all(revision(draft, place) is None for place in mistakes(draft))
        return
    chosen, rejected = pair
    assert chosen == draft.solution
    assert is_right(draft, chosen)
    assert not is_right(draft, rejected)
    step, answer = wrong_lines(draft, rejected)
    assert answer == len(rejected.splitlines()) - 1
    alike = [one == other for one, other in zip(chosen, rejected, strict=False)]
    begun = alike.index(False)
    assert rejected[:begun].count("\n") == step
    assert "=" in rejected[:begun].splitlines()[-1]  # what was read is the same, not its result


def test_a_seed_draws_the_mistakes_of_the_same_problems():
    rows, same, other = (
        pocket_pairs(POCKET, revised_pair, "valid", 60, seed) for seed in (100, 100, 101)
    )
    assert rows == same
    assert [row["id"] for row in rows] == [row["id"] for row in other]
    assert rows != other
    assert len(rows) >= 60


def test_most_problems_have_a_revision():
    rows = pocket_pairs(POCKET, revised_pair, "valid", None, 0)
    assert len(rows) >= 0.9 * len(POCKET) * SIZES["valid"]
    assert all({"id", "answer", "prompt", "chosen", "rejected"} <= row.keys() for row in rows)
