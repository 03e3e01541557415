"""Prompts come from a stream: its order, its position, and rollouts that take more of them."""

from pathlib import Path
from random import Random

import pytest
import torch
from accelerate.data_loader import prepare_data_loader
from grpo_runs import digits, logs, prompts, weights
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from core import GRPOTrainer
from core.collect.prompt_order import GroupSampler, PromptStream
from core.trainers.prompts import sampler_of
from core.trainers.resume import STATE
from eval.errors import BadValue

GROUP, ROWS = 4, 7  # two prompts fill a rollout of the trainers here, so that an epoch has 6 of 7


def stream(rows=23, group=2, per_rollout=3, repeats=2, shuffle=True, seed=5):
    shape = {"group": group, "prompts": per_rollout, "repeats": repeats}
    sampler = GroupSampler(range(rows), shuffle=shuffle, seed=seed, **shape)
    return PromptStream(sampler, **shape)


SHAPES = {
    "rows": st.integers(6, 30),
    "group": st.integers(1, 4),
    "per_rollout": st.integers(1, 6),
    "repeats": st.integers(1, 3),
    "shuffle": st.booleans(),
    "seed": st.integers(0, 2**31),
}
SHAPED = st.fixed_dictionaries(SHAPES)
CUTS = st.lists(st.integers(0, 40), max_size=8)


@given(shape=SHAPED, epochs=st.integers(1, 4))
def test_epoch_e_is_permutation_e_less_what_fills_no_rollout(shape, epochs):
    rows = shape["rows"]
    size = rows // shape["per_rollout"] * shape["per_rollout"]
    generator = torch.Generator().manual_seed(shape["seed"])
    orders = [
        torch.randperm(rows, generator=generator).tolist() if shape["shuffle"] else range(rows)
        for _ in range(epochs)
    ]
    expected = [row for order in orders for row in order[:size]]
    assert stream(**shape).take(epochs * size) == expected


@given(shape=SHAPED, cuts=CUTS)
def test_how_draws_are_cut_changes_nothing(shape, cuts):
    piecewise, at_once = stream(**shape), stream(**shape)
    drawn = [row for count in cuts for row in piecewise.take(count)]
    assert drawn == at_once.take(sum(cuts))
    assert piecewise.drawn == at_once.drawn == sum(cuts)


@given(shape=SHAPED, cuts=CUTS, after=st.integers(0, 40))
def test_a_stream_goes_on_from_its_position_alone(shape, cuts, after):
    first, again = stream(**shape), stream(**shape)
    for count in cuts:
        first.take(count)
    again.drawn = first.drawn
    assert again.take(after) == first.take(after)


@given(shape=SHAPED, counts=st.lists(st.integers(0, 5), max_size=5), processes=st.integers(1, 4))
def test_what_processes_take_is_together_what_one_takes(shape, counts, processes):
    alone, each = stream(**shape), [stream(**shape) for _ in range(processes)]
    for count in counts:
        shares = [s.share(count * processes, rank, processes) for rank, s in enumerate(each)]
        assert [row for share in shares for row in share] == alone.share(count * processes)
        assert len({len(share) for share in shares}) == 1


def test_a_sampler_of_less_than_a_rollout_is_refused():
    with pytest.raises(BadValue, match="yields 0 rows in an epoch: expected at least the 12 of"):
        stream(rows=2, per_rollout=3)


class Redrawing(GRPOTrainer):
    """Takes the prompts of as many more rollouts as a drawing of lots says, and trains on the last.

    The lots depend on the rollout alone, so that a resumed run has those of an unbroken one.
    """

    def rollout(self, rows):
        batch = super().rollout(rows)
        for _ in range(Random(self._rollouts).randrange(3)):
            batch = super().rollout(self.draw())
        return batch


@pytest.fixture
def make(make_grpo):
    """A trainer of a kind, and the list of the prompts that its rollouts had, each once."""

    def build(kind=GRPOTrainer, rows=ROWS, **changes):
        seen = []

        def reward(prompts, completions, **_):
            seen.extend(prompt[0]["content"] for prompt in prompts[::GROUP])
            return digits(completions)

        return make_grpo(reward, kind=kind, dataset=prompts(rows), **changes), seen

    return build


def in_order(count, per_rollout=2):
    """The first prompts of the stream that such a trainer has."""
    rows, texts = stream(ROWS, GROUP, per_rollout, seed=42).take(count), prompts(ROWS)["prompt"]
    return [texts[row][0]["content"] for row in rows]


KINDS = {"fixed": GRPOTrainer, "redrawing": Redrawing}
SHAPES_OF_STEPS = {
    "a rollout a step": {},
    "several a step": {"gradient_accumulation_steps": 4, "steps_per_generation": 2},
    "several steps a rollout": {"num_iterations": 2, "steps_per_generation": 4},
}


@pytest.mark.parametrize("steps", SHAPES_OF_STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_prompt_of_the_stream_is_sampled_once_in_its_order(kind, steps, make):
    trainer, seen = make(KINDS[kind], max_steps=8, **SHAPES_OF_STEPS[steps])
    trainer.train()
    per_rollout = trainer.args.rollout_prompts
    lots = [1 + Random(n).randrange(3) * (kind == "redrawing") for n in range(trainer._rollouts)]
    assert len(seen) == sum(lots) * per_rollout == trainer.prompts.drawn
    assert seen == in_order(len(seen), per_rollout)
    assert logs(trainer, "num_completions")[-1] == len(seen) * GROUP


@pytest.mark.parametrize("steps", SHAPES_OF_STEPS)
@pytest.mark.parametrize("kept", [1, 3, 4, 6])
def test_a_resumed_run_with_unequal_draws_is_the_same_run(kept, steps, make):
    settings = {"max_steps": 7, "save_strategy": "steps", "save_steps": 1}
    settings |= SHAPES_OF_STEPS[steps]
    (whole, seen), (resumed, later) = (make(Redrawing, **settings) for _ in range(2))
    whole.train()
    resumed.train(resume_from_checkpoint=f"{whole.args.output_dir}/checkpoint-{kept}")
    assert torch.equal(weights(whole.model), weights(resumed.model))
    assert resumed.prompts.drawn == whole.prompts.drawn
    assert len(later) < len(seen)
    assert later == seen[len(seen) - len(later) :]
    for name in ("loss", "reward", "num_tokens", "num_completions", "grad_norm"):
        assert logs(whole, name) == logs(resumed, name)


def test_a_checkpoint_without_a_position_goes_on_behind_its_steps(make):
    """As one by TRL, which has no state of rollouts."""
    settings = {"max_steps": 5, "save_strategy": "steps", "save_steps": 1}
    (whole, seen), (resumed, later) = make(**settings), make(**settings)
    whole.train()
    folder = f"{whole.args.output_dir}/checkpoint-2"
    Path(folder, STATE).unlink()
    resumed.train(resume_from_checkpoint=folder)
    assert later == seen[4:]
    assert len(later) == 6
    assert logs(whole, "num_completions") == logs(resumed, "num_completions")


def test_a_second_training_begins_at_the_first_prompt(make):
    trainer, seen = make(max_steps=2)
    trainer.train()
    trainer.train()
    assert seen == in_order(4) * 2
    assert logs(trainer, "num_completions") == [8, 16]  # of the second one


class Backwards(GRPOTrainer):
    """Visits the last rows first."""

    def _get_train_sampler(self, train_dataset=None):
        rows = list(super()._get_train_sampler(train_dataset))
        return rows[::-1]


class Loading(GRPOTrainer):
    """Has a data loader of its own, with as many batches as the usual one."""

    def get_train_dataloader(self):
        usual = super().get_train_dataloader()
        sampler = list(reversed(list(usual.batch_sampler.sampler)))
        return self.accelerator.prepare(
            DataLoader(usual.dataset, batch_size=8, sampler=sampler, collate_fn=list)
        )


class Streaming(GRPOTrainer):
    """Has a data loader over rows without numbers."""

    def get_train_dataloader(self):
        rows = self.train_dataset.to_iterable_dataset()
        return DataLoader(rows, batch_size=8, collate_fn=list)


class Unordered(GRPOTrainer):
    """Has a data loader of batches, which has no order of rows."""

    def get_train_dataloader(self):
        batches = list(BatchSampler(SequentialSampler(range(ROWS)), 4, drop_last=False))
        return DataLoader(self.train_dataset, batch_sampler=batches, collate_fn=list)


@pytest.mark.parametrize("kind", [Backwards, Loading])
def test_an_overridden_order_acts(kind, make):
    trainer, seen = make(kind, max_steps=3, shuffle_dataset=False, rows=6)
    trainer.train()
    assert seen == [f"{i}+{i}=" for i in (5, 4, 3, 2, 1, 0)]


@pytest.mark.parametrize("kind", [Unordered, Streaming])
def test_a_data_loader_without_an_order_is_refused(kind, make):
    message = "get_train_dataloader gives a DataLoader without a sampler of a known length: expect"
    with pytest.raises(BadValue, match=message):
        make(kind)[0].train()


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_the_order_is_found_where_processes_share_a_data_loader(processes, split):
    sampler = GroupSampler(range(24), group=1)
    loader = DataLoader(list(range(24)), batch_size=6, sampler=sampler)
    shared = prepare_data_loader(
        loader, num_processes=processes, process_index=0, split_batches=split, put_on_device=False
    )
    assert sampler_of(shared) is sampler


def test_completions_are_counted_in_training_alone(make):
    trainer, seen = make(max_steps=3)
    trainer.train()
    assert trainer.evaluate(prompts(2))["eval_num_completions"] == 24
    assert logs(trainer, "num_completions") == [8, 16, 24]
    assert len(seen) == 3 * 2 + 2


@pytest.mark.parametrize("length", [{}, {"max_steps": -1, "num_train_epochs": 2}])
def test_too_few_prompts_for_a_rollout_are_refused_however_long_the_training(length, make_grpo):
    trainer = make_grpo(per_device_train_batch_size=8, dataset=prompts(3), **length)
    message = "train_dataset has 3 prompts, which do not fill one rollout of 4: add prompts, or"
    with pytest.raises(BadValue, match=message):
        trainer.train()
