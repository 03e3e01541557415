"""Masks of the tokens of a conversation that the assistant wrote."""

import re
from collections.abc import Sequence

from transformers.utils import logging

from core.data.assistant_turns import Pieces, assistant_pieces
from core.data.conversations import Row, Tokenizer, templated
from eval.errors import BadValue

GENERATION = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")
logger = logging.get_logger(__name__)


def assistant_tokens(
    tokenizer: Tokenizer, messages: Sequence[Row], keywords: Row
) -> tuple[list[int], list[bool]]:
    """Token ids of a conversation, and which of them its assistant wrote.

    A chat template may say so with `{% generation %}` blocks; of another see `assistant_pieces`.

    Raises:
        BadValue: the template does not tell, or nothing is the assistant's.
    """
    if not tokenizer.is_fast:
        raise BadValue("assistant_only_loss=True needs a fast tokenizer: this one knows no offsets")
    if GENERATION.search(tokenizer.get_chat_template(tools=keywords.get("tools"))):
        found = templated(
            tokenizer, messages, return_dict=True, return_assistant_tokens_mask=True, **keywords
        )
        ids, kept = found["input_ids"], [bool(keep) for keep in found["assistant_masks"]]
        warn_of_no_end(tokenizer, ids, kept)
    else:
        ids, kept = of_pieces(tokenizer, assistant_pieces(tokenizer, messages, keywords))
    if not any(kept):
        raise BadValue(
            "assistant_only_loss=True, but a conversation has no tokens of an assistant: found "
            f"turns of {', '.join(str(turn['role']) for turn in messages)}"
        )
    return ids, kept


def of_pieces(tokenizer: Tokenizer, pieces: Pieces) -> tuple[list[int], list[bool]]:
    """Token ids of texts that follow each other, and which of them reach into the assistant's."""
    spans: list[tuple[int, int]] = []
    end = 0
    for text, written in pieces:
        spans += [(end, end + len(text))] if written else []
        end += len(text)
    whole = "".join(text for text, _ in pieces)
    found = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
    kept = [
        any(start < stop and end > begin for begin, stop in spans)
        for start, end in found["offset_mapping"]
    ]
    return found["input_ids"], kept


def warn_of_no_end(tokenizer: Tokenizer, ids: Sequence[int], kept: Sequence[bool]) -> None:
    """Say so where a turn's last word is kept and the token of the template that ends it is not."""
    added = set(tokenizer.get_added_vocab().values())
    for at, following in enumerate(ids[1:]):
        if kept[at] and not kept[at + 1] and following in added:
            visible = (
                token for token in reversed(ids[: at + 1]) if tokenizer.decode(token).strip()
            )
            if next(visible, following) not in added:
                logger.warning_once(
                    "the chat template's generation blocks leave out the token that ends the "
                    "assistant's turn: the model does not learn to stop; put it into the blocks"
                )
