"""Documents in one row never see each other, and what a data collator returns reaches the model."""

import pytest
import torch
from datasets import Dataset
from grpo_runs import weights
from peft import LoraConfig, PrefixTuningConfig, PromptTuningConfig, get_peft_model
from transformers import (
    AutoModelForCausalLM,
    DataCollatorWithFlattening,
    FalconMambaConfig,
    Lfm2Config,
    MistralConfig,
    OPTConfig,
)

from core import SFTConfig, SFTTrainer
from core.data.collate import DataCollatorForLanguageModeling
from core.forward.documents import goes_by_segments, outputs_of
from eval.errors import BadValue

ROWS = [{"prompt": f"{a}+{b}=", "completion": f"{a + b}"} for a in range(4) for b in range(3)]
SIZES = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
OTHERS = {
    "sliding window": MistralConfig(**SIZES, **HEADS, sliding_window=2),
    "recurrence": FalconMambaConfig(**SIZES, state_size=4),
    "convolutions": Lfm2Config(**SIZES, **HEADS, layer_types=["conv", "full_attention"]),
    "positions by its mask": OPTConfig(
        **SIZES, num_attention_heads=4, ffn_dim=48, word_embed_proj_dim=32, dropout=0.0
    ),
}


@pytest.fixture
def make_sft(build_llama, tiny_tokenizer, tmp_path):
    """Build a trainer over a fresh tiny Llama."""

    def build(model=None, rows=ROWS, collator=None, evaluation=None, **changes):
        peft_config = changes.pop("peft_config", None)
        settings = {
            "output_dir": str(tmp_path),
            "max_steps": 3,
            "learning_rate": 1e-2,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "report_to": "none",
            "save_strategy": "no",
            "logging_steps": 1,
            "disable_tqdm": True,
            "per_device_train_batch_size": 6,
        }
        return SFTTrainer(
            model=model or build_llama(seed=1),
            args=SFTConfig(**settings | changes),
            data_collator=collator,
            train_dataset=Dataset.from_list(rows),
            eval_dataset=evaluation,
            processing_class=tiny_tokenizer,
            peft_config=peft_config,
        )

    return build


def trained(trainer):
    """The weights after training, and the losses."""
    trainer.train()
    return weights(trainer.model), [
        row["loss"] for row in trainer.state.log_history if "loss" in row
    ]


def joining(rows):
    return DataCollatorForLanguageModeling(pad_token_id=0, padding_free=True)(rows)


def inputs_of(model):
    """What the model is called with, pass by pass."""
    seen = []
    model.register_forward_pre_hook(lambda _, __, given: seen.append(given), with_kwargs=True)
    return seen


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_row_without_padding_trains_as_its_documents_apart(checkpointed, make_sft):
    """Also with a collator of transformers, which gives positions and no mask."""
    expected, losses = trained(make_sft())
    joined = (
        make_sft(padding_free=True, gradient_checkpointing=checkpointed),
        make_sft(collator=DataCollatorWithFlattening(), gradient_checkpointing=checkpointed),
    )
    for trainer in joined:
        found, others = trained(trainer)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        assert others == pytest.approx(losses, rel=1e-4)


def test_what_a_data_collator_returns_reaches_the_model(make_sft):
    own = DataCollatorForLanguageModeling(pad_token_id=0)

    def collate(rows):
        batch = own(rows)
        positions = torch.arange(batch["input_ids"].size(1)).expand_as(batch["input_ids"])
        return {**batch, "position_ids": positions // 2, "output_attentions": False}

    trainer = make_sft(collator=collate, max_steps=1)
    seen = inputs_of(trainer.model)
    trainer.train()
    (given,) = seen
    assert given["position_ids"][0, :4].tolist() == [0, 0, 1, 1]
    assert given["output_attentions"] is False
    assert given["attention_mask"].shape == given["input_ids"].shape
    assert "labels" not in given


def test_a_data_collator_without_labels_is_refused(make_sft):
    trainer = make_sft(collator=lambda rows: {"input_ids": torch.tensor([[5, 6]] * len(rows))})
    with pytest.raises(BadValue, match="returned no 'labels': found input_ids"):
        trainer.train()


def test_a_data_collator_beside_an_option_that_joins_rows_is_refused(make_sft):
    for options in ({"packing": True}, {"padding_free": True}):
        with pytest.raises(BadValue, match="a data_collator decides itself how rows are joined"):
            make_sft(collator=DataCollatorWithFlattening(), **options)
    make_sft(collator=DataCollatorForLanguageModeling(0), packing=True, packing_strategy="wrapped")


def test_tokens_are_counted_with_and_without_a_mask(make_sft):
    def count(**options):
        trainer = make_sft(max_steps=2, **options)
        trainer.train()
        return trainer.state.log_history[-2]["num_tokens"]

    assert count() == count(padding_free=True) == count(collator=DataCollatorWithFlattening())
    assert count(pad_to_multiple_of=8) == count()


@pytest.mark.parametrize("name", OTHERS)
def test_no_architecture_lets_documents_of_a_row_see_each_other(name, make_sft):
    """By its positions alone, transformers keeps only some of them apart."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        trainer = make_sft(AutoModelForCausalLM.from_config(OTHERS[name]))
    rows, model = list(trainer.train_dataset)[-4:], trainer.model.train()
    found = []
    for collate in (trainer.data_collator, DataCollatorWithFlattening(), joining):
        loss = trainer.compute_loss(model, collate(rows))
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        found.append((loss.detach(), torch.cat([g.flatten() for g in gradients])))
    for joined in found[1:]:
        torch.testing.assert_close(joined, found[0], rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore")  # the compiler's own
@torch.no_grad()  # FlexAttention has no backward pass on a CPU
@pytest.mark.parametrize(
    "attention", ["sdpa", "eager", pytest.param("flex_attention", marks=pytest.mark.long)]
)
def test_no_attention_lets_documents_of_packed_rows_see_each_other(attention, build_llama):
    """In a batch of two rows with two documents each."""
    model, ids = build_llama(seed=1), [[5, 6, 7, 8, 9], [10, 5, 6, 11]]
    model.set_attn_implementation(attention)
    rows = [
        {"input_ids": row, "seq_lengths": lengths}
        for row, lengths in zip(ids, ([3, 2], [1, 3]), strict=True)
    ]
    batch = DataCollatorForLanguageModeling(pad_token_id=0)(rows)
    labels = batch.pop("labels")
    together = outputs_of(model, batch).logits[0].split([3, 2, 1, 3])
    assert labels.shape == (1, 9)
    for found, tokens in zip(
        together, (ids[0][:3], ids[0][3:], ids[1][:1], ids[1][1:]), strict=True
    ):
        alone = model(torch.tensor([tokens])).logits[0]
        torch.testing.assert_close(found, alone, rtol=1e-4, atol=1e-5)


def test_positions_that_do_not_count_from_0_are_the_models(build_llama):
    """Whether the documents of a row are segments or rows of their own."""
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    positions = torch.tensor([[0, 1, 2, 7, 8]])
    model = build_llama(seed=1)
    found = []
    for attention in ("sdpa", "eager"):
        model.set_attn_implementation(attention)
        assert goes_by_segments(model) == (attention == "sdpa")
        found.append(outputs_of(model, {"input_ids": ids, "position_ids": positions}).logits)
    torch.testing.assert_close(*found)
    shifted = outputs_of(model, {"input_ids": ids[:, 3:], "position_ids": positions[:, 3:]}).logits
    torch.testing.assert_close(found[0][:, 3:], shifted)


def test_packed_rows_are_read_as_documents_whatever_packed_them(make_sft):
    """Rows that were packed before, and an evaluation set that alone is packed."""
    evaluation = Dataset.from_list(ROWS)
    before = make_sft(packing=True, max_length=16)
    again = make_sft(rows=before.train_dataset.to_list())
    assert list(again.train_dataset) == list(before.train_dataset)
    torch.testing.assert_close(*(trained(t)[0] for t in (before, again)), rtol=0, atol=0)
    losses = [
        make_sft(evaluation=evaluation, per_device_eval_batch_size=12, **options).evaluate()
        for options in ({}, {"eval_packing": True, "max_length": 16})
    ]
    assert losses[1]["eval_loss"] == pytest.approx(losses[0]["eval_loss"], rel=1e-5)


def test_only_what_is_asked_for_is_packed(make_sft):
    rows = Dataset.from_list(ROWS)
    for options, expected in (
        ({"packing": True}, (True, True)),
        ({"packing": True, "eval_packing": False}, (True, False)),
        ({"eval_packing": True}, (False, True)),
    ):
        trainer = make_sft(evaluation=rows, max_length=16, **options)
        sets = (trainer.train_dataset, trainer.eval_dataset)
        assert tuple("seq_lengths" in data.column_names for data in sets) == expected
        assert "seq_lengths" not in trainer.prepared(rows).column_names  # as to predict


def test_documents_are_shuffled_before_they_share_rows(make_sft):
    plain, shuffled = (
        make_sft(packing=True, max_length=16, shuffle_dataset=shuffle, seed=3).train_dataset
        for shuffle in (False, True)
    )
    rows = [sorted(map(tuple, data["input_ids"])) for data in (plain, shuffled)]
    assert rows[0] != rows[1]
    assert sorted(token for row in rows[0] for token in row) == sorted(
        token for row in rows[1] for token in row
    )


@pytest.mark.parametrize("config", [PromptTuningConfig, PrefixTuningConfig])
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_virtual_tokens_are_trained_and_stand_before_each_document(config, make_sft, build_llama):
    settings = config(task_type="CAUSAL_LM", num_virtual_tokens=2)
    trainers = (
        make_sft(peft_config=settings),
        make_sft(get_peft_model(build_llama(seed=1), settings)),
    )
    for trainer in trainers:
        batch = trainer.data_collator([trainer.train_dataset[i] for i in range(4)])
        expected = trainer.model(**batch).loss  # peft's own labels are padded
        torch.testing.assert_close(trainer.compute_loss(trainer.model, batch), expected)
        start = weights(trainer.model)
        base = [p.clone() for p in trainer.model.base_model.parameters()]
        assert not torch.equal(trained(trainer)[0], start)
        assert all(map(torch.equal, base, trainer.model.base_model.parameters()))
    joined = make_sft(peft_config=settings, padding_free=True)
    batches = [
        collate([joined.train_dataset[i] for i in range(4)])
        for collate in (DataCollatorForLanguageModeling(0), joined.data_collator)
    ]
    torch.testing.assert_close(*(joined.compute_loss(joined.model, dict(b)) for b in batches))


def test_adapters_train_on_packed_rows_as_on_padded_ones(make_sft):
    found = [
        trained(make_sft(peft_config=LoraConfig(r=4, target_modules="all-linear"), **options))[0]
        for options in ({}, {"padding_free": True})
    ]
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
