"""KTO: mismatched answers, any split of a step, any reference, data in every form, refusals."""

from math import isfinite, nan

import pytest
import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from test_dpo import logs, train, weights

from core import KTOConfig, KTOTrainer
from core.data.unpaired import MISMATCHED, tokenize_unpaired
from core.errors import MissingColumn
from core.preference.unpaired_collate import UnpairedCollator, answers_of
from eval.errors import BadValue

pytestmark = pytest.mark.versions

ROWS = [
    {
        "prompt": f"{a}+{b}=",
        "completion": f"{a + b}" if b > 5 else f"{a * b + 9} is",
        "label": b > 5,
    }
    for a in range(1, 6)
    for b in (3, 7)
]
PAIRS = [
    {"prompt": f"{a}+{a}=", "chosen": f"{2 * a}", "rejected": f"{3 * a} or so"}
    for a in range(1, 13)
]
CLOSE = 1e-5
SPLIT = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 3}


def config(folder, kind=KTOConfig, **changes):
    settings = {
        "output_dir": str(folder),
        "max_steps": 1,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "constant",
        "optim": "sgd",
        "max_grad_norm": 0.0,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "per_device_train_batch_size": 10,
    }
    return kind(**{**settings, **changes})


@pytest.fixture
def build(build_llama, tiny_tokenizer, tmp_path):
    def make(
        rows=ROWS,
        model=None,
        reference=None,
        data=None,
        peft=None,
        evaluation=None,
        kind=KTOTrainer,
        **changes,
    ):
        return kind(
            model=build_llama(seed=1) if model is None else model,
            ref_model=reference,
            args=config(tmp_path, **changes),
            train_dataset=Dataset.from_list(rows) if data is None else data,
            eval_dataset=evaluation,
            processing_class=tiny_tokenizer,
            peft_config=peft,
        )

    return make


@pytest.fixture
def apart(build, build_llama):
    """Build a trainer whose policy is so far from its reference that z0 is above 0."""

    def make(**changes):
        return build(model=build_llama(seed=2), reference=build_llama(seed=1), **changes)

    return make


@pytest.mark.parametrize("loss_type", ["kto", "apo_zero_unpaired"])
def test_ten_answers_are_one_step_however_they_are_split(loss_type, apart):
    """Windows of 4, 4 and 2 rows, with a baseline that is not 0."""
    scope = {"batch_scope": "step"} if loss_type == "kto" else {}
    shared = {"loss_type": loss_type, "desirable_weight": 2.0, "beta": 0.3, **scope}
    (whole, one), (split, moved) = (train(apart(**shared, **c)) for c in ({}, SPLIT))
    assert (one - moved).norm() < CLOSE * (one - weights(apart())).norm()
    assert split[0]["loss"] == pytest.approx(whole[0]["loss"], rel=1e-4)
    assert split[0]["kl"] == pytest.approx(whole[0]["kl"], rel=1e-4)
    assert (whole[0]["kl"] > 0.1) == (loss_type == "kto")


def test_a_baseline_of_micro_batches_depends_on_the_split(apart):
    """As in TRL: the default, which the scope of a step replaces."""
    (whole,), (split,) = (train(apart(**c))[0] for c in ({}, SPLIT))
    assert abs(split["kl"] - whole["kl"]) > 1e-3


def test_no_completion_is_its_own_mismatch(build):
    """Of 7 rows by 3 TRL gives the last one its own completion."""
    trainer = build(rows=ROWS[:7], per_device_train_batch_size=3)
    own, others = (list(trainer.train_dataset[name]) for name in ("completion_ids", MISMATCHED))
    assert others == [own[i] for i in (2, 0, 1, 5, 3, 4, 5)]
    assert all(mine != other for mine, other in zip(own, others, strict=True))


@given(n=st.integers(2, 30), block=st.integers(2, 9))
def test_mismatches_are_completions_of_the_same_block(n, block, tiny_tokenizer):
    rows = Dataset.from_list(
        [{"prompt": "1", "completion": f"{i}", "label": True} for i in range(n)]
    )
    for data in (rows, rows.to_iterable_dataset()):
        prepared = list(tokenize_unpaired(data, tiny_tokenizer, block=block))
        own, others = ([row[name] for row in prepared] for name in ("completion_ids", MISMATCHED))
        assert len(prepared) == n
        assert all(a != b for a, b in zip(own, others, strict=True))
        for start in range(0, n - n % block, block):
            part = slice(start, start + block)
            assert sorted(own[part]) == sorted(others[part])


def test_one_label_alone_has_the_loss_of_a_coin(build, caplog):
    for label in (True, False):
        rows = [{**row, "label": label} for row in ROWS]
        (row,), moved = train(build(rows=rows))
        assert row["loss"] == pytest.approx(0.5, abs=1e-6)
        assert "rewards/margins" not in row
        assert moved.isfinite().all()
        assert "have one label" in caplog.text


def test_steps_raise_the_margin(build):
    rows, _ = train(build(max_steps=8, learning_rate=5e-2))
    assert rows[0]["rewards/margins"] == pytest.approx(0, abs=1e-6)
    assert rows[0]["kl"] == pytest.approx(0, abs=1e-6)
    assert rows[-1]["rewards/margins"] > 0.1
    assert rows[-1]["loss"] < 0.49


@pytest.mark.parametrize("scope", ["micro_batch", "step"])
def test_packed_rows_and_padded_ones_have_one_loss_and_one_gradient(scope, apart, monkeypatch):
    changes = {"batch_scope": scope, "per_device_train_batch_size": 5}
    packed, moved = train(apart(**changes))
    monkeypatch.setattr("core.forward.answers.can_pack", lambda *_: False)
    padded, other = train(apart(**changes))
    assert (moved - other).norm() < CLOSE * (moved - weights(apart())).norm()
    for name, value in padded[0].items():
        assert packed[0][name] == pytest.approx(value, abs=1e-4), name


@pytest.mark.parametrize("loss_type", ["kto", "apo_zero_unpaired"])
@pytest.mark.parametrize("scope", ["micro_batch", "step"])
def test_a_reference_that_is_computed_beforehand_changes_nothing(
    loss_type, scope, build, build_llama
):
    held_out, results = Dataset.from_list(ROWS[:4]), []
    scope = {"batch_scope": scope} if loss_type == "kto" else {}
    for beforehand in (False, True):
        trainer = build(
            reference=build_llama(seed=2),
            evaluation=held_out,
            precompute_ref_log_probs=beforehand,
            max_steps=3,
            per_device_train_batch_size=5,
            loss_type=loss_type,
            **scope,
        )
        rows, moved = train(trainer)
        own, fresh = trainer.evaluate(), trainer.evaluate(held_out)
        for name in ("eval_loss", "eval_rewards/margins", "eval_kl"):
            assert own[name] == pytest.approx(fresh[name], abs=1e-6)
        results.append((moved, rows[-1]["rewards/margins"], own["eval_loss"]))
    assert torch.allclose(results[0][0], results[1][0], atol=1e-6)
    assert results[0][1:] == pytest.approx(results[1][1:], abs=1e-5)


def test_a_trained_adapter_is_its_own_reference_and_new_ones_are_off_in_it(build):
    from peft import LoraConfig

    lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    fresh = build(peft=lora)
    rows, _ = train(fresh)
    assert abs(rows[0]["loss"] - 0.5) > 1e-4  # such adapters begin with a change
    rows, _ = train(build(model=fresh.model))
    assert rows[0]["loss"] == pytest.approx(0.5, abs=1e-6)


def test_a_moving_reference_follows_the_policy(build):
    trainer = build(
        sync_ref_model=True, ref_model_sync_steps=1, ref_model_mixup_alpha=1.0, max_steps=3
    )
    rows, _ = train(trainer)
    assert [row["rewards/margins"] for row in rows] == pytest.approx([0, 0, 0], abs=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"precompute_ref_log_probs": True},
        {"batch_scope": "step", "train_sampling_strategy": "random"},
    ],
)
def test_a_resumed_run_is_the_same_run(changes, build, tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 3, "logging_steps": 2, "max_steps": 5}
    settings |= {"per_device_train_batch_size": 4, "optim": "adamw_torch", **changes}
    runs = []
    for start in (None, str(tmp_path / "checkpoint-3")):
        trainer = build(**settings)
        trainer.train(resume_from_checkpoint=start)
        names = ("step", "loss", "rewards/margins", "kl", "num_tokens", "entropy", "grad_norm")
        rows = [[row.get(name) for name in names] for row in logs(trainer)]
        runs.append((rows, weights(trainer).tolist()))
    assert runs[1] == runs[0]


def test_pairs_are_labelled_answers_in_a_drawn_order(build, tiny_tokenizer):
    """TRL trains on all desirable answers of a thousand pairs before the undesirable ones."""
    trainer = build(rows=PAIRS, per_device_train_batch_size=4, max_steps=6)
    labels = list(trainer.train_dataset["label"])
    assert (len(labels), sum(labels)) == (24, 12)
    assert 3 <= sum(labels[:12]) <= 9
    texts = {
        (tiny_tokenizer.decode(row["prompt_ids"]), tiny_tokenizer.decode(row["completion_ids"]))
        for row in trainer.train_dataset
        if row["label"]
    }
    assert texts == {(pair["prompt"], pair["chosen"] + "<eos>") for pair in PAIRS}
    assert list(build(rows=PAIRS).train_dataset["label"]) == labels
    assert list(build(rows=PAIRS, seed=7).train_dataset["label"]) != labels
    implicit = [
        {name: pair["prompt"] + " " + pair[name] for name in ("chosen", "rejected")}
        for pair in PAIRS
    ]
    assert sum(build(rows=implicit).train_dataset["label"]) == 12


def test_an_answer_of_a_pair_may_end_at_once_and_a_labelled_one_may_not(tiny_tokenizer):
    def said(text):
        return [{"role": "assistant", "content": text}]

    row = {"prompt": [{"role": "user", "content": "1+1="}]}
    pair = Dataset.from_list([{**row, "chosen": said("2"), "rejected": said("")}])
    prepared = list(tokenize_unpaired(pair, tiny_tokenizer))
    assert sorted(row["label"] for row in prepared) == [False, True]
    labelled = Dataset.from_list([{**row, "completion": said(""), "label": False}])
    with pytest.raises(BadValue, match="expected an answer"):
        tokenize_unpaired(labelled, tiny_tokenizer)


def test_the_order_of_rows_is_that_of_the_data_unless_it_is_random(build):
    def read(**changes):
        trainer = build(per_device_train_batch_size=5, max_steps=2, **changes)
        batches = list(trainer.get_train_dataloader())
        return [batch["label"].tolist() for batch in batches]

    assert read() == [[row["label"] for row in ROWS[:5]], [row["label"] for row in ROWS[5:]]]
    assert read(train_sampling_strategy="random") != read()


@pytest.mark.parametrize("rows", [ROWS, PAIRS])
def test_a_stream_is_trained_on_like_its_rows(rows, build):
    stream = Dataset.from_list(rows).to_iterable_dataset()
    streamed, _ = train(build(data=stream, per_device_train_batch_size=5, max_steps=3))
    assert [isfinite(row["loss"]) for row in streamed] == [True] * 3
    with pytest.raises(BadValue, match="cannot be read beforehand"):
        build(data=stream, precompute_ref_log_probs=True)
    with pytest.raises(BadValue, match="set max_steps"):
        build(data=stream, max_steps=-1)


def test_the_held_out_loss_does_not_depend_on_the_batch_where_the_scope_is_all(apart):
    held_out = Dataset.from_list(ROWS[:7])
    changes = {"evaluation": held_out, "batch_scope": "step"}
    losses = [apart(per_device_eval_batch_size=size, **changes).evaluate() for size in (1, 3, 7)]
    assert losses[0]["eval_kl"] > 0.1
    for name in ("eval_loss", "eval_kl", "eval_rewards/chosen", "eval_logps/rejected"):
        assert losses[0][name] == pytest.approx(losses[2][name], abs=1e-4), name
        assert losses[1][name] == pytest.approx(losses[2][name], abs=1e-4), name


@pytest.mark.parametrize("place", ["policy", "reference"])
def test_a_log_probability_that_is_not_finite_stops_with_its_row(place, build, build_llama):
    """TRL leaves such rows out of its mean and goes on."""
    broken = build_llama(seed=2)
    token = 12  # "7", of every second prompt
    with torch.no_grad():
        broken.model.embed_tokens.weight[token] = nan
    model, reference = build_llama(seed=1), build_llama(seed=2)
    trainer = build(
        model=broken if place == "policy" else model,
        reference=broken if place == "reference" else reference,
    )
    with pytest.raises(BadValue, match=rf"log-probability of .* nan under the {place}"):
        trainer.train()


def test_mismatched_answers_are_cut_to_the_length_with_their_own_prompt():
    collate = UnpairedCollator(pad_token_id=0, max_length=5)
    rows = [
        {"prompt_ids": [1, 2, 3], "completion_ids": [4, 5, 6], MISMATCHED: [7], "label": True},
        {"prompt_ids": [8], "completion_ids": [7], MISMATCHED: [4, 5, 6, 7, 9], "label": False},
    ]
    batch = collate(rows)
    assert answers_of(batch)["completion_ids"].tolist() == [[4, 5, 0, 0], [7, 0, 0, 0]]
    mismatched = answers_of(batch, mismatched=True)
    assert mismatched["completion_ids"].tolist() == [[7, 0, 0, 0], [4, 5, 6, 7]]
    assert mismatched["prompt_ids"].tolist() == [[1, 2, 3], [0, 0, 8]]
    assert batch["label"].tolist() == [True, False]


def test_a_prompt_that_fills_the_length_drops_its_row_and_says_so(build, caplog):
    rows = [*ROWS, {"prompt": "1" * 30, "completion": "2", "label": True}]
    trainer = build(rows=rows, max_length=20)
    assert len(trainer.train_dataset) == len(ROWS)
    assert "1 of 11 answers are dropped" in caplog.text


@pytest.mark.parametrize(
    ("weight", "warned"), [(1.0, True), (4.0, False), (5.3, False), (6.0, True)]
)
def test_weights_that_leave_one_label_heavier_are_warned_of(weight, warned, build, caplog):
    rows = [{**row, "label": place < 2} for place, row in enumerate(ROWS)]
    build(rows=rows, desirable_weight=weight)
    assert ("from 4 to 5.33" in caplog.text) == warned


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"loss_type": "kto_pair"}, "expected one of 'kto', 'apo_zero_unpaired'"),
        ({"beta": 0.0}, "expected a number above 0"),
        ({"beta": nan}, "expected a number"),
        ({"desirable_weight": nan}, "expected at least 0"),
        ({"undesirable_weight": float("inf")}, "expected a number"),
        ({"undesirable_weight": -1.0}, "expected at least 0"),
        ({"per_device_train_batch_size": 1}, "batch size must be > 1"),
        ({"train_sampling_strategy": "group_by_length"}, "expected one of 'sequential', 'random'"),
        ({"batch_scope": "epoch"}, "expected one of 'micro_batch', 'step'"),
        ({"loss_type": "apo_zero_unpaired", "batch_scope": "step"}, "reads others"),
        ({"sync_ref_model": True, "precompute_ref_log_probs": True}, "You cannot use"),
        ({"ref_model_sync_steps": 5}, "the reference does not move"),
        ({"precompute_ref_batch_size": 5}, "nothing is computed beforehand"),
        ({"activation_offloading": True}, "is not supported"),
        ({"label_smoothing_factor": 0.1}, "is not supported"),
        ({"max_length": 1}, "expected at least 2"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changes, line, tmp_path):
    with pytest.raises(BadValue, match=line):
        config(tmp_path, **changes)


def test_one_row_a_batch_is_enough_without_mismatches(build):
    trainer = build(loss_type="apo_zero_unpaired", per_device_train_batch_size=1)
    assert MISMATCHED not in trainer.train_dataset.column_names
    (row,), _ = train(trainer)
    assert row["loss"] == pytest.approx(0.5, abs=1e-6)
    assert row["kl"] == 0


@pytest.mark.parametrize(
    ("row", "error", "line"),
    [
        ({"prompt": "1", "completion": "2"}, MissingColumn, "label"),
        ({"prompt": "1", "label": True}, MissingColumn, "completion"),
        ({"completion": "1", "label": True}, MissingColumn, "prompt"),
        ({"prompt": "1", "completion": "2", "label": 1}, BadValue, "expected True or False"),
        ({"prompt": "1", "completion": "2", "label": "yes"}, BadValue, "expected True or False"),
        ({"prompt": "1", "completion": "", "label": True}, BadValue, "expected an answer"),
        ({"prompt": "1", "completion": "2", "label": True}, BadValue, "has one row"),
        ({"prompt": "1", "chosen": "2", "rejected": "2"}, BadValue, "expected two answers"),
        ({"prompt": "1" * 2000, "completion": "2", "label": True}, BadValue, "max_length=1024"),
        (
            {
                "prompt": [{"role": "user", "content": "1"}],
                "completion": [{"role": "assistant", "content": ""}],
                "label": True,
            },
            BadValue,
            "expected an answer",
        ),
    ],
)
def test_data_that_cannot_be_trained_on_is_refused(row, error, line, build):
    with pytest.raises(error, match=line):
        build(rows=[row])


def test_arguments_that_are_not_supported_are_refused(build, build_llama):
    model = build_llama()
    with pytest.raises(BadValue, match="cannot be the same object"):
        build(model=model, reference=model)
    trainer = build()
    with pytest.raises(BadValue, match="computes no logits"):
        trainer.compute_loss(trainer.model, {}, return_outputs=True)
