"""Rewards by name: what a record shows of them is read as the same rewards."""

from importlib.metadata import EntryPoint

import pytest

from core import rewards
from core.paper import Paper
from core.paper.overrides import BadOverride
from core.paper.registry import entries, find_paper
from core.rewards import Accuracy, LengthWithin, Noisy, Shuffled, accuracy_reward
from core.settings import named_rewards
from core.settings.canonical import as_text
from core.settings.named_rewards import parse_rewards, rewards_of
from core.settings.resolve import resolve
from eval.errors import BadValue, UnknownName

PAPER = find_paper("deepseekmath-grpo")
MINE = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Brief:
    limit: int = 5

    def __call__(self, *, completions, **_):
        return [float(len(text) < self.limit) for text in completions]

def helper(text):
    return text
"""


@pytest.mark.parametrize("slug", entries())
def test_the_rewards_of_every_arm_are_read_from_their_text(slug):
    paper = find_paper(slug)
    for arm in paper.arms:
        used = tuple(resolve(paper, arm=arm).run.rewards)
        assert parse_rewards(", ".join(map(as_text, used)), paper) == used
        assert parse_rewards(as_text(used), paper) == used


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Accuracy", (Accuracy(),)),
        ("Accuracy,LengthWithin(limit=8)", (Accuracy(), LengthWithin(limit=8))),
        ("core.rewards.correctness.accuracy_reward", (accuracy_reward,)),
        ("Noisy(reward=Accuracy, deviation=.5)", (Noisy(Accuracy(), 0.5),)),
        ("Shuffled(reward=Accuracy())", (Shuffled(Accuracy()),)),
        ("", ()),
    ],
)
def test_names_calls_and_calls_in_calls(text, expected):
    assert parse_rewards(text, PAPER) == expected


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("Acuracy", UnknownName, "did you mean Accuracy"),
        ("completion_text", UnknownName, "no reward 'completion_text'"),
        ("get_soft_overlong_punishment", UnknownName, "no reward"),
        ("Accuracy(", BadOverride, "names of rewards with commas"),
        ("Accuracy(1)", BadOverride, "names of rewards with commas"),
        ("[x for x in y]", BadOverride, "names of rewards with commas"),
        ("__import__('os')", UnknownName, "no reward '__import__'"),
        ("Accuracy(right=__import__)", UnknownName, "no reward '__import__'"),
        ("Accuracy(colour=3)", BadValue, "unexpected keyword argument 'colour'"),
        ("Noisy(reward=Accuracy(), deviation=-1)", BadValue, "deviation above 0"),
    ],
)
def test_what_is_no_reward_is_refused(text, error, words):
    with pytest.raises(error, match=words):
        parse_rewards(text, PAPER)


def test_a_setting_of_the_command_line_names_them():
    told = resolve(PAPER, arguments=("rewards=Accuracy(wrong=-1),accuracy_reward", "beta=0.5"))
    assert told.run.rewards == (Accuracy(wrong=-1), accuracy_reward)
    assert told.values["rewards"].source == "command line"
    assert told.config["beta"] == 0.5


def test_a_plug_in_and_an_entry_point_add_theirs(tmp_path, monkeypatch):
    file = tmp_path / "brief_rewards.py"
    file.write_text(MINE)
    monkeypatch.setenv("REPRO_PLUGINS", str(file))
    (brief,) = parse_rewards("Brief(limit=9)", PAPER)
    assert brief(completions=["short", "a long completion"]) == [1, 0]
    with pytest.raises(UnknownName):
        parse_rewards("helper", PAPER)
    points = [
        EntryPoint("RightAnswer", "core.rewards:Accuracy", "repro.rewards"),
        EntryPoint("Gone", "core.not_there:Gone", "repro.rewards"),
    ]
    monkeypatch.setattr(named_rewards, "group_entry_points", {"repro.rewards": points}.__getitem__)
    assert parse_rewards("RightAnswer(right=2)", PAPER) == (Accuracy(right=2),)
    with pytest.raises(BadValue, match=r"reward 'Gone' \(core.not_there:Gone\): import failed"):
        parse_rewards("Gone", PAPER)


def test_a_paper_that_is_not_registered_has_those_of_all():
    alone = Paper(slug="alone", title="Alone", family="grpo", model="pocket-instruct")
    assert parse_rewards("Accuracy", alone) == (Accuracy(),)


def test_every_reward_of_ours_has_its_name():
    kinds = {name for name in rewards.__all__ if isinstance(getattr(rewards, name), type)}
    assert kinds <= {*rewards_of(rewards)}
