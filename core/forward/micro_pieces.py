"""Division of a micro-batch into pieces that go forward and backward one after the other."""

from collections.abc import Sequence

from torch import Tensor

from core.forward.batches import Batch, trained_mask
from core.forward.packing import unpad

TOKENS = {"cpu": 1024}  # of a piece: its activations stay in a processor's cache
MANY_TOKENS = 2**14  # of a piece on other devices, enough to fill them
FEW_TOKENS = 2**11  # of rows without gradient that get no forward pass of their own there


def pieces(
    batch: Batch, learns: Tensor, *, uncut: bool = False
) -> tuple[list[list[int]], list[list[int]]]:
    """Divide the rows of a micro-batch into pieces with gradient, at least one, and without.

    Completions of one prompt stay together as far as the tokens of a piece allow. With `uncut`, all
    rows are one piece with gradient. On a GPU a few rows without gradient join the others, as a
    forward pass of their own would wait for the processor.

    Returns:
        The row indices of each piece with gradient, and of each piece without.
    """
    if uncut:
        return [list(range(len(learns)))], []
    prompts = [tuple(row) for row in unpad(batch["prompt_ids"], batch["prompt_mask"])]
    first = {prompt: row for row, prompt in reversed(list(enumerate(prompts)))}
    order = sorted(range(len(prompts)), key=lambda row: first[prompts[row]])
    lengths = batch["completion_mask"].sum(1).tolist()
    kind = batch["completion_ids"].device.type
    budget, few = TOKENS.get(kind, MANY_TOKENS), 0 if kind in TOKENS else FEW_TOKENS
    is_chosen = learns.tolist()
    chosen, left_out = [i for i in order if is_chosen[i]], [i for i in order if not is_chosen[i]]
    if not chosen or sum(len(prompts[i]) + lengths[i] for i in left_out) <= few:
        chosen, left_out = order, []

    with_gradient, without = (fill_pieces(r, prompts, lengths, budget) for r in (chosen, left_out))
    return with_gradient, without


def fill_pieces(
    rows: Sequence[int], prompts: Sequence[tuple[int, ...]], lengths: Sequence[int], budget: int
) -> list[list[int]]:
    """Fill pieces with rows up to a budget of tokens, counting each prompt once per piece.

    Args:
        rows: Row indices, those of equal prompts one after the other.
        prompts: The prompt of each row.
        lengths: The number of tokens of each completion.
        budget: The largest number of tokens of a piece that has more than one row.
    """
    parts: list[list[int]] = []
    size = budget
    for before, row in zip([None, *rows], rows, strict=False):
        new = before is None or prompts[before] != prompts[row]
        added = lengths[row] + (len(prompts[row]) if new else 0)
        if size + added > budget:
            parts.append([])
            size, added = 0, lengths[row] + len(prompts[row])
        parts[-1].append(row)
        size += added
    return parts


def with_counts(batch: Batch) -> Batch:
    """Add the numbers that all pieces of a micro-batch divide by: `rows`, `tokens` and `kept`.

    `rows` is its completions unless the batch already has it, `tokens` its trained tokens, and
    `kept` those selected by entropy, if some are left out.
    """
    rows = batch["completion_ids"].new_tensor(len(batch["completion_ids"]))
    extended = {"rows": rows, **batch, "tokens": trained_mask(batch).sum()}
    return {**extended, "kept": kept_mask(batch).sum()} if "kept_tokens" in batch else extended


def kept_mask(batch: Batch) -> Tensor:
    """Return a mask (B, T) of the trained tokens that are selected by their entropy."""
    return trained_mask(batch) * batch["kept_tokens"]


def take(batch: Batch, rows: Sequence[int] | Tensor) -> Batch:
    """Return the given rows of a batch; scalars are kept unchanged."""
    return {key: tensor[rows] if tensor.dim() else tensor for key, tensor in batch.items()}
