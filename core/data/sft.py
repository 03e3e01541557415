"""Conversion of fine-tuning rows to token ids and labels."""

from collections.abc import Callable, Sequence
from functools import partial

from transformers.utils import logging

from core.bounded_templates import Tokenizer
from core.data.assistant_tokens import assistant_tokens
from core.data.conversations import Row, chat, template_keywords
from core.data.tool_outputs import printed_tokens
from core.errors import MissingColumn
from eval.errors import BadValue

IGNORED = -100  # the label of a token that is not trained on
logger = logging.get_logger(__name__)


def row_encoder(
    columns: set[str],
    tokenizer: Tokenizer,
    *,
    text_field: str,
    completion_only: bool | None,
    assistant_only: bool,
    mask_outputs: bool,
) -> Callable[[Row], Row]:
    """Return a function that converts a row with these columns to `input_ids` and `labels`.

    Raises:
        BadValue: the rows have no completion or assistant message, but only those are trained
            on, or token ids, in which outputs of programs are to be masked.
        MissingColumn: no column can be trained on.
    """
    pairs = {"prompt", "completion"} <= columns
    check_losses(columns, completion_only=completion_only, assistant_only=assistant_only)
    if "input_ids" in columns:
        if mask_outputs and "labels" not in columns:
            raise BadValue(
                "mask_tool_outputs=True, but the dataset has token ids: give texts or "
                "conversations, or add a column 'labels' with -100 where programs print"
            )
        return partial(encode_ids, completion_only=completion_only is True)
    hidden = {"tokenizer": tokenizer, "mask_outputs": mask_outputs}
    options = {**hidden, "assistant_only": assistant_only}
    if pairs:
        return partial(encode_pair, completion_only=completion_only is not False, **options)
    if "messages" in columns:
        return partial(encode_turns, **options)
    if text_field in columns:
        return partial(encode_text, text_field=text_field, **hidden)
    expected = (text_field, "messages", "prompt")
    raise MissingColumn("the dataset", expected, columns, "one of them is needed")


def check_losses(columns: set[str], *, completion_only: bool | None, assistant_only: bool) -> None:
    """Check that rows have the columns that a loss over a part of their tokens needs.

    Raises:
        BadValue: `completion_only` without `prompt` and `completion`, `labels` or
            `completion_mask`; or `assistant_only` without `messages` or `prompt` and `completion`,
            or with `input_ids` that have no `labels`.
    """
    pairs = {"prompt", "completion"} <= columns
    if completion_only and not (pairs or columns & {"labels", "completion_mask"}):
        raise BadValue(
            "completion_only_loss=True, but the dataset has no column 'completion': leave it out, "
            "or give columns 'prompt' and 'completion'"
        )
    is_text = "labels" in columns or "input_ids" not in columns
    if assistant_only and not (is_text and (pairs or "messages" in columns)):
        raise BadValue(
            "assistant_only_loss=True, but the dataset has no conversations: leave it out, or "
            "give a column 'messages', or 'prompt' and 'completion' as messages"
        )


def encode_ids(row: Row, completion_only: bool) -> Row:
    """Return a row's token ids and labels.

    Without a column `labels`, the labels are the tokens that `assistant_masks` keeps and, if
    `completion_only`, `completion_mask` too; without masks, all tokens.

    Raises:
        BadValue: `attention_mask` has zeros, whose tokens would be trained on.
    """
    ids = list(row["input_ids"])
    if not all(row.get("attention_mask") or ()):
        raise BadValue(
            "the dataset has an 'attention_mask' with zeros: give rows of token ids without "
            "padding, the trainer pads them"
        )
    if "labels" in row:
        return {"input_ids": ids, "labels": list(row["labels"])}
    names = ("assistant_masks", "completion_mask") if completion_only else ("assistant_masks",)
    masks = [row[name] for name in names if name in row]
    mask = [all(bits) for bits in zip(*masks, strict=True)] if masks else [True] * len(ids)
    return with_labels(ids, mask)


def encode_pair(
    row: Row,
    tokenizer: Tokenizer,
    completion_only: bool,
    assistant_only: bool = False,
    mask_outputs: bool = False,
) -> Row:
    """Encode prompt and completion, as texts or conversations; see `join_ids`.

    With `completion_only`, labels begin where the tokens differ from those of the prompt alone.

    Raises:
        BadValue: `assistant_only` is set, but the prompt is a text.
    """
    prompt, full_text = pair_texts(row, tokenizer)
    plain = isinstance(row["prompt"], str)
    start = tokenizer(prompt, add_special_tokens=plain)["input_ids"]
    if not assistant_only:
        ids = join_ids(tokenizer, prompt, full_text, start, plain)
        mask = [True] * len(ids)
    elif plain:
        raise BadValue(f"assistant_only_loss=True, but {row['prompt']!r} is no conversation")
    else:
        messages = [*row["prompt"], *row["completion"]]
        ids, mask = assistant_tokens(tokenizer, messages, template_keywords(row))
    is_same = [prompt_token == token for prompt_token, token in zip(start, ids, strict=False)]
    prompt_length = [*is_same, False].index(False) if completion_only else 0
    encoded = with_labels(
        ids, [is_kept and index >= prompt_length for index, is_kept in enumerate(mask)]
    )
    return without_outputs(encoded, full_text, tokenizer, plain) if mask_outputs else encoded


def join_ids(
    tokenizer: Tokenizer, prompt: str, full_text: str, start: Sequence[int], plain: bool
) -> list[int]:
    """Return the token ids of a text that begins with a prompt whose ids are `start`.

    Like TRL, it tokenizes the whole text. If a token would span prompt and completion, TRL trains
    on a prompt that generation never reads; here the completion's tokens are then appended to the
    prompt's, provided that they decode to the same text (some tokenizers put a space before a
    text).
    """
    ids = list(tokenizer(full_text, add_special_tokens=plain)["input_ids"])
    if ids[: len(start)] == start:
        return ids
    spell = partial(tokenizer.decode, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    if full_text.startswith(prompt):
        completion_ids = tokenizer(full_text.removeprefix(prompt), add_special_tokens=False)[
            "input_ids"
        ]
        if spell([*start, *completion_ids]) == spell(ids):
            return [*start, *completion_ids]
    logger.warning_once(
        "tokens of prompts change when their completions follow: the model is trained on prompts "
        "that generation does not read; end prompts where a token ends, or change the template"
    )
    return ids


def pair_texts(row: Row, tokenizer: Tokenizer) -> tuple[str, str]:
    """Return the prompt as generation reads it, and the text of prompt and completion.

    Raises:
        BadValue: one is a text and the other a conversation, or the completion is neither.
    """
    prompt, completion = row["prompt"], row["completion"]
    if isinstance(prompt, str):
        return prompt, prompt + with_end_token(completion, tokenizer)
    if not (isinstance(prompt, list) and isinstance(completion, list)):
        raise BadValue(
            f"{completion!r} completes {prompt!r} in the dataset: expected two texts or two lists "
            "of messages"
        )
    keywords = template_keywords(row)
    return (
        chat(tokenizer, prompt, keywords, prompt=True),
        chat(tokenizer, [*prompt, *completion], keywords),
    )


def encode_text(row: Row, text_field: str, tokenizer: Tokenizer, mask_outputs: bool = False) -> Row:
    """Encode a text and its end token; all tokens are labels."""
    text = with_end_token(row[text_field], tokenizer)
    ids = tokenizer(text)["input_ids"]
    encoded = {"input_ids": ids, "labels": list(ids)}
    return without_outputs(encoded, text, tokenizer, special=True) if mask_outputs else encoded


def encode_turns(
    row: Row, tokenizer: Tokenizer, assistant_only: bool = False, mask_outputs: bool = False
) -> Row:
    """Encode a conversation; labels are all tokens, or the assistant's only."""
    keywords = template_keywords(row)
    if assistant_only:
        encoded = with_labels(*assistant_tokens(tokenizer, row["messages"], keywords))
    else:
        text = chat(tokenizer, row["messages"], keywords)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]  # the template writes its own
        encoded = {"input_ids": ids, "labels": list(ids)}
    if mask_outputs:
        text = chat(tokenizer, row["messages"], keywords)
        return without_outputs(encoded, text, tokenizer, special=False)
    return encoded


def without_outputs(row: Row, text: str, tokenizer: Tokenizer, special: bool) -> Row:
    """Return a row without the labels of what programs print in its text, see `printed_tokens`."""
    ids, labels = row["input_ids"], row["labels"]
    printed = printed_tokens(text, tokenizer, len(ids), special=special)
    kept = [label != IGNORED and not out for label, out in zip(labels, printed, strict=True)]
    return with_labels(ids, kept)


def with_labels(ids: Sequence[int], mask: Sequence[bool]) -> Row:
    """Return token ids with labels: the ids where the mask is set, else `IGNORED`."""
    labels = [token if is_kept else IGNORED for token, is_kept in zip(ids, mask, strict=True)]
    return {"input_ids": list(ids), "labels": labels}


def with_end_token(text: str, tokenizer: Tokenizer) -> str:
    """Return a text with the end token appended, unless it ends with this token.

    Raises:
        BadValue: the value is no string.
    """
    if not isinstance(text, str):
        raise BadValue(f"{text!r} in the dataset: expected a text, found {type(text).__name__}")
    end = tokenizer.eos_token
    return text if text.endswith(end) else text + end
