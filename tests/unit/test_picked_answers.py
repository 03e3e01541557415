"""A trained scorer picks among a model's own answers: the ratings are rewards of a preparation."""

import math
from dataclasses import replace
from itertools import groupby

import pytest
import torch
from test_rejection import FOUR, SAMPLED, config

from core.collect.rejection import accepted_rows, decoding
from core.data.load import load_training_data
from core.models.load import load_policy, load_tokenizer
from core.models.scorers import STEP_HEAD, VALUE_HEAD, load_drawn_scorer
from core.samplers.policy import PolicySampler
from core.scoring.rater import Asked, RatingReward, load_rater
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.data import read_rows
from core.stages.loading import Loading
from eval.errors import BadValue, UnknownName

POLICY = "pocket-instruct"
ALL = -1e9  # below each rating


@pytest.fixture(scope="module")
def scorers(tmp_path_factory):
    """The folders of scorers of tokens and of steps with random heads, by name."""
    folders = {}
    for name, head, seed in (("a", VALUE_HEAD, 0), ("b", VALUE_HEAD, 1), ("steps", STEP_HEAD, 0)):
        folders[name] = str(tmp_path_factory.mktemp(name))
        load_drawn_scorer(POLICY, head, seed).save_pretrained(folders[name])
        load_tokenizer(POLICY).save_pretrained(folders[name])
    return folders


@pytest.fixture(scope="module")
def policy():
    return PolicySampler(load_policy(POLICY), load_tokenizer(POLICY))


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty folder for runs/."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


def picking(scorer, **changes):
    """The chain of a preparation in which a scorer alone judges the answers."""
    made = {**SAMPLED, "model": POLICY, "rewards": (), "least_reward": ALL, **changes}
    made["roles"] = {"scorer": scorer}
    arms = {"sft": {"family": "sft", "data": "prepared:accepted"}}
    chain = Chain(resolve(replace(FOUR, preparations={"accepted": made}, arms=arms)))
    return chain.prepared["accepted"]


def made_rows(chain):
    for stage in chain.making:
        stage.run()
    return read_rows(chain.rows.folder)


def text_of(row):
    return row["completion"][0]["content"]


def ratings_of(rows, name, **options):
    rater = load_rater(name, Loading(device="cpu"), **options)
    return rater([Asked(row["prompt"][0]["content"], text_of(row)) for row in rows])


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(("name", "separator"), [("a", None), ("steps", "="), ("steps", None)])
def test_the_answer_of_the_highest_rating_is_picked(scorers, name, separator):
    """All answers of a prompt stand in the order of their ratings, and the first is the pick."""
    ends = {"step_separator": separator}
    rows = made_rows(picking(scorers[name], num_generations=6, **ends))
    ratings = ratings_of(rows, scorers[name], separator=separator)
    pairs = zip(rows, ratings, strict=True)
    groups = [[*group] for _, group in groupby(pairs, key=lambda pair: pair[0]["id"])]
    for group in groups:
        values = [rating for _, rating in group]
        assert values == pytest.approx(sorted(values, reverse=True), abs=1e-6)
    assert max(len(group) for group in groups) > 1
    picks = made_rows(picking(scorers[name], num_generations=6, kept_per_prompt=1, **ends))
    assert picks == [group[0][0] for group in groups]


def test_a_key_follows_the_scorer_and_not_a_setting_that_is_unset(scorers):
    keys = {picking(scorers[name]).rows.key for name in ("a", "b", "steps")}
    keys.add(picking(scorers["steps"], step_separator=";").rows.key)
    assert len(keys) == 4
    assert picking(scorers["a"], step_separator=None).rows.key in keys


def test_of_equal_ratings_the_first_answer_is_picked(policy, scorers):
    rater = load_rater(scorers["a"], Loading(device="cpu"))
    torch.nn.init.zeros_(rater.model.score.weight)
    equal, prompts = (RatingReward(rater),), list(load_training_data("pocket"))
    kept = {"least_reward": ALL, "num_generations": 6}
    (one,) = set(rater([Asked("1+1=", text) for text in ("2", "3\n4")]))
    assert math.isfinite(one)
    every = accepted_rows(policy, config(**kept), equal, prompts)
    first = {row["id"]: row for row in reversed(every)}
    picks = accepted_rows(policy, config(**kept, kept_per_prompt=1), equal, prompts)
    assert len(every) > len(picks)
    assert picks == [first[row["id"]] for row in picks]
    sampled = policy([row["prompt"][0]["content"] for row in picks], decoding(config(**kept)))
    assert [text_of(row) for row in picks] == [answers[0].text for answers in sampled]
    rater.model.score.bias.data.fill_(torch.nan)
    with pytest.raises(BadValue, match="expected a finite number"):
        accepted_rows(policy, config(**kept), equal, prompts)


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("role", "changes", "message"),
    [
        (POLICY, {}, "rates no answers: expected a model that"),
        ("a", {"step_separator": ";"}, "scores tokens, not steps: leave it out"),
    ],
)
def test_a_model_that_does_not_rate_so_is_refused_before_anything_is_sampled(
    scorers, role, changes, message
):
    chain = picking(scorers.get(role, role), **changes)
    with pytest.raises(BadValue, match=message):
        made_rows(chain)
    assert not list(chain.rows.folder.glob("*.jsonl"))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"step_separator": ";"}, BadValue, "no model has the role `scorer`"),
        ({"roles": {"judge": POLICY}}, UnknownName, "role of a model"),
        ({"family": "own-solutions", "roles": {"scorer": POLICY}}, UnknownName, "role of a model"),
    ],
)
def test_a_scorer_that_would_not_act_is_refused(changes, error, message):
    made = {**SAMPLED, "model": POLICY, **changes}
    if made["family"] == "own-solutions":
        del made["least_reward"]
    arms = {"sft": {"family": "sft", "data": "prepared:accepted"}}
    with pytest.raises(error, match=message):
        Chain(resolve(replace(FOUR, preparations={"accepted": made}, arms=arms))).rows.key  # noqa: B018
