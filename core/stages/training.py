"""Training of the training stage: curves, digests and the saved model; killed ones resume."""

import json
import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset  # pyright: ignore[reportMissingTypeStubs] - it ships none
from transformers import PrinterCallback, TrainerCallback
from transformers.utils import logging

from core.claims.needs import PREPARED
from core.collect.reward_calls import reward_note
from core.configs.base import BaseConfig
from core.configs.script import ModelConfig
from core.data.data_set import ANSWER
from core.data.sources import Row
from core.errors import RewardError
from core.explain.jsonl import JsonlCallback, read_log
from core.families.family import Training
from core.models.load import ADAPTERS, load_tokenizer
from core.records.files import folder_files
from core.records.notes import read_note, write_note
from core.records.places import MODEL, MODELS
from core.rewards.verifiers import check_rewards
from core.settings.canonical import digest_of
from core.settings.own_trainer import load_trainer
from core.settings.resolved import Resolved
from core.settings.run_settings import RunSettings
from core.shards.adapters import get_peft_config
from core.shards.bema import SavedAverages
from core.spread.checkpoints import SealCallback, last_checkpoint
from core.spread.launch import Models
from core.stages.held_out import ANSWER_TOKENS, FOLDER, split_as_asked
from core.stages.kernels import (
    PROCESSOR,
    acting_kernels,
    advise_on_bfloat16,
    check_kernels,
    processor,
)
from core.stages.watch.adapters import AdapterCallback
from core.stages.watch.heldout import (
    Drift,
    HeldOutCallback,
    completed_rows,
    digests,
    watched_benchmarks,
    watched_rows,
)
from core.stages.watch.pair_order import PairOrderCallback
from core.stages.watch.progress import ProgressCallback
from core.trainers.resume import ResumableTrainer
from eval.errors import ReproError, error_line
from eval.samples.evaluation import Decoding
from eval.terminal import say

DATASET: Any = Dataset  # Any: its methods are half typed
LOG = "log.jsonl"
WORK = "trainer"
TRAINED = "trained.json"  # what the stage gives, written when the model is whole
# Logged numbers that depend on the machine and the moment: kept in the log, not in the record.
TIMES = ("_runtime", "_per_second", "step_time", "seconds", "time/", "phase", "total_flos")
SKIPPED = ("step", "epoch", "train_loss")  # the last is one number, no curve


def train_model(
    resolved: Resolved, seed: int, models: Models, data: Path, folder: Path
) -> dict[str, object]:
    """Train into `folder`, and return curves, digests and times as outputs.

    The folder then holds `model/` and `log.jsonl`. In a launch every process calls this function;
    the first one writes, and the others return an empty mapping.
    """
    work, trained = folder / WORK, folder / TRAINED
    if not trained.exists():
        outputs = _train(resolved, seed, models, data, folder)
        if not outputs:
            return {}
        write_note(trained, outputs)
    shutil.rmtree(work, ignore_errors=True)  # only now: a kill in it must not lose the training
    return read_note(trained, f"delete {folder} and give the command again")


def _train(
    resolved: Resolved, seed: int, models: Models, data: Path, folder: Path
) -> dict[str, object]:
    """Train and save the model; return the outputs, empty in all but the first process."""
    settings, work = resolved.run, folder / WORK
    prepare_torch(settings.threads)
    is_first = int(os.environ.get("RANK", "0")) == 0  # of the processes of a launch
    config = resolved.build(output_dir=work, seed=seed, **resolved.share)
    if config.use_cpu and config.bf16:
        advise_on_bfloat16()
    train, valid = split_as_asked(resolved, data, says=is_first and PREPARED in settings.data)
    checkpoint = last_checkpoint(work)
    trainer, heldout = build_trainer(resolved, config, models, train, valid, folder)
    if is_first:
        announce(f"{resolved.paper.slug} {resolved.arm}, seed {seed}", checkpoint, settings, train)
    with naming_rewards():
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    end_wandb(config.report_to)
    save_policy(trainer, models.policy, settings.chat_template, folder / MODEL)
    averages = SavedAverages.saved if settings.averaging else ()
    for part in averages:
        saved = folder / MODELS[part]
        save_policy(trainer, models.policy, settings.chat_template, saved, work / part)
    if not is_first:
        return {}
    launched = {"launch": f"{settings.launch}, {settings.processes} processes"}
    return {
        "steps": trainer.state.global_step,
        "plan": resolved.family.batches(config, len(train), settings.processes, {}),
        "weights": weights_digest(folder / MODEL),
        **(
            {"averages": {part: weights_digest(folder / MODELS[part]) for part in averages}}
            if averages
            else {}
        ),
        "kernels": {**acting_kernels(), PROCESSOR: processor()},
        "curves": curves(folder / LOG),
        "phases": trainer.phases.summary(),
        **({"held_out": digests(heldout.watched, folder / FOLDER)} if heldout else {}),
        **(launched if settings.launch else {}),
        **({"trained_parameters": trained_parameters(trainer)} if settings.use_peft else {}),
    }


def announce(
    name: str, checkpoint: Path | None, settings: RunSettings, rows: Sequence[Row]
) -> None:
    """Print which training begins, and from which checkpoint, or the trial of its rewards.

    Args:
        name: The name of the training.
        checkpoint: The checkpoint that the training continues from.
        settings: The run settings, with the rewards.
        rows: The training rows, on some of which a new training tries its rewards.
    """
    say(name)
    if checkpoint is not None:
        say(f"{name}: continues from {checkpoint.name}")
    elif tried := check_rewards(settings.rewards, rows):
        say(f"{name}: {tried}")


def weights_digest(folder: Path) -> str:
    """Return the digest of a model's tensor files; tokenizer and config files do not count."""
    files = folder_files(folder)
    return digest_of({k: v for k, v in files.items() if k.endswith(".safetensors")} or files)


@contextmanager
def naming_rewards() -> Generator[None]:
    """Turn an exception of a reward into an error of one line.

    Raises:
        RewardError: a reward function raised an exception.
    """
    try:
        yield
    except Exception as error:  # a reward may raise anything
        note = reward_note(error)
        if note is None or isinstance(error, ReproError):
            raise
        raise RewardError(f"{error_line(error)}; {note}") from error


def build_trainer(
    resolved: Resolved,
    config: BaseConfig,
    models: Models,
    train: list[Row],
    valid: list[Row],
    folder: Path,
) -> tuple[ResumableTrainer, HeldOutCallback | None]:
    """Return the family's trainer with all callbacks of a run, and its held-out callback if any."""
    settings, family = resolved.run, resolved.family
    heldout = held_out_callback(resolved, config, models.policy, valid, folder / FOLDER)
    adapters = AdapterCallback() if settings.use_peft else None
    watching = [callback for callback in (heldout, adapters) if callback is not None]
    schedule = settings.averaging
    callbacks: list[TrainerCallback] = [
        *watching,
        *([SavedAverages(schedule)] if schedule else []),
        JsonlCallback(folder / LOG),
        ProgressCallback(f"{resolved.arm} seed {config.seed}", family.progress),
        SealCallback(),
    ]
    trainer = family.trainer(
        Training(
            config=config,
            model=models.policy,
            roles=models.roles,
            rewards=settings.rewards,
            rows=DATASET.from_list(train),
            callbacks=callbacks,
            adapters=get_peft_config(adapter_settings(settings)),
            chat_template=settings.chat_template,
            trainer_class=load_trainer(settings.trainer) if settings.trainer else None,
        )
    )
    trainer.remove_callback(PrinterCallback)  # standard output is for results
    for callback in watching:
        callback.trainer = trainer
    if "wandb" in (config.report_to or ()):
        send_rows_to_wandb(trainer, resolved, config.seed, folder)
    return trainer, heldout


def held_out_callback(
    resolved: Resolved, config: BaseConfig, start: str, rows: list[Row], folder: Path
) -> HeldOutCallback | None:
    """Return the callback that scores held-out rows and benchmarks; None if there are none.

    Args:
        resolved: The settings of the run.
        config: The config of the trainer.
        start: The model that the training begins with.
        rows: The held-out rows of the data; pairs without answers are not graded.
        folder: The folder of the graded answers.
    """
    settings = resolved.run
    if resolved.family.gives_texts:
        return None
    if resolved.family.gives_rewards:
        return pair_order_callback(settings, rows if resolved.family.pair_quantities else [])
    tokens = resolved.family.answer_tokens(config) or ANSWER_TOKENS
    decoding = Decoding(
        max_tokens=settings.eval_max_tokens or tokens, temperature=settings.heldout_temperature
    )
    is_graded = bool(rows) and not (resolved.family.pair_quantities and ANSWER not in rows[0])
    watched_data = [watched_rows(rows, decoding, folder)] if is_graded else []
    watched = [*watched_data, *watched_benchmarks(settings, config.seed, folder)]
    if not watched:
        return None
    trusts = config.trust_remote_code
    drift = Drift(begun=start, rows=rows, tokens=tokens, trust_code=trusts)
    return HeldOutCallback(
        watched,
        every=settings.heldout_every,
        target=settings.heldout_target,
        drift=drift if settings.heldout_kl else None,
        completed=completed_rows(rows) if settings.heldout_nll else (),
    )


def pair_order_callback(settings: RunSettings, rows: list[Row]) -> HeldOutCallback | None:
    """Return the callback that orders held-out pairs by their rewards; None if there are none."""
    every, target = settings.heldout_every, settings.heldout_target
    return PairOrderCallback(rows, every=every, target=target) if rows else None


def send_rows_to_wandb(
    trainer: ResumableTrainer, resolved: Resolved, seed: int, folder: Path
) -> None:
    """Replace the W&B callback of transformers by ours, which continues a resumed run."""
    from transformers.integrations.integration_utils import WandbCallback

    from core.stages.watch.wandb_rows import WandbRows

    trainer.remove_callback(WandbCallback)
    trainer.add_callback(WandbRows(folder, resolved, seed))


def adapter_settings(settings: RunSettings) -> ModelConfig:
    """Return the settings of the adapters of a run as TRL's arguments of a script."""
    modules = settings.lora_target_modules
    return ModelConfig(
        use_peft=settings.use_peft,
        lora_r=settings.lora_r,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        lora_target_modules=[modules] if isinstance(modules, str) else modules,
        lora_target_parameters=[*settings.lora_target_parameters] or None,
        lora_modules_to_save=[*settings.lora_modules_to_save] or None,
        use_rslora=settings.use_rslora,
        use_dora=settings.use_dora,
    )


def trained_parameters(trainer: Any) -> int:  # Any: the type of its model is partly unknown
    """Return the number of parameters that are trained, of all processes together."""
    trained = [weight for weight in trainer.model.parameters() if weight.requires_grad]
    return sum(getattr(weight, "ds_numel", weight.numel()) for weight in trained)  # of ZeRO-3


def save_policy(
    trainer: Any,  # a Trainer
    model: str,
    chat_template: str | None,
    folder: Path,
    average: Path | None = None,
) -> None:
    """Save the trained model, or its adapters, and the tokenizer, without paths of this machine.

    The files of the folder `average` replace those of the trained weights.
    """
    trainer.save_model(str(folder))
    if not trainer.is_world_process_zero():
        return
    if average is not None:
        shutil.copytree(average, folder, dirs_exist_ok=True)
    if (config := folder / ADAPTERS).is_file():  # only now: peft looks the name up on the hub
        fields = json.loads(config.read_text(encoding="utf-8"))
        named = {**fields, "base_model_name_or_path": model}
        config.write_text(json.dumps(named, indent=2, sort_keys=True), encoding="utf-8")
    tokenizer: Any = load_tokenizer(  # its methods are half typed
        model, chat_template, trust_code=trainer.args.trust_remote_code
    )
    tokenizer.save_pretrained(str(folder))
    for name in ("training_args.bin", "README.md"):  # the second is peft's empty form
        (folder / name).unlink(missing_ok=True)


def end_wandb(report_to: str | list[str] | None) -> None:
    """Close the W&B run of this training, so that the next training opens its own."""
    if "wandb" in (report_to or ()):
        import wandb

        wandb.finish()


def prepare_torch(threads: int | None) -> None:
    """Set the number of CPU threads, which decides the last bit of sums, and disable progress bars.

    Raises:
        BadValue: torch does not compute with the kernels that the environment asks for.
    """
    check_kernels()
    logging.disable_progress_bar()
    if threads is not None:
        torch.set_num_threads(threads)


def curves(log: Path) -> Mapping[str, list[list[float]]]:
    """Return every logged number as [step, value] pairs by its name, without times."""
    points: dict[str, list[list[float]]] = {}
    for row in read_log(log):
        for name, value in row.items():
            timed = any(part in name for part in TIMES)
            if name in SKIPPED or timed or not isinstance(value, int | float):
                continue
            points.setdefault(name, []).append([row["step"], round(float(value), 9)])
    return points
