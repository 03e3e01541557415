import asyncio
import json
from functools import partial

import numpy as np
import pytest
import torch
from grpo_runs import digits
from hypothesis import given
from hypothesis import strategies as st

from core.collect.event_loop import AsyncLoop
from core.collect.reward_calls import (
    RewardFunction,
    Samples,
    call_rewards,
    outcome_reward,
    reward_note,
    with_unique_names,
)
from core.collect.step_rewards import ending_token, step_tensors, token_steps
from core.errors import RewardError
from eval.errors import BadValue

ROWS = [{"prompt": f"what is {i} + {i}?", "answer": str(2 * i), "level": i} for i in range(3)]
TEXTS = ["0", "2", "5"]
IDS = [[1], [1, 2], [1, 2, 3]]


def call(*functions, shared=None):
    named = [RewardFunction(name=f.__name__, call=f) for f in functions]
    return call_rewards(named, Samples.of(ROWS, TEXTS, IDS), shared or {}, AsyncLoop())


def test_columns_completions_and_shared_keywords_reach_the_function():
    seen = {}

    def remember(**keywords):
        seen.update(keywords)
        return [0.0] * 3

    call(remember, shared={"trainer_state": "state"})
    assert seen == {
        "prompts": [row["prompt"] for row in ROWS],
        "completions": TEXTS,
        "completion_ids": IDS,
        "answer": ["0", "2", "4"],
        "level": [0, 1, 2],
        "trainer_state": "state",
    }


def test_numbers_of_every_kind_and_none_are_rewards():
    def mixed(**_):
        return [True, np.float32(0.5), None]

    def tensor(**_):
        return torch.tensor([1.0, 2.0, 3.0])

    assert call(mixed, tensor) == [[1.0, 0.5, None], [1.0, 2.0, 3.0]]


def test_async_functions_run_together_and_keep_their_order():
    running = []

    def waits(name):
        async def reward(**_):
            running.append(name)
            while len(running) < 2:  # ends only if both have started
                await asyncio.sleep(0)
            return [float(name)] * 3

        return reward

    def plain(**_):
        return [0.0] * 3

    assert call(waits("1"), plain, waits("2")) == [[1.0] * 3, [0.0] * 3, [2.0] * 3]


def too_few(**_):
    return [1.0, 0.0]


def too_many(**_):
    return [1.0] * 4


def endless(**_):
    return [1.0, float("inf"), 0.0]


def words(**_):
    return [1.0, 1.0, "good"]


def nothing(**_):
    return None


def numbered(**_):
    return {0: 1.0, 1: 0.5, 2: 0.0}


def unordered(**_):
    return {1.0, 0.5, 0.0}


def huge(**_):
    return [10**400, 0.0, 0.0]


def several(**_):
    return [torch.tensor([1.0, 2.0])] * 3


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            too_few,
            r"'too_few' returned 2 rewards, but 3 were expected.*sample 2 \(what is 2 \+ 2\?\)",
        ),
        (too_many, r"'too_many' returned 4 rewards, but 3 were expected"),
        (endless, r"'endless' returned inf for sample 1 \(what is 1 \+ 1\?\): expected a finite n"),
        (words, r"'words' returned 'good' for sample 2"),
        (nothing, r"'nothing' returned NoneType: expected a list of 3 numbers"),
        (numbered, r"'numbered' returned dict: expected a list of 3 numbers"),
        (unordered, r"'unordered' returned set: expected a list of 3 numbers"),
        (huge, r"'huge' returned 10{59} for sample 0"),
        (several, r"'several' returned 'tensor\(\[1., 2.\]\)' for sample 0"),
    ],
)
def test_what_is_no_reward_stops_with_function_and_sample(function, message):
    with pytest.raises(RewardError, match=message) as error:
        call(function)
    assert "\n" not in str(error.value)


def test_nan_is_none_as_in_trl():
    def undefined(**_):
        return [float("nan"), np.float32("nan"), torch.tensor(2.0)]

    def undefined_steps(**_):
        return [[(1, float("nan")), (2, 1.0)], [], [(3, 0.0)]]

    vars(undefined_steps)["per_step"] = True
    assert call(undefined, undefined_steps) == [[None, None, 2.0], [[(2, 1.0)], [], [(3, 0.0)]]]


class Unusual(Exception):
    """Built from two values and with a third, as those of web clients are."""

    def __init__(self, code, body):
        super().__init__(f"{code}: {body}")
        self.code = code


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (Unusual, (429, "slow down")),
        (ValueError, ("no",)),
        (OSError, (2, "x", "y")),
        (KeyError, ("k",)),
    ],
)
@pytest.mark.parametrize("waits", [False, True])
def test_what_a_reward_raises_is_raised_once_and_says_which_reward(kind, arguments, waits):
    calls, error = [], kind(*arguments)

    def fails(**_):
        calls.append(1)
        raise error

    async def fails_later(**_):
        calls.append(1)
        raise error

    with pytest.raises(kind) as raised:
        call(fails_later if waits else fails)
    assert raised.value is error
    assert len(calls) == 1  # a reward may cost money, or write
    name = "fails_later" if waits else "fails"
    (note,) = error.__notes__
    assert note.startswith(f"reward '{name}' raised this on 3 completions, the first to (what is 0")
    assert reward_note(error) == note
    assert reward_note(kind(*arguments)) is None


def test_all_async_rewards_end_before_one_error_is_raised():
    done = []

    async def fails(**_):
        raise LookupError("first")

    async def finishes(**_):
        await asyncio.sleep(0)
        done.append(1)
        return [0.0] * 3

    with pytest.raises(LookupError, match="first"):
        call(fails, finishes)
    assert done == [1]


def test_a_partial_of_an_async_object_is_awaited():
    class Judge:
        async def __call__(self, scale, **_):
            return [scale] * 3

    judge = partial(Judge(), scale=2.0)
    vars(judge)["__name__"] = "judge"
    assert call(judge) == [[2.0] * 3]


def test_long_prompts_are_shortened():
    samples = Samples.of([{"prompt": "word " * 99}], ["x"], [[1]])
    assert len(samples.describe(0)) < 90
    assert samples.describe(0).endswith("...)")


def test_outcome_of_steps_is_their_mean():
    assert outcome_reward([(3, 1.0), (5, 0.0)]) == 0.5
    assert np.isnan(outcome_reward([]))
    assert np.isnan(outcome_reward(None))
    assert outcome_reward(2.0) == 2.0


def test_steps_end_at_the_token_that_reaches_their_offset(tiny_tokenizer):
    text = "1+1=2\n2*2=4\nx=\\boxed{4}"
    ids = [*tiny_tokenizer(text).input_ids, tiny_tokenizer.eos_token_id]
    assert ending_token(tiny_tokenizer, ids, 6) == 5  # one token per character
    assert ending_token(tiny_tokenizer, ids, 12) == 11
    assert ending_token(tiny_tokenizer, ids, len(text)) == len(ids) - 1  # with the end token


def test_step_rewards_are_weighted_and_an_outcome_is_a_last_step(tiny_tokenizer):
    ids = [*tiny_tokenizer("1+1=2\n2*2=5").input_ids, tiny_tokenizer.eos_token_id]
    weights = [2.0, 0.5, 0.0]
    found = token_steps(weights, [[(6, 1.0), (11, 0.0)], 1.0, 9.0], ids, tiny_tokenizer)
    assert found == [(5, 2.0), (11, 0.0), (11, 0.5)]
    assert token_steps(weights, [[], None, None], ids, tiny_tokenizer) == []


def test_step_tensors_pad_with_nan():
    rewards, ends = step_tensors([[(4, 1.0), (7, 0.0)], [(2, 0.5)], []])
    assert rewards.isnan().tolist() == [[False, False], [False, True], [True, True]]
    assert rewards[1, 0].item() == 0.5
    assert ends.tolist() == [[4, 7], [2, 0], [0, 0]]


def test_a_partial_is_named_after_its_function(make_grpo):
    (reward,) = make_grpo([partial(digits, scale=2.0)]).rewards
    assert reward.name == "digits"


def spoil(value):
    """Empty every list and mapping of a value, the innermost first."""
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, list | dict):
            spoil(part)
    value.clear()


def test_each_function_gets_lists_of_its_own_all_the_way_down():
    def rows():
        message = [{"role": "user", "content": "hi"}]
        return [{"prompt": message, "tests": [["a"], {"b": [1]}], "name": "n"} for _ in range(2)]

    answers = [[{"role": "assistant", "content": "yes"}] for _ in range(2)]
    ids, given, seen = [[1, 2], [3]], rows(), []

    def first(**keywords):
        seen.append({name: json.dumps(value) for name, value in keywords.items()})
        for value in keywords.values():
            spoil(value)
        return [1.0, 2.0]

    async def last(**keywords):
        return first(**keywords)

    functions = [RewardFunction(name="f", call=f) for f in (first, last, first, last)]
    values = call_rewards(functions, Samples.of(given, answers, ids), {}, AsyncLoop())
    assert values == [[1.0, 2.0]] * 4
    assert all(one == seen[0] for one in seen)
    assert given == rows()
    assert ids == [[1, 2], [3]]
    assert [answer[0]["content"] for answer in answers] == ["yes", "yes"]
    assert {"prompts", "completions", "completion_ids", "tests", "name"} == set(seen[0])


@given(st.lists(st.sampled_from(["f", "f_1", "f_2", "g"]), max_size=6))
def test_functions_are_named_apart_and_a_name_of_one_alone_stays(names):
    functions = [RewardFunction(name=name, call=digits) for name in names]
    apart = [f.name for f in with_unique_names(functions)]
    assert len({*apart}) == len(names)
    for name, old in zip(apart, names, strict=True):
        assert name == old if names.count(old) == 1 else name.startswith(f"{old}_")


def test_a_selection_by_one_of_two_rewards_of_a_name_says_which(make_grpo):
    settings = {"rollout_selection": "varied", "selection_reward": "digits"}
    with pytest.raises(BadValue, match="expected the name of one reward of digits_1, digits_2"):
        make_grpo([digits, digits], **settings)
    make_grpo([digits, digits], **settings | {"selection_reward": "digits_2"})
