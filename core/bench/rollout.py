"""CPU seconds of a rollout: our engine and `generate`, which TRL's transformers engine calls."""
# pyright: basic
# (strictly, every call into transformers is partially unknown)

from collections.abc import Sequence
from itertools import count
from typing import Any

import torch

from core.bench.measure import Measure, cpu_seconds, in_turn
from core.bounded_templates import Tokenizer
from core.collect.generation import tokenize_prompts
from core.data.load import load_training_data
from core.models.load import load_policy, load_tokenizer
from core.rollout.cached import left_pad
from core.rollout.engine import Sampling
from core.rollout.hf.loops import generation_config
from core.rollout.native.native import NativeEngine

MODEL, DATA, PROMPTS, GROUPS, MAX_TOKENS = "pocket-instruct", "pocket", 16, (1, 8, 64), 64
ROUNDS = 5


def bench_rollout() -> list[Measure]:
    """Measure completions of up to 64 tokens for 16 prompts, at each group size.

    Torch is limited to one thread from then on.
    """
    torch.set_num_threads(1)
    model: Any = load_policy(MODEL).eval()  # Any: its methods are half typed
    tokenizer: Tokenizer = load_tokenizer(MODEL)
    rows = load_training_data(DATA).select(range(PROMPTS))
    distinct = tokenize_prompts(tokenizer, rows["prompt"], {})
    sampling = Sampling(max_tokens=MAX_TOKENS, ends=frozenset({tokenizer.eos_token_id}))
    seeds = count()
    measures: list[Measure] = []
    for group in GROUPS:
        prompts = [prompt for prompt in distinct for _ in range(group)]

        def ours(prompts: Sequence[list[int]] = prompts) -> None:
            draw_seeds = [next(seeds) for _ in prompts]
            list(NativeEngine(model).sample(prompts, sampling, draw_seeds))

        def theirs(prompts: Sequence[list[int]] = prompts) -> None:
            ids, mask = left_pad(prompts, model.device, tokenizer.pad_token_id)
            config = generation_config(sampling, tokenizer.pad_token_id)
            model.generate(input_ids=ids, attention_mask=mask, generation_config=config)

        ours()  # the first of each warms up
        theirs()
        measure = in_turn(
            lambda: cpu_seconds(ours),
            lambda: cpu_seconds(theirs),
            ROUNDS,
            name=f"rollout, {PROMPTS} prompts x {group}",
            unit="CPU s",
            peer="transformers.generate",
            at_least=3.0,
        )
        measures.append(measure)
    return measures
