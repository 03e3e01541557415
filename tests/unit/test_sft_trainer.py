"""Supervised fine-tuning: the same run as TRL's, any split of the batch, data in every form."""

import pytest
import torch
from accelerate import Accelerator
from datasets import Dataset
from torch.nn.functional import cross_entropy

from core import SFTConfig, SFTTrainer
from core.errors import MissingColumn
from core.losses.supervised import dft, nll, smooth_labels
from eval.errors import BadValue

pytestmark = pytest.mark.versions

ROWS = [{"prompt": f"{a}+{b}=", "completion": f"{a + b} is it"} for a in range(4) for b in range(3)]


def config(folder, **changes):
    settings = {
        "output_dir": str(folder),
        "max_steps": 4,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "constant",
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "per_device_train_batch_size": 6,
    }
    return {**settings, **changes}


def train(trainer):
    trainer.train()
    logs = [row for row in trainer.state.log_history if "loss" in row]
    return logs, {k: v.clone() for k, v in trainer.model.state_dict().items()}


def test_a_resumed_run_is_the_same_run_with_its_token_count(build_llama, tiny_tokenizer, tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 3, "logging_steps": 2, "max_steps": 5}
    runs = []
    for start in (None, str(tmp_path / "checkpoint-3")):
        trainer = SFTTrainer(
            model=build_llama(seed=1),
            args=SFTConfig(**config(tmp_path, **settings)),
            train_dataset=Dataset.from_list(ROWS),
            processing_class=tiny_tokenizer,
        )
        trainer.train(resume_from_checkpoint=start)
        weights = torch.cat([p.detach().flatten() for p in trainer.model.parameters()])
        names = ("step", "loss", "train_loss", "num_tokens", "entropy", "grad_norm")
        rows = [[row.get(name) for name in names] for row in trainer.state.log_history]
        runs.append((rows, weights.tolist()))
    assert runs[1] == runs[0]
    assert runs[0][0][1][3] > runs[0][0][0][3] > 0


@pytest.mark.parametrize(
    "changes", [{}, {"loss_type": "dft"}, {"label_smoothing_factor": 0.2}], ids=str
)
@pytest.mark.filterwarnings("ignore")  # TRL's own
def test_the_run_is_trls(changes, build_llama, tiny_tokenizer, tmp_path):
    from trl import SFTConfig as TheirConfig
    from trl import SFTTrainer as TheirTrainer

    pairs = ((SFTTrainer, SFTConfig, "ours"), (TheirTrainer, TheirConfig, "theirs"))
    (logs, weights), (their_logs, their_weights) = (
        train(
            cls(
                model=build_llama(seed=1),
                args=cfg(**config(tmp_path / name, **changes)),
                train_dataset=Dataset.from_list(ROWS),
                processing_class=tiny_tokenizer,
            )
        )
        for cls, cfg, name in pairs
    )
    for ours, theirs in zip(logs, their_logs, strict=True):
        for name in ("loss", "grad_norm", "entropy", "mean_token_accuracy", "num_tokens"):
            assert float(ours[name]) == pytest.approx(float(theirs[name]), rel=1e-4), name
    for name, value in weights.items():
        torch.testing.assert_close(value, their_weights[name], rtol=1e-4, atol=1e-5)


def test_any_split_of_the_batch_gives_the_same_weights(build_llama, tiny_tokenizer, tmp_path):
    results = []
    for size in (12, 4, 3, 1):
        args = config(tmp_path, per_device_train_batch_size=size, max_steps=3)
        trainer = SFTTrainer(
            model=build_llama(seed=1),
            args=SFTConfig(**args, gradient_accumulation_steps=12 // size),
            train_dataset=Dataset.from_list(ROWS),
            processing_class=tiny_tokenizer,
        )
        results.append(train(trainer))
    (logs, weights), *others = results
    for other_logs, other_weights in others:
        assert [float(r["loss"]) for r in other_logs] == pytest.approx(
            [float(r["loss"]) for r in logs], rel=1e-4
        )
        for name, value in weights.items():
            torch.testing.assert_close(value, other_weights[name], rtol=1e-3, atol=1e-5)


def test_dft_weighs_the_gradient_of_nll_by_the_probability():
    logps = torch.tensor([[-0.1, -2.0, -5.0]], dtype=torch.float64, requires_grad=True)
    (plain,) = torch.autograd.grad(nll(logps).sum(), logps)
    (weighted,) = torch.autograd.grad(dft(logps).sum(), logps)
    torch.testing.assert_close(weighted, plain * logps.detach().exp())


def test_data_without_a_known_column_is_refused(build_llama, tiny_tokenizer, tmp_path):
    with pytest.raises(MissingColumn, match="found 'question'"):
        SFTTrainer(
            model=build_llama(),
            args=SFTConfig(**config(tmp_path)),
            train_dataset=Dataset.from_list([{"question": "1"}]),
            processing_class=tiny_tokenizer,
        )
    with pytest.raises(BadValue, match="`train_dataset` is required"):
        SFTTrainer(model=build_llama(), args=SFTConfig(**config(tmp_path)))


def test_any_dataset_is_evaluated_in_the_form_of_the_trainers(
    build_llama, tiny_tokenizer, tmp_path
):
    rows = Dataset.from_list(ROWS)
    trainer = SFTTrainer(
        model=build_llama(),
        args=SFTConfig(**config(tmp_path)),
        train_dataset=rows,
        eval_dataset=rows,
        processing_class=tiny_tokenizer,
    )
    expected = trainer.evaluate()["eval_loss"]
    assert trainer.evaluate(rows)["eval_loss"] == expected
    assert trainer.evaluate({"other": rows})["eval_other_loss"] == expected
    assert trainer.predict(rows).metrics["test_loss"] == expected


def test_a_formatting_function_is_never_passed_over(build_llama, tiny_tokenizer, tmp_path):
    def trainer(**changes):
        return SFTTrainer(
            model=build_llama(),
            args=SFTConfig(**config(tmp_path, **changes)),
            train_dataset=Dataset.from_list(ROWS),
            processing_class=tiny_tokenizer,
            formatting_func=lambda row: row["prompt"],
        )

    for completion_only in (None, True):
        with pytest.raises(BadValue, match="formatting_func makes one text"):
            trainer(completion_only_loss=completion_only)
    expected = tiny_tokenizer("0+0=" + tiny_tokenizer.eos_token)["input_ids"]
    assert trainer(completion_only_loss=False).train_dataset[0]["input_ids"] == expected


def test_smoothed_labels_are_spread_over_the_vocabulary():
    logits = torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    targets = torch.tensor([3, 0, 6, 6, 2])
    losses = cross_entropy(logits, targets, reduction="none")
    expected = cross_entropy(logits, targets, reduction="none", label_smoothing=0.3)
    torch.testing.assert_close(smooth_labels(losses, logits, 0.3), expected)


def test_a_loss_function_counts_for_all_processes_as_the_loss_does(
    build_llama, tiny_tokenizer, tmp_path, monkeypatch
):
    """Their gradients are averaged, and the tokens are those of all."""
    monkeypatch.setattr(Accelerator, "num_processes", property(lambda _: 2))

    def likelihood(outputs, labels, num_items_in_batch):
        logits, targets = outputs.logits[:, :-1].transpose(1, 2), labels[:, 1:]
        return cross_entropy(logits, targets, reduction="sum") / num_items_in_batch

    losses = []
    for own in (None, likelihood):
        trainer = SFTTrainer(
            model=build_llama(seed=1),
            args=SFTConfig(**config(tmp_path)),
            train_dataset=Dataset.from_list(ROWS),
            processing_class=tiny_tokenizer,
            compute_loss_func=own,
        )
        batch = trainer.data_collator(list(trainer.train_dataset))
        losses.append(trainer.compute_loss(trainer.model, batch, num_items_in_batch=50))
    torch.testing.assert_close(*losses)


@pytest.mark.parametrize("length", [{}, {"max_steps": -1}])
def test_fewer_rows_than_a_batch_are_refused_if_the_last_is_dropped(
    length, build_llama, tiny_tokenizer, tmp_path
):
    trainer = SFTTrainer(
        model=build_llama(),
        args=SFTConfig(**config(tmp_path, dataloader_drop_last=True, **length)),
        train_dataset=Dataset.from_list(ROWS[:3]),
        processing_class=tiny_tokenizer,
    )
    with pytest.raises(BadValue, match="has 3 rows, which fill no batch: add rows, lower"):
        trainer.train()
