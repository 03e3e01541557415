"""The workloads of the training benchmark: replayed completions, of equal and unequal lengths."""

from hypothesis import given
from hypothesis import strategies as st

from core.bench.training import RecordedRollouts

COMPLETIONS = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=9), min_size=1)


@given(COMPLETIONS, st.integers(1, 12))
def test_unequal_lengths_cut_or_repeat_each_completion_and_keep_the_rest(completions, longest):
    rollout = {"prompt_ids": [[1]] * len(completions), "completion_ids": completions}
    recorded = RecordedRollouts({repr(["prompt"]): rollout})
    unequal = recorded.with_unequal_lengths(longest)
    replayed = unequal(["prompt"], None)
    assert replayed["prompt_ids"] == rollout["prompt_ids"]
    assert recorded(["prompt"], None) == rollout
    assert len(unequal.seconds) == 1
    for ids, drawn in zip(completions, replayed["completion_ids"], strict=True):
        assert 1 <= len(drawn) <= longest
        assert drawn == (ids * longest)[: len(drawn)]


def test_unequal_lengths_reach_from_one_token_to_the_longest_and_are_the_same_each_time():
    recorded = RecordedRollouts({repr(["p"]): {"completion_ids": [[1, 2]] * 200}})
    lengths, again = (
        [len(ids) for ids in recorded.with_unequal_lengths(8)(["p"], None)["completion_ids"]]
        for _ in range(2)
    )
    assert set(lengths) == set(range(1, 9))
    assert lengths == again
