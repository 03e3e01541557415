"""Algorithms by the words of a command line: papers, arms, mechanisms, classes and settings."""

from collections.abc import Sequence
from dataclasses import replace

from core.families.table import find_family
from core.paper import Paper
from core.paper.overrides import named_texts, parse_override
from core.paper.registry import entries, find_paper
from core.profiles.algorithms import REWARDS, Algorithm
from core.profiles.entries import ENTRIES, SCALE
from core.profiles.mechanisms import MECHANISMS, PLAIN
from core.profiles.trainings import TRAININGS
from core.settings.layers import PROFILE, REGIME
from core.settings.own_trainer import load_trainer
from core.settings.refusals import refuse_paper
from core.settings.resolve import resolve
from core.settings.run_settings import RUN_FIELDS, RunSettings
from eval.errors import BadValue, UnknownName
from eval.plugins import use

# Settings that decide the data, the length and the size of a training: those of the world act.
OF_THE_WORLD = frozenset(
    {"learning_rate", "lr_scheduler_type", "lr_scheduler_kwargs", "warmup_steps", "warmup_ratio"}
    | {"optim", "adam_beta1", "adam_beta2", "adam_epsilon", "weight_decay", "max_grad_norm"}
    | {"num_train_epochs", "max_steps", "num_iterations", "steps_per_generation"}
    | {"per_device_train_batch_size", "gradient_accumulation_steps", "max_completion_length"}
    | {"temperature", "top_p", "top_k", "min_p", "use_vllm", "rollout_bits", "rollout_lag"}
)
# Families by the class of trainers that they extend, the most special first.
TRAINERS = ("a2po", "rloo", "ppo", "grpo", "sft")


def find_algorithm(arguments: Sequence[str]) -> Algorithm:
    """Return the algorithm that words of a command line name.

    The first word is a paper, `PAPER:ARM`, a file with a `PAPER`, one of `MECHANISMS`, or a class
    of trainers as `module:Class` or `FILE.py:Class`; without it, the algorithm is plain GRPO. The
    others are settings as name=value, which win.

    Raises:
        UnknownName: there is no such paper, arm or setting; the nearest names are given.
        BadValue: the algorithm can be trained in no world, the class is no trainer, or a setting is
            decided by the worlds.
        BadOverride: a value does not have the type of its setting.
        MissingFile, BrokenPaper: a file cannot be read or holds no paper.
    """
    names = [word for word in arguments if "=" not in word]
    settings = tuple(word for word in arguments if "=" in word)
    if len(names) > 1:
        raise BadValue(f"{' and '.join(names)}: expected one algorithm, and settings as name=value")
    base = named_algorithm(names[0]) if names else PLAIN
    return with_settings(base, settings) if settings else base


def named_algorithm(name: str) -> Algorithm:
    """Return the algorithm that a word names; errors are those of `find_algorithm`."""
    if name in MECHANISMS:
        return MECHANISMS[name]
    place, colon, attribute = name.partition(":")
    is_file = place.endswith(".py")
    module = use(place) if is_file else None
    if isinstance(getattr(module, attribute, None), type):
        return algorithm_of_class(name)
    if is_file and attribute and not hasattr(module, "PAPER"):
        raise BadValue(f"{name}: the file defines no class {attribute}, and no PAPER with arms")
    if is_file or place in entries():
        return algorithm_of_arm(find_paper(place), attribute or None)
    if not colon:
        raise UnknownName("algorithm", name, {*entries(), *MECHANISMS}, "repro list")
    return algorithm_of_class(name)


def algorithm_of_class(name: str) -> Algorithm:
    """Return the algorithm of a class of trainers; errors are those of `find_algorithm`."""
    trainer = load_trainer(name)
    for family in TRAINERS:
        if issubclass(trainer, find_family(family).trainer_class()):
            settings = PLAIN.settings if family == PLAIN.family else {}
            return checked(
                Algorithm(name=trainer.__name__, family=family, settings=settings, trainer=name)
            )
    raise BadValue(f"{name}: expected a class that extends one of the trainers of {TRAINERS}")


def algorithm_of_arm(paper: Paper, arm: str | None = None) -> Algorithm:
    """Return the algorithm of an arm of a paper as it runs at the small scale.

    Raises:
        BadValue: the paper is not run here.
    """
    refuse_paper(paper)
    resolved = resolve(paper, arm=arm, scale=SCALE)
    settings = {
        name: setting.value
        for name, setting in resolved.values.items()
        if name not in RUN_FIELDS | OF_THE_WORLD
        and not setting.source.startswith((PROFILE, REGIME))
    }
    name = paper.slug if arm is None else f"{paper.slug}:{arm}"
    return checked(Algorithm(name=name, family=resolved.family.name, settings=settings))


def checked(algorithm: Algorithm) -> Algorithm:
    """Return an algorithm that can be trained in some world.

    Raises:
        BadValue: its family can be trained in no world.
    """
    if not any(algorithm.enters(training) for training in TRAININGS.values()):
        raise BadValue(
            f"{algorithm.name}: the family {algorithm.family} can be trained in no world; "
            f"expected one of {', '.join(ENTRIES)}"
        )
    return algorithm


def with_settings(algorithm: Algorithm, arguments: Sequence[str]) -> Algorithm:
    """Return an algorithm with settings of the command line.

    Raises:
        BadValue: a setting is decided by the worlds, or is none of the trainer's.
        UnknownName, BadOverride: see `parse_override`.
    """
    config = find_family(algorithm.family).config_class()
    texts = named_texts(tuple(arguments))
    for name in texts:
        if name in OF_THE_WORLD | RUN_FIELDS | {REWARDS}:
            raise BadValue(f"{name}={texts[name]}: the worlds of a profile decide it; leave it out")
    settings = {
        name: config.without_alias(name, parse_override(name, text, config, RunSettings))
        for name, text in texts.items()
    }
    name = " ".join([algorithm.name, *arguments])
    return replace(algorithm, name=name, settings={**algorithm.settings, **settings})
