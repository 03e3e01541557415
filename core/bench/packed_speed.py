"""Tokens a second of fine-tuning on packed and on padded rows, for claims to compare."""

from itertools import pairwise
from math import log
from random import Random

import torch

from core.bench.step import Timer, train_on
from core.configs.sft import SFTConfig
from core.laws.packed_rows import PADDED
from core.models.load import load_policy, load_tokenizer
from core.trainers.sft import SFTTrainer

MODEL = "pocket-instruct"
WIDTH, STEPS = 512, 4  # tokens of a row at most, and steps; the first one warms up
MEDIAN, SIGMA = 60, 1.0  # of the log-normal lengths of documents, in tokens
DOCUMENTS = 400


def tokens_per_second(packing: str, rows: int, *, seed: int) -> float:
    """Return the trained tokens a second of processor time, padding not counted.

    Torch is limited to one thread from then on.

    Args:
        packing: A strategy of packing, or `PADDED` for one document a row, padded to the longest
            row of a step.
        rows: Rows of a step.
        seed: Of the lengths and tokens of the documents.
    """
    torch.set_num_threads(1)
    tokenizer, timer = load_tokenizer(MODEL), Timer()
    draw = Random(seed)
    sizes = [
        min(WIDTH, 1 + round(draw.lognormvariate(log(MEDIAN), SIGMA))) for _ in range(DOCUMENTS)
    ]
    documents = [draw.choices(range(len(tokenizer)), k=size) for size in sizes]
    packed = {} if packing == PADDED else {"packing": True, "packing_strategy": packing}
    trainer = train_on(
        SFTTrainer,
        SFTConfig,
        timer,
        rows={"input_ids": documents},
        settings={
            "max_steps": STEPS,
            "max_length": WIDTH,
            "per_device_train_batch_size": rows,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            **packed,
        },
        model=load_policy(MODEL),
        processing_class=tokenizer,
    )
    counts = [row["num_tokens"] for row in trainer.state.log_history if "num_tokens" in row]
    return sum(b - a for a, b in pairwise(counts[:STEPS])) / sum(timer.seconds[1:])
