"""CPU seconds of a step of preference trainers, ours and TRL's, in the pocket world.

The pairs are worked solutions: the chosen answer solves the prompt's problem, the rejected one the
next problem. An online trainer samples its pairs, and the longer answer is the better one.
"""
# pyright: basic
# (strictly, every call into trl and transformers is partially unknown)

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from tempfile import TemporaryDirectory

import torch
from datasets import Dataset
from transformers import PrinterCallback

from core.bench.large_preference import bench_large_preference
from core.bench.measure import Measure, in_turn
from core.bench.preference_trainers import OURS, SIMPO, Side, trl_side
from core.bench.step import QUIET, Timer, peer
from core.data.load import load_training_data
from core.models.load import load_policy, load_tokenizer

MODEL, DATA = "pocket-instruct", "pocket-worked"
PAIRS = 32  # of a step, or twice as many labelled answers
ROUNDS = 5  # of both sides in turn
STEPS = 4  # of each side in each round; the first one warms up


def labelled_answers(pairs: Dataset) -> Dataset:
    """Return both answers of each pair with a label, the chosen one first."""
    return Dataset.from_list(
        [
            {"prompt": pair["prompt"], "completion": pair[name], "label": name == "chosen"}
            for pair in pairs.to_list()
            for name in ("chosen", "rejected")
        ]
    )


def prompts_alone(pairs: Dataset) -> Dataset:
    """Return the prompts of pairs."""
    return pairs.select_columns("prompt")


def lengths(completions: list[list[dict[str, str]]], **_: object) -> list[float]:
    """Return the number of characters of each answer, a reward."""
    return [float(len(messages[-1]["content"])) for messages in completions]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A step of a preference trainer in the pocket world.

    Attributes:
        trainer: The trainer, a name of `OURS`.
        at_least: The ratio of CPU seconds to be met.
        settings: Settings beside those of `step_seconds`.
        rows: Makes its data set of the pairs.
        row_count: Rows of a step.
        has_reference: True if the loss compares the policy with a reference.
        reward: Reward of sampled answers; None for a trainer that samples none.
    """

    trainer: str
    at_least: float
    settings: Mapping[str, object] = field(default_factory=dict)
    rows: Callable[[Dataset], Dataset] = lambda pairs: pairs
    row_count: int = PAIRS
    has_reference: bool = True
    reward: Callable[..., list[float]] | None = None


WORKLOADS: Mapping[str, Workload] = {
    "DPO step, 32 pairs": Workload(trainer="DPO", at_least=1.9),
    "DPO step, 32 pairs, reference precomputed": Workload(
        trainer="DPO", settings={"precompute_ref_log_probs": True}, at_least=1.9
    ),
    "SimPO step, 32 pairs": Workload(
        trainer="CPO", settings=SIMPO, has_reference=False, at_least=1.6
    ),
    "KTO step, 64 answers": Workload(
        trainer="KTO", rows=labelled_answers, row_count=2 * PAIRS, at_least=1.6
    ),
    "OnlineDPO step, 32 prompts": Workload(
        trainer="OnlineDPO", rows=prompts_alone, reward=lengths, at_least=1.8
    ),
}


def bench_preference() -> list[Measure]:
    """Measure a step of each of `WORKLOADS`, then those of a larger model.

    The precomputation of a reference is not part of a step. Torch is limited to one thread from
    then on.

    Raises:
        BadValue: TRL is not installed.
    """
    peer()
    torch.set_num_threads(1)
    pocket = [
        in_turn(
            lambda workload=workload: step_seconds(workload, OURS[workload.trainer]),
            lambda workload=workload: step_seconds(workload, trl_side(workload.trainer)),
            ROUNDS,
            name=name,
            unit="CPU s",
            peer="TRL",
            at_least=workload.at_least,
        )
        for name, workload in WORKLOADS.items()
    ]
    return [*pocket, *bench_large_preference()]


def step_seconds(workload: Workload, side: Side) -> Sequence[float]:
    """Return the CPU seconds of each step after the first."""
    further: dict[str, object] = {}
    if workload.has_reference:
        further["ref_model"] = load_policy(MODEL)
    if workload.reward is not None:
        further["reward_funcs"] = workload.reward
    timer = Timer()
    with TemporaryDirectory() as folder:
        trainer = side.trainer(
            model=load_policy(MODEL),
            args=side.config(
                output_dir=folder,
                max_steps=STEPS,
                use_cpu=True,
                bf16=False,
                gradient_checkpointing=False,
                per_device_train_batch_size=workload.row_count,
                **QUIET,
                **workload.settings,
            ),
            train_dataset=workload.rows(pocket_pairs(PAIRS * STEPS)),
            processing_class=load_tokenizer(MODEL),
            **further,
        )
        trainer.remove_callback(PrinterCallback)  # standard output is for results
        trainer.add_callback(timer)
        trainer.train()
    return timer.seconds[1:]


def pocket_pairs(count: int) -> Dataset:
    """Return pairs of worked solutions, whose rejected answer solves the next problem."""
    rows = load_training_data(DATA).select(range(count + 1))
    return Dataset.from_list(
        [
            {
                "prompt": row["prompt"],
                "chosen": row["completion"],
                "rejected": following["completion"],
            }
            for row, following in pairwise(rows.to_list())
        ]
    )
