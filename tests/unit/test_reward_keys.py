"""A training is keyed by what its rewards are: where they are defined, their text, their state."""

import re
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module, invalidate_caches
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rewards import Accuracy, SoftOverlong
from core.settings.canonical import canonical, digest_of
from core.settings.resolve import resolve
from core.settings.reward_keys import reward_key
from core.stages.chain import Chain
from eval.errors import BadValue
from papers.deepseekmath_grpo import PAPER

MODULE = '''
"""Rewards of a user."""

from dataclasses import dataclass


def short(completions, most=SIZE, **_):
    return [float(len(text) <= most) for text in completions]


async def later(completions, **_):
    return [1.0] * len(completions)


def at_most(most):
    def inner(completions, **_):
        return short(completions, most=most)

    return inner


class Base:
    def __call__(self, *, completions, **_):
        return [self.value] * len(completions)


@dataclass(frozen=True)
class Constant(Base):
    value: float = 1.0
    inner: object = None
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Import the module of rewards anew, with one text of it changed: `module("old", "new")`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two texts may be of one second and size

    def load(old="SIZE", new="5"):
        text = MODULE.replace(old, new).replace("SIZE", "5")
        path = tmp_path / "user_rewards.py"
        path.write_text(text)
        monkeypatch.delitem(sys.modules, "user_rewards", raising=False)
        invalidate_caches()
        return import_module("user_rewards")

    return load


def training(*rewards):
    """The key of the paper's training with these rewards."""
    return Chain(resolve(replace(PAPER, rewards=rewards), arm="rft")).train.key


def every(m):
    """One reward of each kind, by name."""
    return {
        "function": m.short,
        "async": m.later,
        "partial": partial(m.short, most=7),
        "closure": m.at_most(3),
        "dataclass": m.Constant(2.0),
        "nested": m.Constant(2.0, inner=m.short),
    }


def test_a_reward_that_is_a_function_is_one_training_however_often_it_is_imported(module):
    first, again = every(module()), every(module())
    for name, reward in first.items():
        assert reward is not again[name]
        assert training(reward) == training(again[name]), name
        assert canonical(reward) == canonical(again[name]), name  # as a record says it
    assert len({training(reward) for reward in first.values()}) == len(first)


def test_another_process_finds_the_same_key(module, tmp_path):
    module()
    program = (
        "import sys, user_rewards as m; from functools import partial;"
        "from core.settings.reward_keys import reward_key;"
        "from core.settings.canonical import digest_of;"
        "print(digest_of([reward_key(r) for r in "
        "(m.short, partial(m.short, most=7), m.at_most(3), m.Constant(2.0, inner=m.short))]))"
    )
    m = import_module("user_rewards")
    rewards = (m.short, partial(m.short, most=7), m.at_most(3), m.Constant(2.0, inner=m.short))
    here = digest_of([reward_key(reward) for reward in rewards])
    command = [sys.executable, "-c", f"import sys; sys.path.append({str(tmp_path)!r});{program}"]
    there = subprocess.run(command, capture_output=True, text=True, check=True)
    assert there.stdout.strip() == here


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        ("<= most", "< most", {"function", "partial", "nested"}),
        ("SIZE", "6", {"function", "partial", "nested"}),
        ("most=most)", "most=most + 1)", {"closure"}),
        ("[self.value]", "[-self.value]", {"dataclass", "nested"}),
        (
            "inner: object = None",
            "inner: object = None\n    more: int = 0",
            {"dataclass", "nested"},
        ),
        ("[1.0] * len", "[0.5] * len", {"async"}),
    ],
)
def test_an_edited_reward_is_another_training(module, old, new, moved):
    before = {name: training(reward) for name, reward in every(module()).items()}
    after = {name: training(reward) for name, reward in every(module(old, new)).items()}
    assert {name for name in before if before[name] != after[name]} == moved


@given(st.lists(st.floats(0, 9, width=16), min_size=2, max_size=2, unique=True))
def test_the_state_of_a_reward_is_part_of_its_key(values):
    one, other = values
    make = (Accuracy, partial(partial, Accuracy()), lambda v: Accuracy(1.0, v), within)
    for build in make:
        assert reward_key(build(one)) != reward_key(build(other))
        assert reward_key(build(one)) == reward_key(build(one))


def test_an_attribute_that_the_trainer_reads_is_part_of_the_key(module):
    """`per_step` says that a reward gives a list of steps for each completion."""
    reward = module().short
    before = reward_key(reward)
    reward.per_step = True
    assert reward_key(reward) != before


def within(value):
    """A reward that closes over a value."""

    def reward(completions, **_):
        return [value for _ in completions]

    return reward


class Pair(NamedTuple):
    """A sequence that can be called."""

    one: float = 1.0

    def __call__(self, **_):
        return [self.one]


class Plain:
    """A callable object that says nothing about its state."""

    def __call__(self, **_):
        return [0.0]

    def method(self, **_):
        return [0.0]


@dataclass
class Changing:
    value: float = 1.0

    def __call__(self, **_):
        return [self.value]


def endless():
    """A reward that closes over itself."""

    def reward(**_):
        return [1.0 for _ in range(0)] or reward()

    return reward


NAMESPACE = {}
exec("def typed(**_): return [1.0]", NAMESPACE)
REFUSED = {
    "lambda": lambda **_: [0.0],
    "object": Plain(),
    "method": Plain().method,
    "thawed": Changing(),
    "named tuple": Pair(),
    "builtin": len,
    "cached": cache(within),
    "class": Plain,
    "no source": NAMESPACE["typed"],
    "closure over an object": within(Plain()),
    "closure over a lambda": within(lambda: 0),
    "closure over itself": endless(),
    "partial of a lambda": partial(lambda **_: [0.0]),
    "default": partial(within(1.0), most=re.compile("a")),
    "field": Accuracy(Plain()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_reward_that_has_no_key_is_refused_in_one_line(name):
    with pytest.raises(BadValue) as caught:
        reward_key(REFUSED[name])
    line = str(caught.value)
    assert "\n" not in line
    assert " 0x" not in line
    assert "frozen dataclass" in line


def test_settings_with_such_a_reward_stop_before_anything_loads():
    with pytest.raises(BadValue, match=r"reward .*lambda.*frozen dataclass"):
        resolve(replace(PAPER, rewards=(Accuracy(), lambda **_: [0.0])))


def test_a_record_says_dataclasses_as_ever_and_functions_by_module_and_name(module):
    m = module()
    assert canonical(SoftOverlong(20, 4)) == "SoftOverlong(max_length=20, cache=4)"
    assert canonical((Accuracy(),)) == ["Accuracy(right=1.0, wrong=0.0)"]
    assert canonical(m.short) == "user_rewards.short"
    assert " 0x" not in str(canonical([partial(m.short, 3), m.Constant(inner=m.short)]))
