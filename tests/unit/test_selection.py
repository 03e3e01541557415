"""Completions that are not selected are neither trained on nor computed for."""

import pytest
import torch
from grpo_runs import double, logs, of_loss, weights
from torch.nn.functional import normalize

from core.losses.estimators import Scored
from core.losses.policy import LOSS_TYPES
from core.losses.selection import SELECTIONS, Selected
from eval.errors import BadValue

GROUP = 4
BOTH = ("all", "varied")
SPLITS = {"at once": (16, 1), "halves": (8, 2), "pieces": (2, 8)}  # rows, micro-batches
EXACT = 1e-12


def endings(completion_ids, **_):
    """The same within the groups whose completions begin with 7."""
    return [0.0 if ids[0] == 7 else float(ids[-2] % 5) for ids in completion_ids]


def rollout(same):
    """Four groups of completions of various lengths; those at `same` begin with 7."""

    def complete(prompts, trainer):
        draw = torch.Generator().manual_seed(trainer.state.global_step)
        ids = [torch.randint(20, 64, (3 + i % 4,), generator=draw).tolist() for i in range(16)]
        return {
            "prompt_ids": [[9, 8, 7 + i // GROUP] for i in range(len(prompts))],
            "completion_ids": [
                [7 if i // GROUP in same else 8, *row, 1] for i, row in enumerate(ids)
            ],
            "logprobs": None,
        }

    return complete


@pytest.fixture
def make(make_grpo, build_llama):
    def build(selection, *, same=(0, 2, 3), split="halves", reward=endings, **changes):
        rows, parts = SPLITS[split]
        return make_grpo(
            reward,
            model=double(build_llama()),
            rollout=rollout(same),
            per_device_train_batch_size=rows,
            gradient_accumulation_steps=parts,
            rollout_selection=selection,
            lr_scheduler_type="constant",
            max_grad_norm=1e9,
            **{"max_steps": 1, "optim": "sgd", **changes},
        )

    return build


def moved(trainer):
    """The weights' move in all steps."""
    before = weights(trainer.model)
    trainer.train()
    return weights(trainer.model) - before


def test_groups_that_vary_are_selected_in_their_order():
    scored = Scored(rewards=torch.tensor([[2.0]] * 2 + [[0.0], [1.0]] * 2), group=2, length=3)
    assert SELECTIONS["all"].choose(scored, torch.ones(1), 0) is None
    found = SELECTIONS["varied"].choose(scored, torch.ones(1), 0)
    assert (found.rows.tolist(), found.group) == ([2, 3, 4, 5], 2)
    assert scored.take(found.rows, found.group).rewards.tolist() == scored.rewards[2:].tolist()
    assert found.scatter(6, torch.tensor([5.0, 6, 7, 8])).tolist() == [0, 0, 5, 6, 7, 8]


def scored_as(rewards, tokens, group):
    """Completions with these rewards of one function, or of several, and numbers of tokens."""
    table = torch.tensor(rewards, dtype=torch.float64)
    table = table.unsqueeze(1) if table.dim() == 1 else table
    return Scored(rewards=table, group=group, length=max(tokens), tokens=torch.tensor(tokens))


def test_the_shortest_of_each_group_are_selected_the_earlier_of_equal_ones():
    scored = scored_as([0.0] * 8, [5, 3, 3, 3, 9, 2, 9, 1], group=4)
    found = SELECTIONS["shortest"].choose(scored, torch.ones(1), 2)
    assert (found.rows.tolist(), found.group) == ([1, 2, 5, 7], 2)
    assert scored.take(found.rows, 2).tokens.tolist() == [3, 3, 2, 1]


def test_reward_per_token_counts_where_it_is_said_to():
    """By hand: 1/5, 1/2, 0/1 and unscored; 2/10, 1/4, -1/1, -1/2."""
    rewards = [1.0, 1.0, 0.0, torch.nan, 2.0, 1.0, -1.0, -1.0]
    scored = scored_as(rewards, [5, 2, 1, 1, 10, 4, 1, 2], group=4)
    for kept, rows in ((1, [1, 5]), (2, [0, 1, 4, 5]), (3, [0, 1, 2, 4, 5, 7])):
        assert SELECTIONS["efficient"].choose(scored, torch.ones(1), kept).rows.tolist() == rows


def test_a_completion_without_tokens_is_no_division_by_zero():
    scored = scored_as([1.0, 1.0], [0, 2], group=2)
    assert SELECTIONS["efficient"].choose(scored, torch.ones(1), 1).rows.tolist() == [0]


def test_a_rollout_is_filled_up_with_the_first_of_the_others():
    selected = Selected(rows=torch.tensor([2, 3, 8, 9]), group=2)
    assert selected.fill_up(8, 12).rows.tolist() == [0, 1, 2, 3, 4, 5, 8, 9]
    assert selected.fill_up(4, 12) is not selected
    assert selected.fill_up(4, 12).rows.tolist() == [2, 3, 8, 9]


def test_what_no_reward_scored_does_not_vary():
    rewards = torch.tensor([[torch.nan], [torch.nan], [torch.nan], [1.0], [0.0], [1.0]])
    scored = Scored(rewards=rewards, group=2, length=3)
    assert SELECTIONS["varied"].choose(scored, torch.ones(1), 0).rows.tolist() == [4, 5]


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_what_is_dropped_only_shortens_the_step(loss_type, make):
    """Its gradient is 0 anyway; a mean over fewer completions is the longer for it."""
    every, varied = (moved(make(name, **of_loss(loss_type))) for name in BOTH)
    if LOSS_TYPES[loss_type].split_invariant:
        torch.testing.assert_close(normalize(every, dim=0), normalize(varied, dim=0))
        assert varied.norm() > 2 * every.norm()
    assert varied.norm() > 1e-3


@pytest.mark.parametrize(
    "loss_type", [name for name, row in LOSS_TYPES.items() if row.split_invariant]
)
@pytest.mark.parametrize("changes", [{}, {"beta": 0.1, "num_iterations": 2, "max_steps": 2}])
@pytest.mark.parametrize(
    "selection", [{"selection": "varied"}, {"selection": "efficient", "selection_kept": 2}]
)
def test_a_selection_does_not_depend_on_the_split(selection, changes, loss_type, make):
    """One group of four has signal, in 1, 2 or 8 micro-batches."""
    first, *others = (
        moved(make(**selection, split=split, **of_loss(loss_type), **changes)) for split in SPLITS
    )
    assert first.norm() > 1e-4
    for other in others:
        assert (other - first).abs().max() < EXACT


@pytest.mark.parametrize(
    "loss_type", [name for name, row in LOSS_TYPES.items() if row.split_invariant]
)
def test_the_mean_is_over_what_is_selected(loss_type, make):
    """Of the steps by one group alone, which has the same completions."""

    def only(prompts, trainer):
        found = rollout(same=(0, 2, 3))(prompts, trainer)
        return {k: v and v[GROUP : 2 * GROUP] * GROUP for k, v in found.items()}

    trainer = make("all", **of_loss(loss_type))
    trainer.rollout_func = only
    assert (moved(trainer) - moved(make("varied", **of_loss(loss_type)))).abs().max() < EXACT


def test_nothing_is_computed_for_what_is_dropped(make):
    """The model reads the completions of one group of four, each of its passes."""
    read = {}
    for name in BOTH:
        trainer = make(name, beta=0.1, split="at once")
        for model in (trainer.model, trainer.ref_model):
            model.register_forward_pre_hook(
                lambda _, __, inputs, name=name: read.setdefault(name, []).append(
                    inputs["input_ids"].numel()
                ),
                with_kwargs=True,
            )
        trainer.train()
    assert len(read["varied"]) == len(read["all"]) == 2  # the reference and the step
    assert max(read["varied"]) < min(read["all"]) / 3


def test_its_share_is_logged_and_rewards_are_of_all(make):
    every, varied = (make(name) for name in BOTH)
    for trainer in (every, varied):
        trainer.train()
    assert logs(varied, "completions/selected_fraction") == [0.25]
    assert logs(every, "completions/selected_fraction") == []
    for name in ("reward", "reward_std", "frac_reward_zero_std", "completions/mean_length"):
        assert logs(every, name) == logs(varied, name)


def test_a_rollout_without_any_left_moves_nothing(make):
    trainer = make("varied", same=range(4))
    assert moved(trainer).abs().max() == 0
    assert logs(trainer, "loss") == [0.0]
    assert logs(trainer, "grad_norm") == [0.0]


def wordy(completion_ids, **_):
    """Differs within every group, those included that begin with 7."""
    return [len(ids) / 9 for ids in completion_ids]


@pytest.mark.parametrize("judge", ["endings", "wordy"])
def test_one_reward_may_judge_and_all_of_them_teach(judge, make):
    """Groups with equal `endings` have signal by the other reward."""
    trainer = make("varied", reward=[endings, wordy], selection_reward=judge)
    assert moved(trainer).norm() > 1e-3
    assert logs(trainer, "completions/selected_fraction") == [
        {"endings": 0.25, "wordy": 1.0}[judge]
    ]


def test_a_judge_that_is_no_reward_is_refused_when_the_trainer_is_made(make):
    with pytest.raises(
        BadValue, match=r"selection_reward='acuracy': expected .* of endings, wordy"
    ):
        make("varied", reward=[endings, wordy], selection_reward="acuracy")
    with pytest.raises(BadValue, match="expected the name of one reward of wordy_1, wordy_2"):
        make("varied", reward=[wordy, wordy], selection_reward="wordy")


@pytest.mark.parametrize("kept", [None, 1, GROUP + 1])
def test_no_group_keeps_fewer_than_two_or_more_than_it_has(kept, make):
    with pytest.raises(
        BadValue, match=f"selection_kept={kept} .*: expected 2 to num_generations=4"
    ):
        make("shortest", selection_kept=kept)


KEEPING = ["shortest", "efficient"]


@pytest.mark.parametrize("selection", KEEPING)
def test_keeping_all_of_a_group_is_no_selection(selection, make):
    every, kept = (
        moved(make(name, same=(), **more))
        for name, more in (("all", {}), (selection, {"selection_kept": GROUP}))
    )
    assert every.equal(kept)


@pytest.mark.parametrize("selection", KEEPING)
@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_what_is_rejected_has_no_advantage_and_counts_in_every_mean(loss_type, selection, make):
    """As if the advantages of a rollout without a selection were these."""
    options = {**of_loss(loss_type), "same": (), "reward": [endings, wordy]}
    chosen = make(selection, selection_kept=2, **options)
    step = moved(chosen)
    other = make("all", **options)
    found = []

    def advantages(scored):
        rows = SELECTIONS[selection].choose(scored, torch.ones(2), 2).rows
        values = torch.zeros(16)
        values[rows] = type(other).advantages(other, scored.take(rows, 2))
        found.append(values)
        return values

    other.advantages = advantages
    assert (moved(other) - step).abs().max() < EXACT
    assert step.norm() > 1e-4
    assert found[0].ne(0).view(-1, GROUP).sum(1).max() == 2
    pairs = [group[group != 0] for group in found[0].view(-1, GROUP) if group.any()]
    assert all(pair.sum().abs() < 1e-5 and abs(pair.std() - 1) < 1e-2 for pair in pairs)
    assert logs(chosen, "completions/selected_fraction") == [0.5]


def test_what_is_rejected_has_no_backward(make):
    trainer = make("shortest", same=(), selection_kept=2, split="at once")
    read = {True: 0, False: 0}

    def look(_, __, inputs):
        read[torch.is_grad_enabled()] += inputs["input_ids"].numel()

    trainer.model.register_forward_pre_hook(look, with_kwargs=True)
    trainer.train()
    assert 0 < read[True] < read[False]


def test_a_trainer_may_select_otherwise(make):
    """The best two of each group, by overriding the method: groups of another size."""
    trainer = make("all", same=(), loss_type="grpo")
    taken = []

    def best(scored):
        rows = scored.rewards.view(-1, GROUP).argsort(dim=1, stable=True)[:, -2:]
        rows = (rows + torch.arange(GROUP)[:, None] * GROUP).flatten()
        taken.append(scored.rewards[rows])
        return Selected(rows=rows, group=2)

    trainer.select = best
    assert moved(trainer).norm() > 1e-3
    assert logs(trainer, "completions/selected_fraction") == [0.5]
    assert len(taken[0]) == 8
