"""CPU seconds of a GRPO step: ours and TRL's with the same model, prompts, rewards and settings."""
# pyright: basic
# (strictly, every call into trl and transformers is partially unknown)

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from tempfile import TemporaryDirectory
from time import process_time
from types import MappingProxyType
from typing import Any, TypeAlias

import torch
from datasets import Dataset
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from core.bench.measure import Measure, in_turn
from core.configs.grpo import GRPOConfig
from core.data.load import load_training_data
from core.models.load import load_policy, load_tokenizer
from core.paper.registry import find_paper
from core.settings.resolve import resolve
from core.trainers.grpo import GRPOTrainer
from eval.errors import BadValue

# A trainer and its config, ours or TRL's, whose constructors take the same arguments.
TrainerClass: TypeAlias = Callable[..., Trainer]
ConfigClass: TypeAlias = Callable[..., TrainingArguments]
PAPER = "deepseekmath-grpo"
ROUNDS = 5  # of both sides in turn
STEPS = 3  # of each side in each round; the first one warms up
SHARED = (
    "learning_rate",
    "lr_scheduler_type",
    "num_generations",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "max_completion_length",
    "beta",
    "temperature",
    "loss_type",
    "scale_rewards",
    "use_cpu",
    "bf16",
    "gradient_checkpointing",
)
BETAS = (0.0, 0.04)  # without a reference model, and the paper's
QUIET = {"logging_steps": 1, "save_strategy": "no", "report_to": "none", "disable_tqdm": True}


def bench_step() -> list[Measure]:
    """Measure the step of `repro run deepseekmath-grpo`: 128 completions of at most 64 tokens.

    It is measured with its KL penalty, and with beta 0.

    Torch is limited to one thread from then on.

    Raises:
        BadValue: TRL is not installed.
    """
    theirs = peer()
    torch.set_num_threads(1)
    return [
        in_turn(
            lambda beta=beta: step_times(GRPOTrainer, GRPOConfig, {"beta": beta}),
            lambda beta=beta: step_times(theirs.GRPOTrainer, theirs.GRPOConfig, {"beta": beta}),
            ROUNDS,
            name=f"GRPO step, beta {beta:g}",
            unit="CPU s",
            peer="TRL",
            at_least=2.5,
        )
        for beta in BETAS
    ]


def peer() -> Any:  # Any: TRL exports its classes lazily
    """Return the module `trl`.

    Raises:
        BadValue: TRL is not installed.
    """
    try:
        return import_module("trl")
    except ImportError as error:
        raise BadValue("the peer is missing: pip install 'repro-papers[test]'") from error


def step_times(
    trainer_class: TrainerClass,
    config_class: ConfigClass,
    changes: Mapping[str, object] = MappingProxyType({}),
    **keywords: object,
) -> list[float]:
    """Return the CPU seconds of each step after the first; the classes are ours or TRL's.

    Args:
        trainer_class: Our trainer or TRL's.
        config_class: The configuration class of the trainer.
        changes: Settings that override the paper's.
        keywords: Further arguments of the trainer.
    """
    resolved = resolve(find_paper(PAPER))
    settings = {**step_settings(), **changes}
    timer = Timer()
    with TemporaryDirectory() as folder:
        trainer = trainer_class(
            model=load_policy(resolved.run.model),
            reward_funcs=list(resolved.run.rewards),
            args=config_class(output_dir=folder, max_steps=STEPS, **QUIET, **settings),
            train_dataset=load_training_data(resolved.run.data),
            processing_class=load_tokenizer(resolved.run.model),
            **keywords,
        )
        trainer.remove_callback(PrinterCallback)  # standard output is for results
        trainer.add_callback(timer)
        trainer.train()
    return timer.seconds[1:]


def step_settings() -> dict[str, Any]:
    """Return the settings of the pocket step that both sides have, by name."""
    values = resolve(find_paper(PAPER)).values
    return {name: values[name].value for name in SHARED if name in values}


def train_on(
    trainer_class: TrainerClass,
    config_class: ConfigClass,
    timer: "Timer",
    *,
    rows: Mapping[str, Sequence[object]],
    settings: Mapping[str, object],
    **keywords: object,
) -> Trainer:
    """Train on rows with a timer, one step by default, and return the trainer.

    Args:
        trainer_class: Our trainer or TRL's.
        config_class: The configuration class of the trainer.
        timer: Receives the seconds of each step.
        rows: The columns of the training data.
        settings: Settings of the configuration.
        keywords: Further arguments of the trainer.
    """
    with TemporaryDirectory() as folder:
        trainer = trainer_class(
            args=config_class(**{"output_dir": folder, "max_steps": 1, **QUIET, **settings}),
            train_dataset=Dataset.from_dict({**rows}),
            **keywords,
        )
        trainer.remove_callback(PrinterCallback)  # standard output is for results
        trainer.add_callback(timer)
        trainer.train()
    return trainer


def spread(completion_ids: list[list[int]], **_: object) -> list[float]:
    """Return rewards that differ within a group, by the first token of each completion."""
    return [float(ids[0] % 7) for ids in completion_ids]


class Timer(TrainerCallback):
    """A callback with the seconds of each optimizer step, CPU seconds by default."""

    def __init__(self, clock: Callable[[], float] = process_time) -> None:
        self.clock = clock
        self.seconds: list[float] = []

    def on_step_begin(self, *_: object, **__: object) -> None:
        """Start the clock of a step."""
        self.seconds.append(-self.clock())

    def on_step_end(self, *_: object, **__: object) -> None:
        """Stop the clock of a step."""
        self.seconds[-1] += self.clock()
