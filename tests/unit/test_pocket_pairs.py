"""Laws of the pairs of worked solutions and their revisions in the pocket world."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from core.data.generated_sets import POCKET
from core.data.pocket_pairs import revised_pairs
from eval.grading import grade
from eval.pocket.revisions import mistake_places, random_revision, revision
from eval.pocket.steps import step_verdicts
from eval.pocket.suites import SIZES, SUITES, drafts

PROBLEMS = st.builds(
    lambda suite, place: drafts(suite, "valid")[place],
    st.sampled_from([*SUITES]),
    st.integers(0, SIZES["valid"] - 1),
)
RANDOMS = st.integers(0, 2**32).map(Random)


def wrong_lines(draft, text):
    """The lines of a solution that are wrong, whatever the lines before them say."""
    verdicts = step_verdicts(draft.question, draft.answer, text)
    return [place for place, (_, is_right) in enumerate(verdicts) if not is_right]


@given(PROBLEMS, RANDOMS)
def test_a_revision_has_one_wrong_step_and_a_wrong_answer(draft, random):
    chosen, rejected = draft.solution, random_revision(draft, random)
    if rejected is None:
        assert all(revision(draft, place) is None for place in mistake_places(draft))
        return
    assert not grade(rejected, draft.answer, draft.language).correct
    step, answer = wrong_lines(draft, rejected)
    assert answer == len(rejected.splitlines()) - 1
    alike = [one == other for one, other in zip(chosen, rejected, strict=False)]
    begun = alike.index(False)
    assert rejected[:begun].count("\n") == step
    assert "=" in rejected[:begun].splitlines()[-1]  # what was read is the same, not its result


def test_a_seed_draws_the_mistakes_of_the_same_problems():
    rows, same, other = (revised_pairs(POCKET, "valid", 60, seed) for seed in (100, 100, 101))
    assert rows == same
    assert [row["id"] for row in rows] == [row["id"] for row in other]
    assert rows != other
    assert len(rows) >= 60


def test_most_problems_have_a_pair_of_a_right_and_a_wrong_answer():
    rows = revised_pairs(POCKET, "valid", None, 0)
    assert len(rows) >= 0.9 * len(POCKET) * SIZES["valid"]
    for row in rows:
        chosen, rejected = (row[side][0]["content"] for side in ("chosen", "rejected"))
        assert grade(chosen, row["answer"], "en").correct
        assert not grade(rejected, row["answer"], "en").correct
