"""A GRPO step of a Llama with 20M parameters and 32k tokens: seconds and memory, ours and TRL's."""
# pyright: basic
# (strictly, every call into trl and transformers is partially unknown)

import json
import os
import subprocess
import sys
from tempfile import TemporaryDirectory

import torch
from datasets import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, PrinterCallback, Trainer

from core.bench.measure import Measure, MeasureFields, peak_memory, several_in_turn
from core.bench.step import QUIET, ConfigClass, Timer, TrainerClass, peer, spread
from core.bench.words import word_prompts, word_tokenizer
from core.configs.grpo import GRPOConfig
from core.spread.pool import PYTHON
from core.trainers.grpo import GRPOTrainer

PAIRS = 5  # processes of each side, in turn
STEPS = 2  # of each; the first one warms up
VOCABULARY, PROMPT, PROMPTS, GROUP, LONGEST = 32_000, 64, 4, 8, 256
ENDS = VOCABULARY // 100  # tokens that end a completion: one in a hundred, so lengths spread


def bench_large() -> list[Measure]:
    """Measure each side in its own processes, in turn, with 32 completions a step and beta 0.

    Memory is the peak of the whole process, and the part of it added after the trainer was built.

    Raises:
        BadValue: TRL is not installed.
    """
    peer()
    rows: dict[str, MeasureFields] = {
        "seconds": {"name": "GRPO step, 20M", "unit": "CPU s", "at_least": 2.5},
        "peak": {"name": "process", "unit": "GB", "at_least": 2.0},
        "added": {"name": "step", "unit": "GB"},
    }
    return several_in_turn(
        lambda: in_process(__name__, "ours"),
        lambda: in_process(__name__, "theirs"),
        PAIRS,
        rows,
        peer="TRL",
    )


def in_process(module: str, *arguments: str) -> dict[str, float]:
    """Run a module of this folder in its own process and return the measurements it prints."""
    command = [*PYTHON, "-m", module, *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
    return json.loads(process.stdout.splitlines()[-1])


def main(side: str) -> None:
    """Train two steps on one side; print CPU seconds of the second and peak memory as JSON."""
    torch.set_num_threads(1)
    kind = (GRPOTrainer, GRPOConfig) if side == "ours" else (peer().GRPOTrainer, peer().GRPOConfig)
    timer = Timer()
    with TemporaryDirectory() as folder:
        trainer = build(*kind, folder)
        trainer.add_callback(timer)
        trainer.remove_callback(PrinterCallback)
        before = peak_memory()
        trainer.train()
    peak = peak_memory()
    print_measurements(seconds=timer.seconds[-1], peak=peak, added=peak - before)


def print_measurements(**measurements: float) -> None:
    """Print measurements as JSON on one line, which `in_process` reads."""
    print(json.dumps(measurements))


def build(trainer_class: TrainerClass, config_class: ConfigClass, folder: str) -> Trainer:
    """Return a trainer, ours or TRL's, with random weights and random prompts."""
    model = random_llama()
    model.generation_config.eos_token_id = list(range(1, 1 + ENDS))
    return trainer_class(
        model=model,
        reward_funcs=spread,
        args=config_class(
            output_dir=folder,
            max_steps=STEPS,
            use_cpu=True,
            bf16=False,
            activation_checkpointing=False,
            per_device_train_batch_size=PROMPTS * GROUP,
            num_generations=GROUP,
            max_completion_length=LONGEST,
            **QUIET,
        ),
        train_dataset=Dataset.from_dict(
            {"prompt": word_prompts(PROMPTS * STEPS, PROMPT, VOCABULARY)}
        ),
        processing_class=word_tokenizer(VOCABULARY),
    )


def random_llama() -> LlamaForCausalLM:
    """Return a Llama of 20M parameters with the same random weights on every call."""
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=320,
            intermediate_size=864,
            num_hidden_layers=8,
            num_attention_heads=5,
            num_key_value_heads=5,
            max_position_embeddings=512,
            tie_word_embeddings=True,
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
