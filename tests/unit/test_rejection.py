"""Rejection sampling: a preparation that makes rows of what a model answers and rewards accept."""

import json
from dataclasses import replace

import pytest

from core.collect.rejection import accepted_rows
from core.data.load import load_training_data
from core.models.load import load_policy, load_tokenizer
from core.preparations.rejection import RejectionConfig
from core.rewards import Accuracy
from core.run.order import run_order
from core.run.plan import make_plan
from core.run.request import Order
from core.samplers.policy import PolicySampler
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.data import read_rows
from core.stages.questions import modes_of
from eval.errors import BadValue
from eval.samples.tir import printed_output
from eval.samples.transcripts import STOP, program_of
from eval.sandbox import Sandbox, neutral
from papers.deepseekmath_grpo import PAPER

FEW = ("max_steps=2", "eval_limit=3", "eval_max_tokens=24", "heldout_problems=2", "at_k_samples=4")
TRAINED = {"max_steps": 2, "per_device_train_batch_size": 4, "heldout_problems": 0}
SAMPLED = {
    "family": "rejection-sampling",
    "model": "prepared:rl",
    "num_prompts": 6,
    "num_generations": 2,
    "max_completion_length": 24,
    "least_reward": 0.0,
}
FOUR = replace(
    PAPER,
    slug="four-trainings",
    benchmarks=("gsm8k",),
    claims=(),
    preparations={
        "cold-start": {"family": "sft", **TRAINED},
        "rl": {
            "model": "prepared:cold-start",
            "num_generations": 2,
            "max_completion_length": 12,
            **TRAINED,
        },
        "accepted": SAMPLED,
    },
    arms={
        "sft": {
            "family": "sft",
            "model": "prepared:cold-start",
            "data": "prepared:accepted",
            "per_device_train_batch_size": 4,
        }
    },
)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty folder for runs/, results/ and reports/."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    return tmp_path


def config(**changes):
    quiet = {"output_dir": "unused", "use_cpu": True, "bf16": False, "report_to": "none"}
    short = {"num_prompts": 5, "num_generations": 4, "max_completion_length": 64}
    return RejectionConfig(**quiet | short | changes)


@pytest.fixture(scope="module")
def policy():
    return PolicySampler(load_policy("pocket-instruct"), load_tokenizer("pocket-instruct"))


@pytest.fixture(scope="module")
def prompts():
    return list(load_training_data("pocket"))


@pytest.mark.usefixtures("few_worked")
def test_cold_start_rl_rejection_sampling_and_fine_tuning_are_one_chain(root):
    plan = [stage.name for stage, _ in make_plan(resolve(FOUR, arguments=FEW), 0).stages]
    cold = rl = ["data", "start", "train"]
    after = ["eval", "eval", "probabilities", "probabilities"]
    assert plan == [*cold, *rl, "data", "start", "rows", "data", "train", *after]
    (record,) = run_order(Order(paper=FOUR, arguments=FEW)).runs
    assert (record["data"]["name"], record["train"]["steps"]) == ("prepared:accepted", 2)
    assert str(root) not in json.dumps(record)
    chain = Chain(resolve(FOUR, arguments=FEW))
    rows = read_rows(chain.data.folder)
    made = read_rows(chain.prepared["accepted"].rows.folder)
    assert [{"split": "train", **row} for row in made] == rows
    assert {row["prompt"][0]["content"] for row in rows} <= {
        row["prompt"][0]["content"] for row in load_training_data("pocket")
    }
    assert {state for _, state in make_plan(resolve(FOUR, arguments=FEW), 0).stages} == {"done"}


def test_what_is_kept_is_accepted_distinct_and_the_best_of_its_prompt(policy, prompts):
    paid = Accuracy(right=1.0, wrong=0.0)
    rows = accepted_rows(policy, config(), (paid,), prompts)
    again = paid(
        completions=[row["completion"] for row in rows],
        answer=[row["answer"] for row in rows],
        language=[row["language"] for row in rows],
    )
    assert set(again) == {1.0}
    told = [(row["id"], row["completion"][0]["content"]) for row in rows]
    assert len(set(told)) == len(told)
    every = accepted_rows(policy, config(least_reward=0.0), (paid,), prompts)
    assert len(every) > len(rows)
    assert all(row in every for row in rows)
    best = accepted_rows(policy, config(least_reward=0.0, kept_per_prompt=1), (paid,), prompts)
    assert [row["id"] for row in best] == list(dict.fromkeys(row["id"] for row in every))
    assert all(row in best for row in rows if row["id"] not in {b["id"] for b in best if b != row})


def length_of_text(completions, **_):
    return [float(len(completion[0]["content"])) for completion in completions]


def nothing(completions, **_):
    return [None for _ in completions]


def test_the_sum_of_the_rewards_decides_and_one_that_does_not_apply_adds_nothing(policy, prompts):
    rows = accepted_rows(policy, config(least_reward=0.0), (length_of_text,), prompts)
    lengths = {row["id"]: [] for row in rows}
    for row in rows:
        lengths[row["id"]].append(len(row["completion"][0]["content"]))
    assert all(found == sorted(found, reverse=True) for found in lengths.values())
    middle = sorted(n for found in lengths.values() for n in found)[len(rows) // 2]
    both = (length_of_text, nothing)
    longer = accepted_rows(policy, config(least_reward=middle), both, prompts)
    assert longer == [row for row in rows if len(row["completion"][0]["content"]) >= middle]


@pytest.mark.parametrize(
    ("rewards", "rows", "message"),
    [
        ((), [{"prompt": [{"role": "user", "content": "a"}]}], "no reward to judge answers by"),
        ((nothing,), [{"prompt": "a"}], "expected one turn of the user"),
        ((nothing,), [{"prompt": [{"role": "user", "content": "a"}]}], "none of . answers has"),
    ],
)
def test_what_cannot_be_sampled_or_accepted_is_refused(policy, rewards, rows, message):
    with pytest.raises(BadValue, match=message):
        accepted_rows(policy, config(), rewards, rows)


@pytest.mark.parametrize("change", [{"temperature": 0.0}, {"top_p": 0.0}, {"learning_rate": 0.1}])
def test_settings_that_cannot_act_are_refused(change):
    with pytest.raises(BadValue, match=next(iter(change))):
        config(**change)


def test_rows_killed_on_the_way_are_continued_and_equal_those_made_at_once(root, monkeypatch):
    paper = replace(FOUR, preparations={"accepted": {**SAMPLED, "model": "pocket-instruct"}},
                    arms={"sft": {"family": "sft", "data": "prepared:accepted"}})  # fmt: skip
    rows = Chain(resolve(paper)).prepared["accepted"].rows
    for stage in (rows.data, rows.answers):
        stage.run()
    first = rows.run()
    journal = sorted(path.name for path in rows.folder.iterdir())
    assert journal == ["done.json", "rows.jsonl"]
    (rows.folder / "done.json").unlink()
    assert rows.run() == first
    monkeypatch.setenv("REPRO_ROOT", str(root / "other"))
    for stage in (rows.data, rows.answers):
        stage.run()
    assert rows.run() == first


def changed(**changes):
    """The keys of rows and training where the preparation has other settings or another name."""
    name = changes.pop("name", "accepted")
    made = {name: {**SAMPLED, "model": "pocket-instruct", **changes}}
    arms = {"sft": {"family": "sft", "data": f"prepared:{name}"}}
    chain = Chain(resolve(replace(FOUR, preparations=made, arms=arms)))
    return chain.prepared[name].rows.key, chain.data.key, chain.train.key


def test_keys_follow_what_a_preparation_makes_and_not_its_name():
    assert changed() == changed(name="other")
    others = [{"num_prompts": 7}, {"least_reward": 0.5}, {"data": "pocket-math"}, {"rewards": ()}]
    keys = [changed(), *(changed(**each) for each in others), changed(model="pocket-base")]
    for column in zip(*keys, strict=True):
        assert len(set(column)) == len(keys)


@pytest.mark.parametrize(
    ("arm", "preparations", "message"),
    [
        ({"data": "prepared:cold"}, {"cold": {"family": "sft"}}, "gives no rows, and sft asks for"),
        ({"model": "prepared:made"}, {"made": SAMPLED | {"model": "a/b"}}, "gives no model"),
        ({"data": "prepared:made"}, {"mdae": SAMPLED}, "no preparation 'made': did you mean mdae"),
        (
            {"data": "prepared:made"},
            {"made": SAMPLED | {"data": "prepared:made"}},
            "preparations wait for each other: made > made|gives no model|no preparation 'rl'",
        ),
    ],
)
def test_a_preparation_that_gives_something_else_is_refused(arm, preparations, message):
    paper = replace(FOUR, preparations=preparations, arms={"sft": {"family": "sft", **arm}})
    with pytest.raises((BadValue, LookupError), match=message):
        resolve(paper)


def test_rows_are_joined_with_those_of_a_data_set_and_lack_no_column(root):
    made = {"accepted": {**SAMPLED, "model": "pocket-instruct"}}
    both = {"family": "sft", "data": "prepared:accepted+pocket-worked"}
    chain = Chain(resolve(replace(FOUR, preparations=made, arms={"sft": both})))
    for stage in chain.preparations:
        stage.run()
    own, all_rows = chain.prepared["accepted"].rows.outputs(), chain.data.run()
    assert all_rows["rows"] == own["rows"] + 12_000
    assert all_rows["name"] == "prepared:accepted+pocket-worked"
    assert str(root) not in json.dumps(all_rows)


def test_an_arm_that_only_makes_rows_is_refused_and_so_is_a_preparation_run_as_one():
    with pytest.raises(BadValue, match="makes rows, which are not scored"):
        make_plan(resolve(FOUR, arm="accepted"), 0)


@pytest.mark.usefixtures("root")
def test_programs_of_sampled_answers_run_and_their_outputs_are_in_the_rows():
    """What stands in an output block is what the program before it prints."""
    answered = {**SAMPLED, "model": "pocket-instruct", "data": "pocket-programs"}
    answered |= {"answer_mode": "tir", "max_completion_length": 96}
    paper = replace(FOUR, preparations={"accepted": answered},
                    arms={"sft": {"family": "sft", "data": "prepared:accepted"}})  # fmt: skip
    chain = Chain(resolve(paper))
    assert "tir" in modes_of(chain.prepared["accepted"].resolved)
    rows = chain.prepared["accepted"].rows
    for stage in (rows.data, rows.answers, rows):
        stage.run()
    texts = [row["completion"][0]["content"] for row in read_rows(rows.folder)]
    with_programs = [text for text in texts if program_of(text.partition(STOP)[0])]
    assert len(with_programs) > len(texts) / 2
    with Sandbox() as sandbox:
        ran = sandbox.run([program_of(text.partition(STOP)[0]) for text in with_programs])
    printed = [neutral(printed_output(execution)) for execution in ran]
    assert [
        text.partition(f"{STOP}\n")[2].partition("\n```")[0] for text in with_programs
    ] == printed
