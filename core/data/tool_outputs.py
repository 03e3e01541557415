"""Labels of texts in which programs print, such as ToRA's trajectories (arXiv:2309.17452)."""

import re

from core.bounded_templates import Tokenizer
from core.data.conversations import Row
from eval.errors import BadValue
from eval.samples.transcripts import STOP

IGNORED = -100  # the label of a token that is not trained on
BLOCK = re.compile(rf"{STOP}\n.*?(?:```\n?|\Z)", re.DOTALL)


def without_outputs(row: Row, text: str, tokenizer: Tokenizer, *, special: bool) -> Row:
    """Return token ids and labels without the labels of what programs print in the text.

    A program prints what stands between the opening fence, which the model writes to call the
    program, and the end of the closing one. A token belongs to where it begins.

    Args:
        row: `input_ids` and `labels` of the text.
        text: prompt and answer.
        tokenizer: the tokenizer of the row.
        special: whether the tokenizer's own special tokens are in the row.

    Raises:
        BadValue: the tokenizer knows no offsets.
    """
    if not tokenizer.is_fast:
        raise BadValue("mask_tool_outputs=True needs a fast tokenizer: this one knows no offsets")
    spans = [(block.start() + len(STOP), block.end()) for block in BLOCK.finditer(text)]
    encoded = tokenizer(text, add_special_tokens=special, return_offsets_mapping=True)
    starts = [start for start, _ in encoded["offset_mapping"]]
    # Where prompt and answer meet, tokens may be cut otherwise here: count them from the end.
    count = len(row["input_ids"])
    starts = ([0] * count + starts)[-count:]
    labels = [
        IGNORED if any(begin <= start < end for begin, end in spans) else label
        for start, label in zip(starts, row["labels"], strict=True)
    ]
    return {**row, "labels": labels}
