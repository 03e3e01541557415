"""Laws of packing: what 10,000 documents become in rows, and the loss of documents in one row."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import ceil, log
from random import Random

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from core.data.best_fit import LENGTHS, STRATEGIES, best_fit
from core.data.collate import DataCollatorForLanguageModeling
from core.data.sft import IGNORED
from core.forward.labelled import labelled_logps
from core.losses.supervised import SUPERVISED
from eval.nano.ledgers import Ledgers, rest

DOCUMENTS, MEDIAN = 10_000, 30  # number of documents, and their median length in tokens
# Standard deviation of the logarithm of the lengths, and the width of a row.
CASES = ((0.5, 128), (1.0, 128), (1.0, 256), (1.5, 128), (1.5, 512))
MAP = 1000  # documents that are packed together
LEDGERS, WIDTH = range(20, 24), 64  # seeds of documents of the world `ledgers`, and its rows
PADDED = "padded"  # one document a row, truncated and padded
ROWS = ((5, 3, 8), (1, 12), (7, 7))  # lengths of the documents in each packed row


@dataclass(frozen=True)
class Packed:
    """Counts of rows, tokens and documents after packing.

    Attributes:
        rows: rows.
        tokens: tokens in them, up to the width of each row.
        changed: tokens that were lost, and tokens that are in the rows too often.
        cut: documents with tokens in several rows.
    """

    rows: int
    tokens: int
    changed: int
    cut: int


@cache
def lengths(sigma: float) -> tuple[int, ...]:
    """Return log-normal lengths of documents, in tokens."""
    draw = Random(0)
    return tuple(max(1, round(draw.lognormvariate(log(MEDIAN), sigma))) for _ in range(DOCUMENTS))


@cache
def packed(strategy: str, sigma: float, width: int, together: int = DOCUMENTS) -> Packed:
    """Pack documents of log-normal lengths, see `pack`."""
    return pack(lengths(sigma), strategy, width, together)


def pack(sizes: Sequence[int], strategy: str, width: int, together: int) -> Packed:
    """Pack documents whose tokens are the document's number, `together` of them at a time."""
    documents = [[number] * length for number, length in enumerate(sizes)]
    rows: list[list[int]] = []
    for start in range(0, len(documents), together):
        part = documents[start : start + together]
        if strategy == PADDED:
            rows += [tokens[:width] for tokens in part]
        else:
            rows += STRATEGIES[strategy]({"input_ids": part, "labels": part}, width)["input_ids"]
    tokens = Counter(chain.from_iterable(row[:width] for row in rows))
    rows_of = Counter(chain.from_iterable(map(set, rows)))
    return Packed(
        rows=len(rows),
        tokens=tokens.total(),
        changed=sum(abs(tokens[n] - length) for n, length in enumerate(sizes)),
        cut=sum(count > 1 for count in rows_of.values()),
    )


def cut_documents(strategy: str) -> list[int]:
    """Return the number of documents that lie in more than one row, for each of `CASES`."""
    return [packed(strategy, *case).cut for case in CASES]


def cut_ledgers(strategy: str) -> list[float]:
    """Return the share of documents of the world `ledgers` in several rows, for some seeds."""
    shares: list[float] = []
    for seed in LEDGERS:
        random = Random(seed)
        questions = [Ledgers().question(random) for _ in range(MAP)]
        sizes = [len(text + rest(text, seed, random)) + 1 for text in questions]  # and the end
        shares.append(pack(sizes, strategy, WIDTH, MAP).cut / MAP)
    return shares


def long_documents() -> list[int]:
    """Return the number of documents longer than a row, for each of `CASES`."""
    return [sum(length > width for length in lengths(sigma)) for sigma, width in CASES]


def changed_tokens(strategy: str) -> list[int]:
    """Return the number of tokens that packing loses or doubles, for each of `CASES`."""
    return [packed(strategy, *case).changed for case in CASES]


def row_excess(strategy: str) -> list[float]:
    """Return rows / ceil(tokens / width) - 1, for each of `CASES`, whole and in maps of `MAP`."""
    return [
        packed(strategy, sigma, width, together).rows / ceil(sum(lengths(sigma)) / width) - 1
        for sigma, width in CASES
        for together in (DOCUMENTS, MAP)
    ]


def utilisation(strategy: str) -> list[float]:
    """Return the share of tokens in rows that are no padding, for each of `CASES`."""
    counts = [(packed(strategy, *case), case[1]) for case in CASES]
    return [count.tokens / (count.rows * width) for count, width in counts]


def rows_by_order(decreasing: bool) -> list[int]:
    """Return the rows that best fit needs for the pieces of documents, for each of `CASES`.

    Args:
        decreasing: whether the longest pieces come first; otherwise they keep their order.
    """
    counts: list[int] = []
    for sigma, width in CASES:
        pieces = [
            min(width, length - start)
            for length in lengths(sigma)
            for start in range(0, length, width)
        ]
        counts.append(len(best_fit(pieces, width, decreasing=decreasing)))
    return counts


def loss_changes(*, isolated: bool) -> list[float]:
    """Return |summed loss of a packed row - summed loss of its documents alone|, for each row.

    Args:
        isolated: whether the row has the lengths of its documents, so that positions restart and
            documents do not attend to each other. Otherwise it is one sequence.
    """
    model = small_model()
    return [_loss_change(model, row, isolated=isolated) for row in ROWS]


def small_model() -> LlamaForCausalLM:
    """Return a random Llama of two layers, far from uniform, that computes in 64 bits."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=32,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            initializer_range=0.3,
        )
        model = LlamaForCausalLM(config)
    for name, module in [*model.named_modules()]:
        if isinstance(module, LlamaRMSNorm):  # which computes in 32 bits
            model.set_submodule(name, nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps))
    return model.double().eval()


def _loss_change(model: LlamaForCausalLM, row: Sequence[int], *, isolated: bool) -> float:
    draw = Random(sum(row))
    documents = [[draw.randrange(1, 32) for _ in range(length)] for length in row]
    alone = sum(summed_loss(model, [{"input_ids": ids}]) for ids in documents)
    # the first token of a document is predicted from nothing
    labels = [label for ids in documents for label in (IGNORED, *ids[1:])]
    together = {"input_ids": [*chain.from_iterable(documents)], "labels": labels}
    lengths_of_row = {LENGTHS: list(row)} if isolated else {}
    return abs(summed_loss(model, [together | lengths_of_row]) - float(alone))


@torch.no_grad()
def summed_loss(model: LlamaForCausalLM, rows: Sequence[dict[str, list[int]]]) -> float:
    """Return the summed negative log-likelihood of a batch of rows, collated as in training."""
    batch: dict[str, Tensor] = DataCollatorForLanguageModeling(pad_token_id=0)(rows)
    labels = batch.pop("labels")
    logps = labelled_logps(model, batch, labels, with_logits=False).logps
    return float(SUPERVISED["nll"].loss(logps).sum())
