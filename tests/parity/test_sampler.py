"""Prompts come in TRL's order, in every epoch."""

from hypothesis import given
from hypothesis import strategies as st
from trl.trainer.utils import RepeatSampler

from core.collect.prompt_order import GroupSampler


@given(
    rows=st.integers(1, 30),
    group=st.integers(1, 5),
    prompts=st.integers(1, 6),
    repeats=st.integers(1, 4),
    shuffle=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_order(rows, group, prompts, repeats, shuffle, seed):
    theirs = RepeatSampler(
        range(rows),
        mini_repeat_count=group,
        batch_size=prompts,
        repeat_count=repeats,
        shuffle=shuffle,
        seed=seed,
    )
    ours = GroupSampler(
        range(rows),
        group=group,
        prompts=prompts,
        repeats=repeats,
        shuffle=shuffle,
        seed=seed,
    )
    for epoch in range(3):
        ours.set_epoch(epoch)
        order = list(theirs)
        assert list(ours) == order
        assert len(ours) == len(order)
