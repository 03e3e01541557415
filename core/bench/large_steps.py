"""A step of a Llama with 20M parameters and 32k tokens: seconds and memory, by trainer."""
# pyright: basic
# (strictly, every call into trl and transformers is partially unknown)

import sys
from collections.abc import Callable, Mapping
from functools import cache
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from datasets import Dataset
from transformers import PrinterCallback, Trainer

from core.bench.large import VOCABULARY, in_process, print_measurements, random_llama
from core.bench.measure import Measure, MeasureFields, peak_memory, several_in_turn
from core.bench.step import QUIET, Timer
from core.bench.trainers import OURS, SIMPO, trl_side
from core.bench.words import vocabulary_words, word_prompts, word_tokenizer

ROUNDS = 3  # processes of each side, in turn
STEPS = 2  # of each; the first one warms up
PAIRS, PROMPT, SHORTEST, LONGEST = 8, 128, 32, 256  # pairs of a step, and lengths in tokens
SEED = 7  # of the answers
PREFERENCE = "preference"  # a benchmark
CLAIMED = "claims"  # of workloads that claims alone ask for


def word_pairs(count: int) -> Dataset:
    """Return pairs of random answers of `SHORTEST` to `LONGEST` tokens, the same on every call."""
    draw, words = Random(SEED), vocabulary_words(VOCABULARY)

    def answers() -> list[str]:
        lengths = [draw.randint(SHORTEST, LONGEST - 1) for _ in range(count)]  # an end is added
        return ["".join(f" {word}" for word in draw.choices(words, k=n)) for n in lengths]

    prompts = word_prompts(count, PROMPT, VOCABULARY)
    return Dataset.from_dict({"prompt": prompts, "chosen": answers(), "rejected": answers()})


def chosen_answers(pairs: Dataset) -> Dataset:
    """Return the prompts of pairs with their chosen answers."""
    return pairs.select_columns(["prompt", "chosen"]).rename_column("chosen", "completion")


def word_solutions(count: int) -> Dataset:
    """Return the prompts of `word_pairs` with their chosen answers."""
    return chosen_answers(word_pairs(count))


def word_conversations(count: int) -> Dataset:
    """Return the prompts and solutions of `word_solutions` as conversations."""
    rows = word_solutions(count).to_list()
    return Dataset.from_list(
        [
            {
                "messages": [
                    {"role": "user", "content": row["prompt"]},
                    {"role": "assistant", "content": row["completion"]},
                ]
            }
            for row in rows
        ]
    )


class LargeWorkload(NamedTuple):
    """A trainer with its settings, and the ratios of CPU seconds and peak memory to be met.

    `rows` makes a data set of a given number of rows. `frozen` is the argument that takes a frozen
    model beside the policy, empty for none.
    """

    trainer: str
    settings: Mapping[str, object]
    seconds: float
    memory: float
    bench: str = PREFERENCE
    rows: Callable[[int], Dataset] = word_pairs
    frozen: str = ""


WORKLOADS: Mapping[str, LargeWorkload] = {
    "DPO": LargeWorkload("DPO", {}, seconds=3.5, memory=1 / 0.4, frozen="ref_model"),
    "SimPO": LargeWorkload("CPO", SIMPO, seconds=2.5, memory=1 / 0.6),
    "CPO": LargeWorkload("CPO", {}, seconds=2.5, memory=1 / 0.6, bench=CLAIMED),
    "SFT": LargeWorkload("SFT", {}, seconds=1.3, memory=1 / 0.8, bench="sft", rows=word_solutions),
    "GKD": LargeWorkload(
        "GKD",
        {"lmbda": 0.0},
        seconds=1.5,
        memory=1 / 0.4,
        bench="distillation",
        rows=word_conversations,
        frozen="teacher_model",
    ),
}


def bench_large_steps(bench: str) -> list[Measure]:
    """Measure each side of each workload of a benchmark in its own processes, in turn.

    Memory is the peak of the whole process, with a frozen model if there is one.
    """
    measures: list[Measure] = []
    chosen = {name: workload for name, workload in WORKLOADS.items() if workload.bench == bench}
    for name, workload in chosen.items():
        rows: dict[str, MeasureFields] = {
            "seconds": {"name": f"{name} step, 20M", "unit": "CPU s", "at_least": workload.seconds},
            "peak": {"name": f"{name} process, 20M", "unit": "GB", "at_least": workload.memory},
        }
        measures += several_in_turn(
            lambda name=name: in_process(__name__, name, "ours"),
            lambda name=name: in_process(__name__, name, "theirs"),
            ROUNDS,
            rows,
            peer="TRL",
        )
    return measures


def cost(name: str, what: str, *, seed: int) -> float:
    """Return the time or the memory of a step of one of our trainers, for claims to compare.

    Args:
        name: Name of the workload.
        what: "seconds" of processor time, or "peak" for the memory of the process in GB.
        seed: Number of the measurement; each is of the same step, in a process of its own.
    """
    return costs(name, seed)[what]


@cache
def costs(name: str, number: int) -> dict[str, float]:  # noqa: ARG001 - a measurement for each
    """Measure the seconds and the peak memory of a step of one of our trainers."""
    return in_process(__name__, name, "ours")


def main(name: str, side: str) -> None:
    """Train two steps on one side; print CPU seconds of the second and peak memory as JSON."""
    torch.set_num_threads(1)
    timer = Timer()
    with TemporaryDirectory() as folder:
        trainer = build(WORKLOADS[name], side, folder)
        trainer.add_callback(timer)
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    print_measurements(seconds=timer.seconds[-1], peak=peak_memory())


def build(workload: LargeWorkload, side: str, folder: str) -> Trainer:
    """Return a trainer, ours or TRL's, with random weights and random words."""
    trainer, config = OURS[workload.trainer] if side == "ours" else trl_side(workload.trainer)
    frozen = {workload.frozen: random_llama()} if workload.frozen else {}
    return trainer(
        model=random_llama(),
        args=config(
            output_dir=folder,
            max_steps=STEPS,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            per_device_train_batch_size=PAIRS,
            **QUIET,
            **workload.settings,
        ),
        train_dataset=workload.rows(PAIRS * STEPS),
        processing_class=word_tokenizer(VOCABULARY),
        **frozen,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
