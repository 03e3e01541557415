"""The growth of a GRPO step's CPU seconds with completions, length and group size, ours and TRL's.

The policy is a random Llama whose end token has no logit, so that every completion has exactly the
requested length.
"""
# pyright: basic
# (strictly, every call into trl and transformers is partially unknown)

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import log
from statistics import linear_regression
from typing import TypeAlias

import torch
from transformers import LlamaForCausalLM

from core.bench.measure import Measure, in_turn
from core.bench.step import ConfigClass, Timer, TrainerClass, peer, spread, train_on
from core.bounded_templates import Tokenizer
from core.configs.grpo import GRPOConfig
from core.models.load import load_tokenizer
from core.models.pocket import Size, new_model
from core.trainers.grpo import GRPOTrainer

SIZE = Size(hidden=64, inner=256, layers=2, heads=4)  # 200 thousand parameters
MICRO_BATCH = 64  # completions; gradients of more are accumulated
ROUNDS = 5  # of both sides in turn, a step each


@dataclass(frozen=True)
class Shape:
    """The number of completions of a step, their length, the group size and the prompt length."""

    completions: int = 64
    length: int = 64
    group: int = 8
    prompt: int = 64


Axes: TypeAlias = Mapping[str, tuple[Shape, Sequence[int]]]
AXES: Axes = {
    "completions": (Shape(), (32, 64, 128, 256, 512, 1024)),
    "length": (Shape(completions=8), (64, 128, 256, 512, 1024, 2048)),
    "group": (Shape(prompt=128), (2, 4, 8, 16, 32, 64)),
}
LINEAR = 1.05  # the largest exponent that is 1.0 when rounded


def bench_growth(axes: Axes = AXES, rounds: int = ROUNDS) -> list[Measure]:
    """Measure CPU seconds at every point of the three curves, and the exponents of two of them.

    Torch is limited to one thread from then on.

    Raises:
        BadValue: TRL is not installed.
    """
    torch.set_num_threads(1)
    theirs = peer().GRPOTrainer, peer().GRPOConfig
    small, _ = axes["group"]
    ours(small)  # the first of each warms up
    step_time(*theirs, small)
    curves = {
        axis: [
            point(axis, replace(shape, **{axis: position}), theirs, rounds)
            for position in positions
        ]
        for axis, (shape, positions) in axes.items()
    }
    return [
        *(measure for curve in curves.values() for measure in curve),
        exponent(curves["completions"], at_most=LINEAR),
        exponent(curves["length"], at_least=1.0),
        one_group(small, rounds),
    ]


def point(axis: str, shape: Shape, peer: tuple[TrainerClass, ConfigClass], rounds: int) -> Measure:
    """Measure both sides at one shape; `peer` is TRL's trainer and its configuration."""
    return in_turn(
        lambda: ours(shape),
        lambda: step_time(*peer, shape),
        rounds,
        name=axis,
        at=asdict(shape)[axis],
        unit="CPU s",
        peer="TRL",
    )


def one_group(shape: Shape, rounds: int) -> Measure:
    """Measure the benefit of a shared prompt: all completions in one group against 8 groups."""
    size = shape.completions // 8
    single, eight = replace(shape, group=shape.completions), replace(shape, group=size)
    return in_turn(
        lambda: ours(single),
        lambda: ours(eight),
        rounds,
        name=f"one group of {shape.completions}",
        unit="CPU s",
        peer=f"ours, 8 groups of {size}",
        at_least=1.0,
    )


def exponent(
    curve: Sequence[Measure], *, at_least: float | None = None, at_most: float | None = None
) -> Measure:
    """Return the exponent of each side's growth with the axis of a curve."""
    places = [float(measure.at or 0) for measure in curve]
    return Measure(
        name=f"growth with {curve[0].name}",
        unit="exponent",
        ours=slope(places, [measure.ours for measure in curve]),
        theirs=slope(places, [measure.theirs for measure in curve if measure.theirs is not None]),
        peer="TRL",
        at_least=at_least,
        at_most=at_most,
    )


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the least-squares slope of log y = a + slope log x: 1 is linear, 2 quadratic."""
    return linear_regression([log(value) for value in x], [log(value) for value in y]).slope


def ours(shape: Shape) -> list[float]:
    """Return the CPU seconds of a step of ours."""
    return step_time(GRPOTrainer, GRPOConfig, shape)


def step_time(trainer_class: TrainerClass, config_class: ConfigClass, shape: Shape) -> list[float]:
    """Return the CPU seconds of a step; the classes are ours or TRL's."""
    timer = Timer()
    tokenizer, model = endless()
    micro_batch = min(MICRO_BATCH, shape.completions)
    train_on(
        trainer_class,
        config_class,
        timer,
        rows={"prompt": prompts(shape)},
        settings={
            "use_cpu": True,
            "bf16": False,
            "activation_checkpointing": False,
            "per_device_train_batch_size": micro_batch,
            "gradient_accumulation_steps": shape.completions // micro_batch,
            "num_generations": shape.group,
            "max_completion_length": shape.length,
        },
        model=model,
        reward_funcs=spread,
        processing_class=tokenizer,
    )
    return timer.seconds


def endless() -> tuple[Tokenizer, LlamaForCausalLM]:
    """Return a tokenizer and a random policy without a logit for the end token."""
    tokenizer: Tokenizer = load_tokenizer("pocket-instruct")
    model = new_model(SIZE, tokenizer, 0)
    tokenizer.add_special_tokens({"eos_token": "<never>"})
    for config in (model.config, model.generation_config):
        config.eos_token_id = tokenizer.eos_token_id
    return tokenizer, model


def prompts(shape: Shape) -> list[str]:
    """Return distinct random prompts of one length; every digit is a token."""
    draw = random.Random(0)
    count = shape.completions // shape.group
    return ["".join(draw.choices("0123456789", k=shape.prompt)) for _ in range(count)]
