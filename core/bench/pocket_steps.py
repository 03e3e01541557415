"""CPU seconds of a step of trainers of given rows, ours and TRL's, in the pocket world.

The pairs are worked solutions: the chosen answer solves the prompt's problem, the rejected one the
next problem. An online trainer samples its pairs, and the longer answer is the better one.
Fine-tuning is on the chosen answers. A teacher is the model itself.
"""
# pyright: basic
# (strictly, every call into trl and transformers is partially unknown)

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from tempfile import TemporaryDirectory

import torch
from datasets import Dataset
from transformers import PreTrainedModel, PrinterCallback

from core.bench.large_steps import PREFERENCE, bench_large_steps, chosen_answers
from core.bench.measure import Measure, in_turn
from core.bench.step import QUIET, Timer, peer
from core.bench.trainers import OURS, SIMPO, Side, trl_side
from core.data.load import load_training_data
from core.models.load import load_policy, load_tokenizer
from core.models.scorers import REWARD_HEAD, load_drawn_scorer

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


def load_reward_model(name: str) -> PreTrainedModel:
    """Load a model with a new head of rewards."""
    return load_drawn_scorer(name, REWARD_HEAD, seed=0)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A step of a trainer in the pocket world.

    Attributes:
        bench: The name of the benchmark that it belongs to.
        trainer: The trainer, a name of `OURS`.
        at_least: The ratio of CPU seconds to be met.
        settings: Settings beside those of `step_seconds`.
        rows: Makes its data set of the pairs.
        row_count: Rows of a step.
        frozen: The argument that takes a frozen model beside the policy; empty for none.
        reward: Reward of sampled answers; None for a trainer that samples none.
        load: Loads the model by name.
    """

    bench: str = PREFERENCE
    trainer: str
    at_least: float
    settings: Mapping[str, object] = field(default_factory=dict)
    rows: Callable[[Dataset], Dataset] = lambda pairs: pairs
    row_count: int = PAIRS
    frozen: str = "ref_model"
    reward: Callable[..., list[float]] | None = None
    load: Callable[[str], PreTrainedModel] = load_policy


WORKLOADS: Mapping[str, Workload] = {
    "DPO step, 32 pairs": Workload(trainer="DPO", at_least=1.9),
    "DPO step, 32 pairs, reference precomputed": Workload(
        trainer="DPO", settings={"precompute_ref_log_probs": True}, at_least=1.9
    ),
    "SimPO step, 32 pairs": Workload(trainer="CPO", settings=SIMPO, frozen="", at_least=1.6),
    "KTO step, 64 answers": Workload(
        trainer="KTO", rows=labelled_answers, row_count=2 * PAIRS, at_least=1.6
    ),
    "OnlineDPO step, 32 prompts": Workload(
        trainer="OnlineDPO", rows=prompts_alone, reward=lengths, at_least=1.8
    ),
    "SFT step, 4 rows packed to 512 tokens": Workload(
        bench="sft",
        trainer="SFT",
        rows=chosen_answers,
        row_count=4,
        settings={"packing": True, "max_length": 512},
        frozen="",
        at_least=2.0,
    ),
    "Distillation step, 32 prompts of 64 tokens": Workload(
        bench="distillation",
        trainer="Distillation",
        rows=prompts_alone,
        settings={"max_completion_length": 64},
        frozen="teacher_model",
        at_least=2.0,
    ),
    "Reward step, 32 pairs": Workload(
        bench="reward",
        trainer="Reward",
        frozen="",
        load=load_reward_model,
        at_least=1.3,
    ),
}


def bench_steps(bench: str) -> list[Measure]:
    """Measure a step of each of the `WORKLOADS` of a benchmark, then those of a larger model.

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
        if workload.bench == bench
    ]
    return [*pocket, *bench_large_steps(bench)]


def step_seconds(workload: Workload, side: Side) -> Sequence[float]:
    """Return the CPU seconds of each step after the first."""
    further: dict[str, object] = {}
    if workload.frozen:
        further[workload.frozen] = load_policy(MODEL)
    if workload.reward is not None:
        further["reward_funcs"] = workload.reward
    timer = Timer()
    with TemporaryDirectory() as folder:
        trainer = side.trainer(
            model=workload.load(MODEL),
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
