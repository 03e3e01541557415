"""Tokens of texts in which programs print, such as ToRA's trajectories (arXiv:2309.17452)."""

import re

from core.bounded_templates import Tokenizer
from eval.errors import BadValue
from eval.samples.transcripts import STOP

BLOCK = re.compile(rf"{STOP}\n.*?(?:```\n?|\Z)", re.DOTALL)


def printed_tokens(text: str, tokenizer: Tokenizer, count: int, *, special: bool) -> list[bool]:
    """Return a mask of the tokens of a text that programs have printed.

    A program prints what stands between the opening fence, which the model writes to call the
    program, and the end of the closing one. A token belongs to where it begins.

    Args:
        text: Prompt and answer.
        tokenizer: The tokenizer of the text.
        count: Number of tokens. Where prompt and answer meet, tokens may be cut otherwise than in
            the text as a whole, so they are counted from the end.
        special: Whether the tokenizer's own special tokens are among them.

    Raises:
        BadValue: the tokenizer knows no offsets.
    """
    if not tokenizer.is_fast:
        raise BadValue("mask_tool_outputs=True needs a fast tokenizer: this one knows no offsets")
    spans = [(block.start() + len(STOP), block.end()) for block in BLOCK.finditer(text)]
    encoded = tokenizer(text, add_special_tokens=special, return_offsets_mapping=True)
    starts = [start for start, _ in encoded["offset_mapping"]]
    return [
        any(begin <= start < end for begin, end in spans)
        for start in ([0] * count + starts)[-count:]
    ]
