"""A prompt that is answered right is not drawn again, by its whole history; arXiv 2510.13786."""

import pytest
import torch
from grpo_runs import logs, weights
from hypothesis import given
from hypothesis import strategies as st
from test_filled_rollouts import GROUP, completions, rows
from test_prompt_stream import SHAPED, stream

from core.collect.prompt_order import PassRates
from eval.errors import BadValue


@given(shape=SHAPED, count=st.integers(0, 40), first=st.integers(0, 9))
def test_the_stream_goes_on_without_those_that_are_retired(shape, count, first):
    whole, part = stream(**shape), stream(**shape)
    before = [s.take(first) for s in (whole, part)]
    assert before[0] == before[1]
    part.retired = {0, 3}
    left = [row for row in whole.take(5 * (count + whole.size)) if row not in part.retired]
    assert part.take(count) == left[:count] == part.latest


def test_a_stream_without_prompts_left_stops():
    found = stream(rows=6, per_rollout=3)
    found.retired = set(range(6))
    with pytest.raises(BadValue, match="all 6 prompts of an epoch are retired"):
        found.take(1)
    assert found.take(0) == []


def test_the_rate_is_that_of_all_completions_so_far():
    """By hand: 8 of 8; 7 of 8, then 8 of 8, which is 15 of 16; never right."""
    passes = PassRates(0.9)
    passes.count([4, 5, 6], [8, 7, 0], group=8)
    assert passes.retired == {4}
    passes.count([5, 6], [8, 0], group=8)
    assert passes.retired == {4, 5}
    assert PassRates(0.9, passes.counts).retired == passes.retired
    assert PassRates(1.0, passes.counts).retired == {4}


def right_if(dull, **_):
    """Prompts at `n` are answered right by all completions, the others by one of them."""
    return [float(d or i % GROUP == 0) for i, d in enumerate(dull)]


@pytest.fixture
def make(make_grpo):
    def build(text, reward=right_if, **changes):
        settings = {"rollout": completions, "shuffle_dataset": False, "max_steps": 6}
        settings |= {"prompt_retirement": 0.9, "dataset": rows(text)}
        return make_grpo(reward, **settings | changes)

    return build


def drawn(trainer):
    """The prompts of each rollout, as a reward sees them."""
    seen = []
    (reward,) = trainer.rewards
    call = reward.call

    def look(prompts, **columns):
        seen.append([int(p.partition("+")[0]) for p in prompts[::GROUP]])
        return call(prompts=prompts, **columns)

    trainer.rewards = [type(reward)(name=reward.name, call=look)]
    trainer.train()
    return seen


def test_right_prompts_are_drawn_once(make):
    trainer = make("nynynn")
    assert drawn(trainer) == [[0, 1], [2, 3], [4, 5], [1, 3], [1, 3], [1, 3]]
    assert logs(trainer, "prompts/retired") == [1, 2, 4, 4, 4, 4]


def test_a_named_reward_says_what_is_right(make):
    def paid(completion_ids, **_):
        return [5.0] * len(completion_ids)

    changes = {"rollout_selection": "varied", "selection_reward": "right_if"}
    named = make("nynynn", [right_if, paid], **changes)
    named.train()
    assert logs(named, "prompts/retired") == [1, 2, 4, 4, 4, 4]
    plain = make("nynynn", [right_if, paid], max_steps=3)
    plain.train()
    assert logs(plain, "prompts/retired") == [2, 4, 6]


def test_evaluation_retires_nothing(make):
    trainer = make("nynynn", evaluation=rows("nnnn"), max_steps=1)
    trainer.train()
    trainer.evaluate()
    assert len(trainer.prompts.retired) == 1


@pytest.mark.parametrize("kept", [2, 4])
def test_a_resumed_run_leaves_out_the_same_prompts(kept, make):
    settings = {"save_strategy": "steps", "save_steps": 2, "rollout": None, "num_iterations": 2}
    whole, resumed = make("nynynn", **settings), make("nynynn", **settings)
    whole.train()
    resumed.train(resume_from_checkpoint=f"{whole.args.output_dir}/checkpoint-{kept}")
    assert torch.equal(weights(whole.model), weights(resumed.model))
    for name in ("loss", "prompts/retired", "num_tokens"):
        assert logs(whole, name) == logs(resumed, name)
    assert logs(whole, "prompts/retired")[-1] == 4


@pytest.mark.parametrize("bound", [0.0, -0.5, 1.1])
def test_a_bound_that_is_no_share_is_refused(bound, make):
    with pytest.raises(BadValue, match=f"prompt_retirement={bound}: expected above 0"):
        make("yy", prompt_retirement=bound)
