"""Prompts are drawn until a rollout is full of groups whose rewards differ; arXiv 2503.14476."""

from random import Random

import pandas as pd
import pytest
import torch
from datasets import Dataset
from grpo_runs import digits, double, logs, of_loss, weights

from core.losses.policy import LOSS_TYPES
from eval.errors import BadValue

GROUP, EXACT = 4, 1e-12
# Two prompts fill a rollout: the first one takes three draws, the others one and two.
DULL = "nnynnyyynyyn"
UNEQUAL = [3, 1, 2]


def rows(text):
    """Prompts that are told apart, and of which those at `n` get equal rewards."""
    return Dataset.from_list(
        [{"prompt": f"{i}+{i}=", "dull": c == "n"} for i, c in enumerate(text)]
    )


def completions(prompts, trainer):
    """What a completion is depends on its prompt and its place in the group."""
    tokenizer = trainer.processing_class
    draws = [Random(f"{prompt} {place % GROUP}") for place, prompt in enumerate(prompts)]
    ids = [[d.randrange(20, 64) for _ in range(d.choice([1, 3, 6]))] for d in draws]
    return {
        "prompt_ids": [tokenizer(prompt).input_ids for prompt in prompts],
        "completion_ids": [[*row, tokenizer.eos_token_id] for row in ids],
        "logprobs": None,
    }


def spread(completion_ids, dull, **_):
    """As the first token says, but for dull prompts."""
    return [0.0 if d else ids[0] / 64 for ids, d in zip(completion_ids, dull, strict=True)]


def by_step(completion_ids, completions, dull, **_):
    """One step or two, the last one at the end."""
    scores = spread(completion_ids, dull)
    halves = [[(len(t) // 2, 0.5)] * (len(t) > 2) for t in completions]
    return [
        [] if d else [*half, (len(t), score)]
        for half, t, score, d in zip(halves, completions, scores, dull, strict=True)
    ]


by_step.per_step = True


@pytest.fixture
def make(make_grpo, build_llama):
    def build(selection, text, reward=spread, **changes):
        settings = {
            "model": double(build_llama()),
            "dataset": rows(text),
            "rollout": completions,
            "shuffle_dataset": False,
            "max_steps": 3,
            **changes,
        }
        return make_grpo(reward, rollout_selection=selection, **settings)

    return build


def filled(make, text=DULL, **changes):
    """A trainer with full rollouts."""
    return make("filled", text, **changes)


@pytest.fixture
def only(make):
    """A trainer on those prompts alone that fill the rollouts of the other."""

    def build(**changes):
        trainer = make("all", DULL, **changes)
        trainer.train_dataset = rows(DULL).filter(lambda row: not row["dull"])
        return trainer

    return build


def assert_alike(build, *others):
    """Trainers that `build` and others make are the same after training, and have moved."""
    trained = []
    for make_one in (build, *others):
        trainer = make_one()  # which seeds everything, so that each trains before the next is made
        start = weights(trainer.model)
        trainer.train()
        assert (weights(trainer.model) - start).norm() > 1e-3
        trained.append(trainer)
    for other in trained[1:]:
        assert (weights(other.model) - weights(trained[0].model)).abs().max() < EXACT
    return trained


SPLITS = {"halves": {}, "at once": {"gradient_accumulation_steps": 1, "beta": 0.1}}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_a_full_rollout_is_that_of_the_prompts_that_fill_it(loss_type, split, make, only):
    size = 2 * GROUP
    changes = {**of_loss(loss_type), **SPLITS[split]}
    changes["per_device_train_batch_size"] = size // changes.get("gradient_accumulation_steps", 2)
    one, other = assert_alike(lambda: filled(make, **changes), lambda: only(**changes))
    assert logs(one, "completions/selected_fraction") == [1 / n for n in UNEQUAL]
    assert logs(one, "num_completions") == [size * 3, size * 4, size * 6]
    assert logs(other, "num_completions") == [size, size * 2, size * 3]


def test_advantages_of_steps_are_filled_too(make, only):
    """Their tables have as many columns as a draw has steps."""
    changes = {"reward": by_step, "advantage_estimator": "process"}
    assert_alike(lambda: filled(make, **changes), lambda: only(**changes))


def test_a_rollout_that_never_fills_is_refused_in_one_line(make):
    trainer = filled(make, text="nnnnny" + "n" * 30)
    with pytest.raises(BadValue) as error:
        trainer.train()
    assert (
        "rollout_selection='filled': 10 draws of 2 prompts gave 4 completions to train on, "
        "expected 8: take prompts"
    ) in str(error.value)
    assert "\n" not in str(error.value)
    assert trainer.prompts.drawn == 20 == trainer.args.selection_draws * 2


def test_a_rollout_that_never_fills_is_filled_up_if_that_is_asked_for(make):
    """Three draws of two prompts have one group with signal; the rest is the first other one."""
    text = "nnnynn" + "ynynyy" * 2
    trainer = filled(make, text=text, max_steps=2, selection_draws=3, selection_fills_up=True)
    assert trainer.args.rollout_draws == 3
    advantages = []
    keep = trainer.log_draws
    trainer.log_draws = lambda draws, values: advantages.append(values) or keep(draws, values)
    trainer.train()
    assert logs(trainer, "completions/draws") == [3, 2]
    assert logs(trainer, "completions/filler_fraction") == [0.5, 0.0]
    assert logs(trainer, "completions/selected_fraction") == [1 / 3, 1 / 2]
    assert logs(trainer, "num_completions") == [24, 40]
    assert advantages[0].view(-1, GROUP).any(1).tolist() == [False] * 3 + [True] + [False] * 2


def test_fillers_count_in_every_mean(make):
    """A rollout that is filled up is that of its prompts, whichever those are."""
    settings = {"max_steps": 1, "loss_type": "dapo"}
    one = filled(make, "nnny", selection_draws=2, selection_fills_up=True, **settings)
    other = make("all", DULL, **settings)
    other.train_dataset = rows("nnny").select([0, 3])
    one.train()
    other.train()
    assert (weights(one.model) - weights(other.model)).abs().max() < EXACT
    assert logs(one, "grad_norm")[0] == pytest.approx(logs(other, "grad_norm")[0]) != 0


def lengthy(completion_ids, **_):
    """A reward that no group agrees on."""
    return [len(ids) + ids[0] / 64 for ids in completion_ids]


def test_a_named_reward_says_what_a_rollout_is_filled_with(make):
    """The sum varies in every group, so that without a name one draw would do."""
    rewards = {"reward": [spread, lengthy]}
    judged, plain = filled(make, selection_reward="spread", **rewards), filled(make, **rewards)
    for trainer in (judged, plain):
        trainer.train()
    assert logs(judged, "completions/draws") == UNEQUAL
    assert logs(plain, "completions/draws") == [1, 1, 1]


def test_one_draw_is_enough_where_every_group_varies(make):
    """Then it is the rollout of everything."""
    trained = assert_alike(*[lambda n=name: make(n, "yyyyyy") for name in ("filled", "all")])
    assert [trainer.prompts.drawn for trainer in trained] == [6, 6]


@pytest.mark.parametrize("short", [{}, {"selection_draws": 2, "selection_fills_up": True}])
@pytest.mark.parametrize("kept", [1, 2])
def test_a_resumed_run_draws_on_where_it_stopped(kept, short, make):
    settings = {"save_strategy": "steps", "save_steps": 1, "rollout": None, "reward": digits_if}
    settings |= short
    whole, resumed = filled(make, **settings), filled(make, **settings)
    whole.train()
    resumed.train(resume_from_checkpoint=f"{whole.args.output_dir}/checkpoint-{kept}")
    assert torch.equal(weights(whole.model), weights(resumed.model))
    selection = "completions/selected_fraction", "completions/filler_fraction"
    for name in ("loss", "num_completions", "completions/draws", *selection):
        assert logs(whole, name) == logs(resumed, name)
    assert len({*zip(*(logs(whole, name) for name in selection), strict=True)}) > 1


def digits_if(completions, dull, **_):
    """What the policy samples, scored but for dull prompts."""
    scores = [s + len(t) for s, t in zip(digits(completions), completions, strict=True)]
    return [0.0 if d else s for s, d in zip(scores, dull, strict=True)]


def test_a_prompt_that_comes_again_in_a_rollout_is_sampled_otherwise(make):
    """Two rows, both dull until they are seen again."""
    seen = []

    def reward(completions, **_):
        seen.append(list(completions))
        return [float(len(seen) == 2) * i for i in range(len(completions))]

    trainer = filled(make, text="yy", reward=reward, rollout=None, max_steps=1)
    trainer.train()
    assert len(seen) == 2
    assert seen[0] != seen[1]


def test_evaluation_takes_everything_at_once(make):
    trainer = filled(make, evaluation=rows("nn"))
    assert trainer.evaluate()["eval_num_completions"] == 0
    assert "eval_completions/selected_fraction" not in trainer.evaluate()


def test_the_completion_log_has_the_last_draw(make, tmp_path):
    filled(make, max_steps=1, log_completions=True).train()
    frame = pd.read_parquet(tmp_path / "out" / "completions" / "completions_00001.parquet")
    assert list(frame["prompt"]) == ["4+4="] * GROUP + ["5+5="] * GROUP
    assert (frame["advantage"][:GROUP] == 0).all()
    assert (frame["advantage"][GROUP:] != 0).any()
