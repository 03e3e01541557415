"""Builds the pocket models from scratch: `python -m core.run.pocket`."""
# pyright: basic
# (strictly, every call into transformers and datasets is partially unknown)

import shutil
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from core.configs.sft import SFTConfig
from core.data.pocket_demonstrations import FALLIBLE, WORKED, pocket_demonstrations
from core.models.builds import BUILDS, SHIPPED
from core.models.folders import CHECKPOINTS
from core.models.load import load_policy, load_tokenizer
from core.models.pocket import POLICY, Size, new_model, train_tokenizer
from core.records.files import folder_files
from core.records.record import new_record, write_record
from core.samplers.policy import PolicySampler
from core.trainers.sft import SFTTrainer
from eval.json_lines import JsonObject
from eval.pocket.suites import SUITES, pocket_digest
from eval.samples.evaluation import Decoding, run_benchmark
from eval.sets.benchmarks import find_benchmark
from eval.stats.summary import Score, score
from eval.terminal import say

SEED = 17
PASS_AT, PASS_LIMIT = 16, 96
MAX_TOKENS = 96


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A round of training, from random weights or from the model of an earlier round.

    `build` seeds the mistakes of fallible solutions.
    """

    name: str
    begin: Size | str
    steps: int
    learning_rate: float
    styles: tuple[str, ...] = WORKED
    suites: tuple[str, ...] = tuple(SUITES)
    build: int = 0
    seed: int = SEED
    batch: int = 32


# Capability first, on right solutions, and then mistakes: the builds share the capability, and
# have mistakes and an order of the data of their own.
CAPABLE = (
    Recipe(name="pocket-base", begin=POLICY, steps=1500, learning_rate=2e-3),
    Recipe(name="capable", begin="pocket-base", steps=2600, learning_rate=2e-3, seed=SEED + 1),
)
FALLIBLE_BUILDS = tuple(
    Recipe(
        name=name,
        begin="capable",
        steps=600,
        learning_rate=8e-4,
        styles=FALLIBLE,
        build=build,
        seed=SEED + 2 + build,
    )
    for build, name in enumerate(BUILDS["pocket-instruct"])
)
# What the teacher alone learns further: remainders and fractions come last.
TEACHER = (
    Recipe(
        name="pocket-teacher",
        begin="capable",
        steps=1200,
        learning_rate=1.5e-3,
        suites=("pocket-math", "pocket-math", *SUITES),
        seed=SEED + 2,
    ),
    Recipe(
        name="pocket-teacher",
        begin="pocket-teacher",
        steps=2400,
        learning_rate=1.5e-3,
        suites=(
            "pocket-math",
            "pocket-gsm8k",
            "pocket-math",
            "pocket-gsm8k",
            "pocket-mgsm-zh",
            "pocket-cmath",
        ),
        seed=SEED + 13,
    ),
)
ROUNDS = (*CAPABLE, *FALLIBLE_BUILDS, *TEACHER)


def place_of(name: str, work: Path) -> Path:
    """Return the folder of a round's checkpoint: among the shipped ones, or in `work`."""
    return (CHECKPOINTS if name in SHIPPED else work) / name


def ship(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write a checkpoint in half precision, which is the precision that is scored."""
    shutil.rmtree(folder, ignore_errors=True)
    weights = {key: value.to(torch.bfloat16) for key, value in model.state_dict().items()}
    model.save_pretrained(folder, state_dict=weights)
    tokenizer.save_pretrained(folder)


def config_of(recipe: Recipe, work: Path) -> SFTConfig:
    """Return the settings of a round."""
    return SFTConfig(
        output_dir=str(work / f"{recipe.name}-steps"),
        max_steps=recipe.steps,
        learning_rate=recipe.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=50,
        per_device_train_batch_size=recipe.batch,
        train_sampling_strategy="group_by_length",
        weight_decay=0.01,
        adam_beta2=0.98,
        seed=recipe.seed,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        logging_steps=25,
        save_strategy="no",
        report_to="none",
    )


def build(recipe: Recipe, work: Path) -> None:
    """Train and ship one model."""
    torch.set_num_threads(1)
    rows = pocket_demonstrations(recipe.suites, recipe.styles, recipe.build)
    data = Dataset.from_list(rows)
    if isinstance(recipe.begin, Size):
        tokenizer = new_tokenizer(data)
        model = new_model(recipe.begin, tokenizer, SEED)
    else:
        begin = str(place_of(recipe.begin, work))
        tokenizer, model = load_tokenizer(begin), load_policy(begin)
    trainer = SFTTrainer(
        model=model,
        args=config_of(recipe, work),
        train_dataset=data,
        processing_class=tokenizer,
    )
    trainer.train()
    ship(trainer.policy(), tokenizer, place_of(recipe.name, work))


def new_tokenizer(data: Iterable[Any]) -> PreTrainedTokenizerFast:
    """Return a tokenizer trained on the demonstrations."""
    return train_tokenizer(
        turn["content"] for row in data for turn in (*row["prompt"], *row["completion"])
    )


def scores(name: str) -> list[JsonObject]:
    """Return greedy accuracy on every suite, and Pass@16 on the first problems of each."""
    torch.set_num_threads(1)
    sampler = PolicySampler(load_policy(name).eval(), load_tokenizer(name))
    sampling = Decoding(samples=PASS_AT, temperature=1.0, max_tokens=MAX_TOKENS, seed=SEED)
    rows: list[Score] = []
    for suite in SUITES:
        benchmark = find_benchmark(suite)
        greedy = run_benchmark(sampler, benchmark, decoding=Decoding(max_tokens=MAX_TOKENS))
        many = run_benchmark(sampler, benchmark, limit=PASS_LIMIT, decoding=sampling)
        rows += score(greedy, benchmark) + score(many, benchmark, (f"pass@{PASS_AT}",))
    return [asdict(row) for row in rows]


def write_record_of(scores_by_model: Iterable[list[JsonObject]]) -> None:
    """Write the record of the pocket world: the shipped files and their scores."""
    models: dict[str, JsonObject] = {
        name: {"files": folder_files(CHECKPOINTS / name), "scores": rows}
        for name, rows in zip(SHIPPED, scores_by_model, strict=True)
    }
    for name, model in models.items():
        for row in model["scores"]:
            interval = f"[{row['low']:.1f}, {row['high']:.1f}]"
            say(f"{name}: {row['benchmark']} {row['metric']} {row['value']:.1f} % {interval}")
    write_record(
        new_record(
            "pocket",
            paper="pocket",
            scale="cpu",
            seed=SEED,
            recipes=[asdict(recipe) for recipe in ROUNDS],
            data=pocket_digest(),
            models=models,
        )
    )


def build_rounds(rounds: Sequence[Recipe]) -> None:
    """Train rounds that build on one another."""
    for recipe in rounds:
        build(recipe, Path("runs/pocket"))


def main() -> None:
    """Build the shared rounds, then all other rounds in parallel, and score the shipped models."""
    if not (CHECKPOINTS.parents[2] / "pyproject.toml").is_file():
        sys.exit(
            f"{CHECKPOINTS} is installed: build the pocket models in a checkout, `make pocket`"
        )
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        pool.submit(build_rounds, CAPABLE).result()
        list(pool.map(build_rounds, (FALLIBLE_BUILDS, TEACHER)))
        write_record_of(pool.map(scores, SHIPPED))


if __name__ == "__main__":
    main()
