"""A preparation keeps the prompts that a model answers right at a certain rate."""

from dataclasses import replace

import pytest
from test_rejection import FOUR, SAMPLED

from core.collect.difficulty import rows_of_difficulty
from core.data.load import load_training_data
from core.models.load import load_policy, load_tokenizer
from core.paper.registry import find_paper
from core.preparations.difficulty import DifficultyConfig
from core.rewards import Accuracy
from core.samplers.policy import PolicySampler
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.data import read_rows, split_rows
from eval.errors import BadValue

FILTERED = {n: v for n, v in SAMPLED.items() if n != "least_reward"} | {
    "family": "difficulty-filter",
    "model": "pocket-instruct",
    "rate_above": -1.0,
}
PAPER = replace(
    FOUR,
    preparations={"easy": FILTERED},
    arms={"rl": {"data": "prepared:easy", "num_generations": 2, "heldout_problems": 0}},
)


def config(**changes):
    quiet = {"output_dir": "unused", "use_cpu": True, "bf16": False, "report_to": "none"}
    short = {"num_prompts": 12, "num_generations": 4, "max_completion_length": 64}
    return DifficultyConfig(**quiet | short | changes)


@pytest.fixture(scope="module")
def policy():
    return PolicySampler(load_policy("pocket-instruct"), load_tokenizer("pocket-instruct"))


@pytest.fixture(scope="module")
def prompts():
    return list(load_training_data("pocket"))


@pytest.fixture(scope="module")
def every(policy, prompts):
    """All prompts that are asked, with their rates."""
    return rows_of_difficulty(policy, config(rate_above=-1.0), (Accuracy(),), prompts)


def test_the_rate_is_the_share_of_answers_with_a_positive_reward(policy, prompts, every):
    calls = []

    def counted(completions, **columns):
        values = Accuracy(wrong=-1.0)(completions=completions, **columns)
        calls.append(values)
        return values

    found = rows_of_difficulty(policy, config(rate_above=-1.0), (counted,), prompts)
    assert found == every
    assert len({row["pass_rate"] for row in every}) > 2
    (values,) = calls
    groups = [values[i : i + 4] for i in range(0, len(values), 4)]
    assert [row["pass_rate"] for row in found] == [group.count(1.0) / 4 for group in groups]


@pytest.mark.parametrize(("above", "most"), [(0.0, 1.0), (0.0, 0.5), (0.25, 0.75), (0.5, 1.0)])
def test_prompts_between_the_bounds_are_kept_as_they_are(above, most, policy, prompts, every):
    bounds = config(rate_above=above, rate_at_most=most)
    kept = rows_of_difficulty(policy, bounds, (Accuracy(),), prompts)
    assert kept == [row for row in every if above < row["pass_rate"] <= most]
    assert 0 < len(kept) < len(every)
    known = {row["id"]: row for row in prompts}
    assert all({**known[row["id"]], "pass_rate": row["pass_rate"]} == row for row in kept)


def test_bounds_without_a_prompt_say_what_was_found(policy, prompts):
    def never(completions, **_):
        return [0.0 for _ in completions]

    with pytest.raises(
        BadValue, match=r"none of 12 prompts has a pass rate above 0 .* from 0 to 0"
    ):
        rows_of_difficulty(policy, config(), (never,), prompts)


@pytest.mark.parametrize(("above", "most"), [(0.5, 0.5), (1.0, 2.0), (-2.0, -1.0)])
def test_bounds_that_nothing_lies_between_are_refused(above, most):
    with pytest.raises(BadValue, match=f"rate_above={above}, rate_at_most={most}: expected"):
        config(rate_above=above, rate_at_most=most)


def named(row, names):
    return {name: row[name] for name in names}


def test_a_training_takes_the_rows_as_its_data_and_holds_out_what_the_prompts_do(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    chain = Chain(resolve(PAPER, arm="rl"))
    rows = chain.prepared["easy"].rows
    for stage in (rows.data, rows.answers, rows, chain.data):
        stage.run()
    made = read_rows(rows.folder)
    assert len(made) == SAMPLED["num_prompts"]
    found, asked = read_rows(chain.data.folder), read_rows(rows.data.folder)
    assert split_rows(found, heldout=0)[0] == made
    held_out = [row for row in asked if row["split"] == "valid"]
    assert held_out
    assert [named(row, held_out[0]) for row in found if row["split"] == "valid"] == held_out
    other = {"easy": FILTERED | {"rate_above": 0.2}}
    assert Chain(resolve(replace(PAPER, preparations=other), arm="rl")).train.key != chain.train.key


@pytest.mark.parametrize(
    ("paper", "arm", "holds_out"),
    [
        (PAPER, "rl", True),
        (find_paper("a2po"), "a2po", True),  # an optimal value is of no use without training
        (FOUR, None, False),  # reads a completion
    ],
    ids=["prompts", "values", "completions"],
)
def test_prompts_are_held_out_unless_what_is_added_is_measured_of_them_too(paper, arm, holds_out):
    assert Chain(resolve(paper, **{"arm": arm} if arm else {})).data.holds_out is holds_out
