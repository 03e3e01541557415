"""Packed rows are TRL's rows, and loss and gradient of them TRL's and those of documents alone."""

import pytest
import torch
import trl
from datasets import Dataset, concatenate_datasets
from grpo_runs import double
from hypothesis import given, settings
from hypothesis import strategies as st
from peers import difference, exact_head
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling as TheirCollator

import core
from core.data.best_fit import LENGTHS, pack_rows
from core.data.collate import DataCollatorForLanguageModeling
from core.forward.documents import goes_by_segments

TOLERANCE = 1e-12
SINGLE = 1e-6  # transformers' eager attention takes its softmax in single precision
WIDTH = 40
STRATEGIES = ("bfd", "bfd_split", "wrapped")  # of TRL
MODELS = {
    "llama": (LlamaConfig, {}),
    "llama, eager": (LlamaConfig, {"attn_implementation": "eager"}),
    "qwen2": (Qwen2Config, {}),
    "qwen3": (Qwen3Config, {"head_dim": 8}),
    "mistral, sliding window": (MistralConfig, {"sliding_window": 4}),
}
SETTINGS = {
    **{strategy: {"packing": True, "packing_strategy": strategy} for strategy in STRATEGIES},
    "padding-free": {"padding_free": True, "max_length": None},
    "bfd, padded to a multiple": {"packing": True, "pad_to_multiple_of": 32},
    "bfd, shuffled": {"packing": True, "shuffle_dataset": True},
}
ROWS = [
    {"prompt": f"{a}+{b}=", "completion": "1" * (a * 7 % 23) + f"{a + b} is it"}
    for a in range(6)
    for b in range(4)
]


def documents(lengths):
    """Rows of token ids of these lengths, every third token not trained on."""
    ids = [[100 * at + i for i in range(length)] for at, length in enumerate(lengths)]
    labels = [[-100 if i % 3 == 1 else token for i, token in enumerate(row)] for row in ids]
    return Dataset.from_dict({"input_ids": ids, "labels": labels})


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=20)
@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=30), width=st.integers(1, 12))
def test_rows_are_packed_as_by_trl(strategy, lengths, width):
    rows = documents([*lengths, 1])
    ours, theirs = pack_rows(rows, width, strategy), trl.pack_dataset(rows, width, strategy)
    assert ours.to_dict() == theirs.to_dict()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_thousand_documents_at_a_time_share_rows(strategy):
    rows = concatenate_datasets([documents([5, 2, 9, 4, 4, 1, 3])] * 300)
    ours, theirs = pack_rows(rows, 8, strategy), trl.pack_dataset(rows, 8, strategy)
    assert ours.to_dict() == theirs.to_dict()
    assert list(pack_rows(rows.to_iterable_dataset(), 8, strategy)) == list(ours)


@pytest.mark.parametrize("multiple", [None, 8])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("padding_free", [False, True])
@settings(max_examples=15)
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_batches_are_trls(padding_free, packed, multiple, lengths):
    """But for packed rows without `padding_free`, whose documents TRL lets see each other."""
    rows = documents(lengths)
    given_rows = pack_rows(rows, 12, "bfd") if packed else rows
    ours = DataCollatorForLanguageModeling(3, padding_free, pad_to_multiple_of=multiple)(
        list(given_rows)
    )
    theirs = TheirCollator(3, padding_free or packed, pad_to_multiple_of=multiple)(list(given_rows))
    assert ours.keys() == theirs.keys() & {"input_ids", "labels", "attention_mask", "position_ids"}
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("multiple", [None, 4])
def test_padded_rows_have_trls_positions_on_request(packed, multiple):
    given_rows = [dict(row) for row in documents([5, 2])]
    if packed:
        for row, lengths in zip(given_rows, ([3, 2], [2]), strict=True):
            row[LENGTHS] = lengths
    ours, theirs = (
        collator(3, False, True, multiple)(given_rows)
        for collator in (DataCollatorForLanguageModeling, TheirCollator)
    )
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())


@given(rows=st.lists(st.lists(st.integers(1, 5), min_size=1), min_size=1))
def test_positions_of_packed_rows_are_trls(rows):
    ours, theirs = (
        collator.get_position_ids_from_packed_seq_lengths(rows)
        for collator in (DataCollatorForLanguageModeling, TheirCollator)
    )
    assert list(map(torch.Tensor.tolist, ours)) == list(map(torch.Tensor.tolist, theirs))


def model_of(kind):
    config, changes = MODELS[kind]
    changes = dict(changes)
    attention = changes.pop("attn_implementation", "sdpa")
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 64}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.3}
    torch.manual_seed(0)
    settings = config(**sizes, **heads, **changes)
    return double(AutoModelForCausalLM.from_config(settings, attn_implementation=attention))


def trainer_of(package, kind, tokenizer, folder, **changes):
    quiet = {"use_cpu": True, "bf16": False, "activation_checkpointing": False}
    args = {"max_length": WIDTH, "report_to": "none", "per_device_train_batch_size": 4}
    return package.SFTTrainer(
        model=model_of(kind),
        args=package.SFTConfig(output_dir=str(folder), **{**quiet, **args, **changes}),
        train_dataset=Dataset.from_list(ROWS),
        processing_class=tokenizer,
    )


def measure(trainer, batch):
    """Loss and gradient of a batch."""
    model = trainer.model.train()
    model.zero_grad()
    loss = trainer.compute_loss(model, dict(batch))
    loss.backward()
    return loss.detach(), torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.parametrize(
    ("name", "loss_type"), [*((name, "nll") for name in SETTINGS), ("bfd", "dft")]
)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.filterwarnings("ignore")  # TRL's own
def test_loss_and_gradient_are_trls(
    kind, name, loss_type, tiny_tokenizer, tmp_path, monkeypatch, measured
):
    exact_head(monkeypatch)
    changes = {**SETTINGS[name], "loss_type": loss_type}
    ours, theirs = (
        trainer_of(package, kind, tiny_tokenizer, tmp_path, **changes) for package in (core, trl)
    )
    assert goes_by_segments(ours.model) == (kind in ("llama", "qwen2", "qwen3"))
    batches = [next(iter(trainer.get_train_dataloader())) for trainer in (ours, theirs)]
    assert all(torch.equal(value, batches[1][key]) for key, value in batches[0].items())
    if "position_ids" in batches[0]:
        assert (batches[0]["position_ids"] == 0).sum() > 3
    mine, other = (
        measure(trainer, batch) for trainer, batch in zip((ours, theirs), batches, strict=True)
    )
    assert other[1].abs().max() > 1e-4
    group, near = f"sft, {name}, {kind}", SINGLE if "eager" in kind else TOLERANCE
    assert measured(f"{group}: loss", difference(mine[0], other[0])) < near
    assert measured(f"{group}: gradient", difference(mine[1], other[1])) < near


@pytest.mark.parametrize("strategy", ["bfd", "bfd_split", "next_fit"])
@pytest.mark.parametrize("kind", MODELS)
def test_documents_in_one_row_are_documents_alone(kind, strategy, tiny_tokenizer, tmp_path):
    """Loss and gradient of a batch of packed rows; `wrapped` rows alone let documents meet."""
    changes = {"packing": True, "packing_strategy": strategy}
    trainer = trainer_of(core, kind, tiny_tokenizer, tmp_path, **changes)
    packed = trainer.train_dataset
    fullest = sorted(range(len(packed)), key=lambda number: -len(packed[number][LENGTHS]))
    rows = packed.select(fullest[:4])
    assert sum(map(len, rows[LENGTHS])) > len(rows)
    total = [0.0, 0.0]
    count = 0
    for row in rows:
        start = 0
        for length in row[LENGTHS]:
            place = slice(start, start + length)
            alone = {key: torch.tensor([row[key][place]]) for key in ("input_ids", "labels")}
            start += length
            labels = int((alone["labels"][:, 1:] != -100).sum())
            if labels:
                found = measure(trainer, {**alone, "attention_mask": torch.ones(1, length)})
                total = [so_far + labels * each for so_far, each in zip(total, found, strict=True)]
                count += labels
    for together, apart in zip(
        measure(trainer, trainer.data_collator(list(rows))), total, strict=True
    ):
        assert difference(together, apart / count) < (SINGLE if "eager" in kind else TOLERANCE)
