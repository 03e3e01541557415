"""The train stage: model and data to trained weights and curves, resumed where it stopped."""

import json
import os
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset  # pyright: ignore[reportMissingTypeStubs] - it ships none
from transformers import PrinterCallback, TrainerCallback
from transformers.utils import logging

from core.collect.reward_calls import reward_note
from core.errors import RewardError
from core.explain.batch_plan import batch_plan
from core.explain.jsonl import JsonlCallback, read_log
from core.families.table import find_family
from core.models.load import load_policy, load_tokenizer
from core.rewards.verifiers import check_rewards
from core.run.files import canonical, digest_of, folder_files, write_atomic
from core.run.resolve import Resolved, divided
from core.run.settings import RunSettings
from core.run.stages.checkpoints import SealCallback, last_checkpoint
from core.run.stages.stage import say
from core.run.watch.heldout import HeldOutCallback
from core.run.watch.progress import ProgressCallback
from eval.errors import BadValue, DamagedFile, ReproError

DATASET: Any = Dataset  # Any: its methods are half typed
LOG = "log.jsonl"
MODEL = "model"
TRAINED = "trained.json"  # what the stage gives, written when the model is whole
# Logged numbers that depend on the machine and the moment: kept in the log, not in the record.
TIMES = ("_runtime", "_per_second", "step_time", "seconds", "time/", "phase", "total_flos")

SKIPPED = ("step", "epoch", "train_loss")  # the last is one number, no curve


def train_model(resolved: Resolved, seed: int, data: Path, folder: Path) -> dict[str, object]:
    """Train into `folder`: `model/`, `log.jsonl`, and the curves and the time table as outputs.

    In a launch every process calls this, and the first one writes and has the outputs.
    """
    work, trained = folder / "trainer", folder / TRAINED
    if not trained.exists():
        outputs = _train(resolved, seed, data, folder, work)
        if not outputs:
            return {}
        write_atomic(trained, json.dumps(canonical(outputs)) + "\n")
    shutil.rmtree(work, ignore_errors=True)  # only now: a kill in it must not lose the training
    return json.loads(trained.read_text(encoding="utf-8"))


def _train(
    resolved: Resolved, seed: int, data: Path, folder: Path, work: Path
) -> dict[str, object]:
    """Train and save; the outputs, which only the first process has."""
    settings = resolved.run
    prepare_torch(settings.threads)
    main = int(os.environ.get("RANK", "0")) == 0  # of the processes of a launch, or the only one
    share = divided(resolved.config, settings.processes)
    config = resolved.build(output_dir=work, seed=seed, **share)
    train, valid = split_rows(read_rows(data), settings.heldout_problems)
    resume = last_checkpoint(work)
    trainer, heldout = build_trainer(resolved, config, train, valid, folder)
    trainer.remove_callback(PrinterCallback)  # standard output is for results
    if heldout is not None:
        heldout.trainer = trainer
    name = f"{resolved.paper.slug} {resolved.arm}, seed {seed}"
    plan = str(batch_plan(config, len(train), config.world_size))
    if main:
        say(name)
    if main and resume is not None:
        say(f"{name}: continues from {resume.name}")
    elif main and (tried := check_rewards(settings.rewards, train)):
        say(f"{name}: {tried}")
    with naming_rewards():
        trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    end_wandb(config.report_to)
    save_policy(trainer, settings, folder / MODEL)
    if not main:
        return {}
    phases = trainer.phases.summary()
    return {
        "steps": trainer.state.global_step,
        "plan": plan,
        "weights": digest_of(folder_files(folder / MODEL)),
        "curves": curves(folder / LOG),
        "phases": phases,
        **(
            {"launch": f"{settings.launch}, {config.world_size} processes"}
            if settings.launch
            else {}
        ),
    }


@contextmanager
def naming_rewards() -> Generator[None]:
    """In a run, what a reward raises is one line as every other error.

    Raises:
        RewardError: a reward function raised something.
    """
    try:
        yield
    except Exception as error:  # a reward may raise anything
        note = reward_note(error)
        if note is None or isinstance(error, ReproError):
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise RewardError(f"{what}; {note}") from error


def build_trainer(
    resolved: Resolved, config: Any, train: list[dict[str, Any]], valid: list[Any], folder: Path
) -> tuple[Any, HeldOutCallback | None]:
    """The family's trainer with every callback of a run, and the one that needs the trainer."""
    settings, family = resolved.run, find_family(resolved.paper.family)
    heldout = HeldOutCallback(
        valid,
        every=settings.heldout_every,
        max_tokens=settings.eval_max_tokens or config.max_completion_length,
    )
    callbacks: list[TrainerCallback] = [
        *([heldout] if valid else []),
        JsonlCallback(folder / LOG),
        ProgressCallback(f"{resolved.arm} seed {config.seed}"),
        SealCallback(),
    ]
    trainer = family.trainer_class()(
        model=load_policy(settings.model),
        reward_funcs=list(settings.rewards),
        args=config,
        train_dataset=DATASET.from_list(train),
        processing_class=load_tokenizer(settings.model),
        peft_config=lora_config(settings),
        callbacks=callbacks,
    )
    if "wandb" in config.report_to:
        from transformers.integrations.integration_utils import WandbCallback

        from core.run.watch.wandb_rows import WandbRows

        trainer.remove_callback(WandbCallback)
        trainer.add_callback(WandbRows(folder))
    return trainer, heldout if valid else None


def lora_config(settings: RunSettings) -> Any:  # Any: peft is optional
    """The adapters to train, in the words of peft; None if all weights are trained."""
    if not settings.use_peft:
        return None
    if find_spec("peft") is None:
        raise BadValue("use_peft=true: peft is not installed: pip install 'repro-papers[peft]'")
    from peft import LoraConfig

    return LoraConfig(
        task_type="CAUSAL_LM",
        r=settings.lora_r,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules=settings.lora_target_modules,
    )


def save_policy(trainer: Any, settings: RunSettings, folder: Path) -> None:  # Any: a Trainer
    """Write the trained model, or its adapters, and the tokenizer; no paths of this machine."""
    if settings.use_peft:
        trainer.model.peft_config["default"].base_model_name_or_path = settings.model
    trainer.save_model(str(folder))
    if not trainer.is_world_process_zero():
        return
    tokenizer: Any = load_tokenizer(settings.model)  # Any: its methods are half typed
    tokenizer.save_pretrained(str(folder))
    for name in ("training_args.bin", "README.md"):  # the second is peft's empty form
        (folder / name).unlink(missing_ok=True)


def end_wandb(report_to: list[str]) -> None:
    """Close the W&B run of this training, so that the next one in this process is its own."""
    if "wandb" in report_to:
        import wandb

        wandb.finish()


def prepare_torch(threads: int | None) -> None:
    """Fix the number of CPU threads, and with it the last bit of every sum; no bars but ours."""
    logging.disable_progress_bar()
    if threads is not None:
        torch.set_num_threads(threads)


def write_rows(rows: Any, valid: Any, columns: tuple[str, ...], folder: Path) -> int:
    """Write training and held-out rows (datasets) as JSON lines; returns how many to train on.

    Raises:
        BadValue: there are no rows, or a column is missing.
    """
    missing = [column for column in columns if column not in rows.column_names]
    if missing:
        raise BadValue(
            f"the training data has no column {', '.join(missing)}; it has "
            f"{', '.join(rows.column_names)}"
        )
    if not len(rows):
        raise BadValue("the training data has no rows")
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        for split, dataset in (("train", rows), ("valid", valid or ())):
            for row in dataset:
                file.write(json.dumps({"split": split, **row}, ensure_ascii=False) + "\n")
    return len(rows)


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of the data stage."""
    path = folder / "rows.jsonl"
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines if line]
    except ValueError as error:
        raise DamagedFile(f"{path}: not JSON lines ({error}); delete {folder}") from error


def split_rows(
    rows: list[dict[str, Any]], heldout: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Training rows and `heldout` held-out rows: of the data's own, else of the training rows.

    Every k-th row is held out, so that all parts of the data are in a small number of them.
    """
    plain = [(row["split"], {k: v for k, v in row.items() if k != "split"}) for row in rows]
    train = [row for split, row in plain if split == "train"]
    valid = [row for split, row in plain if split == "valid"]
    if valid and heldout > len(valid):
        raise BadValue(
            f"heldout_problems={heldout}: the data has {len(valid)} rows to hold out; ask for as "
            "many or fewer"
        )
    source = valid or train
    chosen = range(len(source))[:: max(1, len(source) // max(1, heldout))][:heldout]
    held = [source[place] for place in chosen]
    if valid or not held:
        return train, held
    if heldout >= len(train):
        raise BadValue(f"heldout_problems={heldout}: the data has {len(train)} rows only")
    return [row for place, row in enumerate(train) if place not in chosen], held


def curves(log: Path) -> Mapping[str, list[list[float]]]:
    """Every logged number against its step, without those that tell the time."""
    found: dict[str, list[list[float]]] = {}
    for row in read_log(log):
        for name, value in row.items():
            timed = any(part in name for part in TIMES)
            if name in SKIPPED or timed or not isinstance(value, int | float):
                continue
            found.setdefault(name, []).append([row["step"], round(float(value), 9)])
    return found
