"""Masks of the tokens of a conversation that the assistant wrote."""

import re
from collections.abc import Sequence

from transformers.utils import logging

from core.bounded_templates import Tokenizer
from core.data.assistant_turns import Pieces, assistant_pieces
from core.data.conversations import Row, render_messages
from eval.errors import BadValue

GENERATION = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")
logger = logging.get_logger(__name__)


def assistant_tokens(
    tokenizer: Tokenizer, messages: Sequence[Row], keywords: Row
) -> tuple[list[int], list[bool]]:
    """Return the token ids of a conversation, and a mask of the assistant's tokens.

    The mask follows the `{% generation %}` blocks of the chat template; without any, see
    `assistant_pieces`.

    Raises:
        BadValue: the assistant's tokens cannot be found in the template's text, or there are
            none.
    """
    if not tokenizer.is_fast:
        raise BadValue("assistant_only_loss=True needs a fast tokenizer: this one knows no offsets")
    if GENERATION.search(tokenizer.get_chat_template(tools=keywords.get("tools"))):
        encoded = render_messages(
            tokenizer, messages, return_dict=True, return_assistant_tokens_mask=True, **keywords
        )
        ids, mask = encoded["input_ids"], [bool(bit) for bit in encoded["assistant_masks"]]
        warn_of_no_end(tokenizer, ids, mask)
    else:
        ids, mask = tokenize_pieces(tokenizer, assistant_pieces(tokenizer, messages, keywords))
    if not any(mask):
        raise BadValue(
            "assistant_only_loss=True, but a conversation has no tokens of an assistant: found "
            f"turns of {', '.join(str(message['role']) for message in messages)}"
        )
    return ids, mask


def tokenize_pieces(tokenizer: Tokenizer, pieces: Pieces) -> tuple[list[int], list[bool]]:
    """Tokenize consecutive texts; return ids and a mask of those in the assistant's texts."""
    spans: list[tuple[int, int]] = []
    end = 0
    for text, written in pieces:
        spans += [(end, end + len(text))] if written else []
        end += len(text)
    full_text = "".join(text for text, _ in pieces)
    encoded = tokenizer(full_text, add_special_tokens=False, return_offsets_mapping=True)
    mask = [
        any(start < stop and end > begin for begin, stop in spans)
        for start, end in encoded["offset_mapping"]
    ]
    return encoded["input_ids"], mask


def warn_of_no_end(tokenizer: Tokenizer, ids: Sequence[int], mask: Sequence[bool]) -> None:
    """Warn if the mask keeps an assistant message but not the token that ends it."""
    added = set(tokenizer.get_added_vocab().values())
    for index, following in enumerate(ids[1:]):
        if mask[index] and not mask[index + 1] and following in added:
            visible = (
                token for token in reversed(ids[: index + 1]) if tokenizer.decode(token).strip()
            )
            if next(visible, following) not in added:
                logger.warning_once(
                    "the chat template's generation blocks leave out the token that ends the "
                    "assistant's turn: the model does not learn to stop; put it into the blocks"
                )
