"""Datasets without a length train and evaluate every trainer, and a killed run continues."""

import pytest
import torch
from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict
from grpo_runs import digits, logs, prompts, weights
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import SequentialSampler

from core import (
    A2POConfig,
    A2POTrainer,
    GRPOConfig,
    GRPOTrainer,
    PPOConfig,
    PPOTrainer,
    RLOOConfig,
    RLOOTrainer,
    SFTConfig,
    SFTTrainer,
)
from core.data.streams import Blocks, Passes
from eval.errors import BadValue

ONLINE = {
    "grpo": (GRPOTrainer, GRPOConfig),
    "rloo": (RLOOTrainer, RLOOConfig),
    "ppo": (PPOTrainer, PPOConfig),
    "a2po": (A2POTrainer, A2POConfig),
}
KINDS = [*ONLINE, "sft"]
ROWS = 5  # two fill a rollout of the online trainers, and a batch of fine-tuning


def rows(kind, count=ROWS):
    if kind == "sft":
        texts = [{"prompt": f"{i}+{i}=", "completion": f"{2 * i} " * (i + 1)} for i in range(count)]
        return Dataset.from_list(texts)
    return prompts(count).add_column("optimal_value", [0.1 * i for i in range(count)])


def stream(kind, count=ROWS):
    return rows(kind, count).to_iterable_dataset()


@pytest.fixture
def make(build_llama, tiny_tokenizer, tmp_path):
    """Build a trainer of any kind over a fresh tiny Llama and a stream."""

    def build(kind="grpo", train=None, evaluation=None, reward=digits, callbacks=None, **changes):
        settings = {
            "output_dir": str(tmp_path / "out"),
            "per_device_train_batch_size": 2 if kind == "sft" else 4,
            "per_device_eval_batch_size": 4,
            "gradient_accumulation_steps": 2,
            "max_steps": 7,
            "logging_steps": 1,
            "learning_rate": 1e-3,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
        }
        data = {
            "train_dataset": stream(kind) if train is None else train,
            "eval_dataset": evaluation,
            "processing_class": tiny_tokenizer,
            "callbacks": callbacks,
        }
        if kind == "sft":
            return SFTTrainer(build_llama(), SFTConfig(**settings | changes), **data)
        trainer, config = ONLINE[kind]
        settings |= {"max_completion_length": 6, "num_generations": 4}
        return trainer(build_llama(), reward, config(**settings | changes), **data)

    return build


COUNTS = st.integers(1, 9)


@given(rows=COUNTS, size=COUNTS, start=st.integers(0, 20), count=st.integers(0, 30))
def test_passes_continue_behind_any_position(rows, size, start, count):
    def blocks():
        return Passes(
            Blocks(Dataset.from_list([{"x": i} for i in range(rows)]).to_iterable_dataset(), size)
        )

    if size > rows:
        with pytest.raises(
            BadValue, match=f"has {rows} rows, which do not fill one rollout of {size}"
        ):
            next(iter(blocks()))
        return
    straight, first, later = blocks(), blocks(), blocks()
    reading, before = iter(straight), iter(first)
    expected = [[row["x"] for row in next(reading)] for _ in range(start + count)]
    for _ in range(start):
        next(before)
    later.position = first.position
    after = iter(later)
    assert [[row["x"] for row in next(after)] for _ in range(count)] == expected[start:]
    whole = [list(range(at, at + size)) for at in range(0, rows - size + 1, size)]
    assert expected == [whole[n % len(whole)] for n in range(start + count)]


CONTINUED = [(kind, {"shuffle_dataset": True}) for kind in KINDS] + [
    (kind, {"shuffle_dataset": False, "gradient_accumulation_steps": 3}) for kind in ("grpo", "sft")
]


@pytest.mark.parametrize(("kind", "settings"), CONTINUED)
def test_a_run_stopped_at_a_checkpoint_continues_bit_for_bit(kind, settings, make):
    settings = {"save_strategy": "steps", "save_steps": 1, "max_steps": 5, **settings}
    whole = make(kind, **settings)
    whole.train()
    for step in (2, 3):  # at the end of a pass over the rows, and inside the next one
        resumed = make(kind, **settings)
        resumed.train(resume_from_checkpoint=f"{whole.args.output_dir}/checkpoint-{step}")
        assert torch.equal(weights(resumed.model), weights(whole.model))
        for name in ("loss", "grad_norm", "num_tokens", "epoch"):
            assert logs(resumed, name) == logs(whole, name)


@pytest.mark.parametrize("kind", ONLINE)
def test_online_trainers_sample_the_prompts_of_a_stream_in_its_order(kind, make):
    seen = []

    def reward(prompts, completions, **_):
        seen.extend(prompt[0]["content"] for prompt in prompts)
        return digits(completions)

    trainer = make(kind, reward=reward, shuffle_dataset=True, max_steps=6, num_iterations=1)
    trainer.train()
    group, shuffled = trainer.args.num_generations, stream(kind).shuffle(seed=trainer.args.seed)
    size, expected = trainer.args.rollout_prompts, []
    for number in range(len(seen)):
        shuffled.set_epoch(number)
        texts = [row["prompt"][0]["content"] for row in shuffled]
        expected += [text for text in texts[: len(texts) // size * size] for _ in range(group)]
    assert seen == expected[: len(seen)]
    assert len(seen) == trainer.prompts.drawn * group > 2 * ROWS


def test_fine_tuning_on_a_stream_equals_that_on_its_rows(make):
    """Each pass gives batches of 2, 2 and 1 rows, as a dataset with a length does."""
    alike = [
        make("sft", train=data, gradient_accumulation_steps=1, max_steps=8)
        for data in (stream("sft"), rows("sft"))
    ]
    alike[1]._get_train_sampler = SequentialSampler
    for trainer in alike:
        trainer.train()
    assert torch.equal(*(weights(trainer.model) for trainer in alike))


@pytest.mark.parametrize("kind", KINDS)
def test_streams_evaluate_like_their_rows(kind, make):
    held_out, streamed = rows(kind, 3), stream(kind, 3)
    trainer = make(
        kind,
        evaluation={"a": streamed, "b": held_out},
        max_steps=1,
        eval_strategy="steps",
        eval_steps=1,
    )
    trainer.train()
    for name in ("eval_a_loss", "eval_b_loss"):
        assert len(logs(trainer, name)) == 1
    assert trainer.evaluate(streamed)["eval_loss"] == trainer.evaluate()["eval_a_loss"]
    several = trainer.evaluate(IterableDatasetDict({"c": streamed, "d": streamed}))
    assert (
        several["eval_c_loss"] == several["eval_d_loss"] == trainer.evaluate(streamed)["eval_loss"]
    )
    assert trainer.evaluate(DatasetDict({"c": held_out}))["eval_c_loss"] is not None


def test_a_stream_without_shuffling_scores_every_held_out_prompt(make):
    seen = []

    def reward(prompts, completions, **_):
        seen.extend(prompt[0]["content"] for prompt in prompts)
        return digits(completions)

    trainer = make(train=rows("grpo"), reward=reward, dataloader_num_workers=1)
    trainer.evaluate(stream("grpo", 3))
    assert sorted(seen) == sorted(f"{i}+{i}=" for i in range(3) for _ in range(4))
    assert trainer.get_eval_dataloader(stream("grpo", 3)).num_workers == 0
    assert trainer.get_train_dataloader().num_workers == trainer.args.dataloader_num_workers == 1


def test_a_stream_of_prompts_has_one_reader(make):
    trainer = make(dataloader_num_workers=4)
    assert trainer.args.dataloader_num_workers == 0
    assert trainer.args.accelerator_config.dispatch_batches is False
    assert (
        make("sft", accelerator_config={"dispatch_batches": True}).accelerator.dispatch_batches
        is False
    )


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_stream_does_not_go_with_is_refused(kind, make):
    with pytest.raises(BadValue, match="has no length: set max_steps"):
        make(kind, max_steps=-1)
    if kind != "sft":
        with pytest.raises(BadValue, match="Iterable datasets require `dispatch_batches=False`"):
            make(kind, accelerator_config={"dispatch_batches": True})
    with pytest.raises(TypeError, match="`train_dataset` must be a `Dataset` or `IterableDataset`"):
        make(kind, train=DatasetDict({"train": rows(kind)}))
    with pytest.raises(BadValue, match="train_dataset has no rows"):
        make(kind, train=IterableDataset.from_generator(list))


def test_prompts_without_numbers_cannot_retire(make):
    with pytest.raises(BadValue, match="prompt_retirement needs prompts with numbers"):
        make(prompt_retirement=0.9).train()


def test_a_stream_that_can_be_read_once_ends_with_an_error(make):
    left = list(rows("sft"))

    def once():
        while left:
            yield left.pop()

    dataset = IterableDataset.from_generator(once)
    with pytest.raises(BadValue, match=r"pass 2 over train_dataset has no rows|no row"):
        make("sft", train=dataset).train()
