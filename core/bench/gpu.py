"""Tokens a second of rollout and training on a GPU, ours and TRL's, and their share of its limits.

Both sides train Qwen2 shapes with random weights in bfloat16 on the same prompts. The end token has
no logit, so that every completion has the same length.
"""
# pyright: basic
# (strictly, every call into trl and transformers is partially unknown)

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, Qwen2Config

from core.bench.cards import CARDS, Card, sampling_bytes, sampling_flops, training_flops
from core.bench.measure import SHARE, Measure, MeasureFields, several_in_turn
from core.bench.step import Timer, peer, spread, train_on
from core.bench.words import word_prompts, word_tokenizer
from core.bounded_templates import Tokenizer
from core.configs.grpo import GRPOConfig
from core.models.shapes import KNOWN, Shape
from core.trainers.grpo import GRPOTrainer
from eval.errors import BadValue

ROUNDS = 3  # of both sides in turn
STEPS = 2  # of each side in each round; the first one warms up


@dataclass(frozen=True, kw_only=True)
class Load:
    """A GRPO step: its model shape, prompts, completions per prompt, and their numbers of tokens.

    Gradients of more completions than `micro_batch` are accumulated. `at_least` is the required
    speed-up over TRL, for the rollout and for the step.
    """

    name: str
    shape: Shape
    prompts: int
    group: int = 8
    prompt: int = 128
    length: int = 256
    micro_batch: int
    optimizer: str
    at_least: float | None = None

    @property
    def completions(self) -> int:
        """The number of completions of a step."""
        return self.prompts * self.group

    @property
    def tokens(self) -> int:
        """The number of tokens that a step samples and trains on."""
        return self.completions * self.length


LOADS = (
    Load(
        name="0.5B",
        shape=KNOWN["Qwen/Qwen2.5-0.5B-Instruct"],
        prompts=64,
        micro_batch=32,
        optimizer="adamw_torch",
        at_least=3.0,
    ),
    # SGD has no states. Weights and gradients take 30 GB, and by the formulas of `repro plan` the
    # activations of 8 completions take 25 GB more: a step fits into 80 GB.
    Load(
        name="7B",
        shape=KNOWN["Qwen/Qwen2.5-7B-Instruct"],
        prompts=16,
        micro_batch=8,
        optimizer="sgd",
    ),
)


@dataclass(frozen=True)
class Side:
    """A trainer class, its configuration class, and the name of its method that samples a step."""

    trainer: type
    config: type
    rollout: str


OURS = Side(GRPOTrainer, GRPOConfig, "generate")


def theirs() -> Side:
    """Return TRL's side, with its transformers engine.

    Raises:
        BadValue: TRL is not installed.
    """
    return Side(peer().GRPOTrainer, peer().GRPOConfig, "_generate")


def check_gpu() -> None:
    """Raise unless torch finds a CUDA device.

    Raises:
        BadValue: torch finds none.
    """
    if not torch.cuda.is_available():
        raise BadValue(
            "bench gpu: found no CUDA device, expected one: run it on a machine with a GPU and a "
            "torch that is built for it"
        )


def bench_gpu() -> list[Measure]:
    """Measure every load on the first GPU; shares need a card whose limits are known.

    Raises:
        BadValue: there is no GPU, or TRL is not installed.
    """
    check_gpu()
    card = CARDS.get(torch.cuda.get_device_name())
    return [
        measure
        for load in LOADS
        for measure in bench_load(load, torch.device("cuda"), torch.bfloat16, card)
    ]


def bench_load(
    load: Load, device: torch.device, dtype: torch.dtype, card: Card | None, rounds: int = ROUNDS
) -> list[Measure]:
    """Measure rates of rollout and training, seconds of a step, and shares of the card's limits.

    Training is the part of a step that is not rollout: rewards, forward, backward and optimizer.
    """

    def run(side: Side) -> Callable[[], dict[str, float]]:
        return lambda: step_rates(side, load, device, dtype)

    rows: dict[str, MeasureFields] = {
        "rollout": {"name": f"{load.name} rollout", "unit": "tokens/s", "at_least": load.at_least},
        "training": {"name": f"{load.name} training", "unit": "tokens/s"},
        "step": {"name": f"{load.name} step", "unit": "s", "at_least": load.at_least},
    }
    if device.type == "cuda":
        rows["memory"] = {"name": f"{load.name} memory", "unit": "GB"}
    measures = several_in_turn(run(OURS), run(theirs()), rounds, rows, peer="TRL")
    return [*measures, *shares(load, card, dtype, *measures[:2])]


def shares(
    load: Load, card: Card | None, dtype: torch.dtype, rollout: Measure, training: Measure
) -> list[Measure]:
    """Return the shares of the card's bandwidth and arithmetic; empty for an unknown card."""
    if card is None:
        return []
    read = sampling_bytes(
        load.shape,
        prompts=load.prompts,
        group=load.group,
        prompt=load.prompt,
        length=load.length,
        itemsize=dtype.itemsize,
    )
    return [
        share(rollout, "of bandwidth", read / load.tokens, card.bandwidth),
        share(rollout, "of arithmetic", sampling_flops(load.shape), card.flops),
        share(training, "of arithmetic", training_flops(load.shape), card.flops),
    ]


def share(rate: Measure, limit: str, cost: float, capacity: float) -> Measure:
    """Convert a rate in tokens a second to a share of a limit.

    Args:
        rate: The measured rate.
        limit: The name of the limit.
        cost: The amount of the limited resource that a token uses.
        capacity: The available amount a second.
    """
    theirs = None if rate.theirs is None else rate.theirs * cost / capacity
    return replace(
        rate,
        name=f"{rate.name}, {limit}",
        unit=SHARE,
        ours=rate.ours * cost / capacity,
        theirs=theirs,
        at_least=None,
    )


def step_rates(
    side: Side, load: Load, device: torch.device, dtype: torch.dtype
) -> dict[str, float]:
    """Train `STEPS` steps; return the rates and seconds of the last one, and the peak memory in GB.

    Raises:
        RuntimeError: the completions have other lengths than those of the load.
    """
    gc.collect()  # the previous trainer is a reference cycle that holds GPU memory
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    timer, sampled, lengths = Timer(lambda: now(device)), list[float](), list[int]()

    def reward(completion_ids: list[list[int]], **_: object) -> list[float]:
        lengths.extend(map(len, completion_ids))
        return spread(completion_ids)

    tokenizer: Tokenizer = word_tokenizer(load.shape.vocabulary, end="<never>")
    train_on(
        timed_trainer(side, lambda: now(device), sampled),
        side.config,
        timer,
        rows={"prompt": word_prompts(STEPS * load.prompts, load.prompt, load.shape.vocabulary)},
        settings=settings(load, device, dtype),
        model=random_qwen(load.shape, tokenizer.eos_token_id, device, dtype),
        reward_funcs=reward,
        processing_class=tokenizer,
    )
    count = STEPS * load.completions
    if lengths != [load.length] * count:
        raise RuntimeError(f"{count} x {load.length} tokens expected, found {lengths}")
    step, rollout = timer.seconds[-1], sampled[-1]
    return {
        "rollout": load.tokens / rollout,
        "training": load.tokens / (step - rollout),
        "step": step,
        "memory": torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else 0.0,
    }


def settings(load: Load, device: torch.device, dtype: torch.dtype) -> dict[str, object]:
    """Return the settings that both sides share."""
    return {
        "max_steps": STEPS,
        "use_cpu": device.type == "cpu",
        "bf16": dtype == torch.bfloat16,
        "activation_checkpointing": False,
        "optim": load.optimizer,
        "per_device_train_batch_size": load.micro_batch,
        "gradient_accumulation_steps": load.completions // load.micro_batch,
        "num_generations": load.group,
        "max_completion_length": load.length,
    }


def timed_trainer(side: Side, clock: Callable[[], float], seconds: list[float]) -> type:
    """Return a subclass of a side's trainer that records the seconds of each rollout."""
    sample = getattr(side.trainer, side.rollout)

    def sample_timed(self: object, *arguments: object, **keywords: object) -> object:
        start = clock()
        completions = sample(self, *arguments, **keywords)
        seconds.append(clock() - start)
        return completions

    return type(side.trainer.__name__, (side.trainer,), {side.rollout: sample_timed})


def now(device: torch.device) -> float:
    """Return the wall time in seconds after the device has finished its queued work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return perf_counter()


def random_qwen(
    shape: Shape, end: int, device: torch.device, dtype: torch.dtype
) -> PreTrainedModel:
    """Return a Qwen2 of this shape with random weights, the same on every call on one device."""
    config = Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        tie_word_embeddings=shape.tied,
        eos_token_id=end,
    )
    torch.manual_seed(0)
    with device:
        return AutoModelForCausalLM.from_config(config, dtype=dtype)
