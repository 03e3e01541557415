"""Rows of a fine-tuning dataset as token ids with the tokens that are trained on."""

from collections.abc import Callable, Sequence
from functools import partial

from transformers.utils import logging

from core.data.assistant_tokens import assistant_tokens
from core.data.conversations import Row, Tokenizer, chat, template_keywords
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
) -> Callable[[Row], Row]:
    """What turns a row with these columns into `input_ids` and `labels`.

    Raises:
        BadValue: the rows have no completions or no assistant that alone is to be trained on.
        MissingColumn: there is no column to train on.
    """
    pairs = {"prompt", "completion"} <= columns
    if completion_only and not (pairs or columns & {"labels", "completion_mask"}):
        raise BadValue(
            "completion_only_loss=True, but the dataset has no column 'completion': leave it out, "
            "or give columns 'prompt' and 'completion'"
        )
    written = "labels" in columns or "input_ids" not in columns
    if assistant_only and not (written and (pairs or "messages" in columns)):
        raise BadValue(
            "assistant_only_loss=True, but the dataset has no conversations: leave it out, or "
            "give a column 'messages', or 'prompt' and 'completion' as messages"
        )
    if "input_ids" in columns:
        return partial(encode_ids, completion_only=completion_only is True)
    options = {"tokenizer": tokenizer, "assistant_only": assistant_only}
    if pairs:
        return partial(encode_pair, completion_only=completion_only is not False, **options)
    if "messages" in columns:
        return partial(encode_turns, **options)
    if text_field in columns:
        return partial(encode_text, text_field=text_field, tokenizer=tokenizer)
    wanted = (text_field, "messages", "prompt")
    raise MissingColumn("the dataset", wanted, columns, "one of them is needed")


def encode_ids(row: Row, completion_only: bool) -> Row:
    """Token ids as they are, with their labels.

    Without labels all tokens are trained on that `assistant_masks` keeps, if there, and
    `completion_mask` too if `completion_only`.

    Raises:
        BadValue: an `attention_mask` hides tokens, which would be trained on.
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
    kept = [all(keeps) for keeps in zip(*masks, strict=True)] if masks else [True] * len(ids)
    return labelled(ids, kept)


def encode_pair(
    row: Row, tokenizer: Tokenizer, completion_only: bool, assistant_only: bool = False
) -> Row:
    """Prompt and completion, standard or conversational, joined; see `joined`.

    The completion begins where its tokens and those of the prompt alone differ.
    """
    prompt, whole = pair_texts(row, tokenizer)
    plain = isinstance(row["prompt"], str)
    start = tokenizer(prompt, add_special_tokens=plain)["input_ids"]
    if not assistant_only:
        ids = joined(tokenizer, prompt, whole, start, plain)
        kept = [True] * len(ids)
    elif plain:
        raise BadValue(f"assistant_only_loss=True, but {row['prompt']!r} is no conversation")
    else:
        turns = [*row["prompt"], *row["completion"]]
        ids, kept = assistant_tokens(tokenizer, turns, template_keywords(row))
    same = [own == other for own, other in zip(start, ids, strict=False)]
    shared = [*same, False].index(False) if completion_only else 0
    return labelled(ids, [keep and at >= shared for at, keep in enumerate(kept)])


def joined(
    tokenizer: Tokenizer, prompt: str, whole: str, start: Sequence[int], plain: bool
) -> list[int]:
    """Token ids of a whole text that begins with a prompt whose ids are `start`.

    They are those of the whole text, as in TRL. Only where one of them would span prompt and
    completion, TRL trains on a prompt that generation never reads; here the completion then
    follows the tokens of the prompt, if that spells the same text: a tokenizer may also put a
    space before whatever begins.
    """
    ids = list(tokenizer(whole, add_special_tokens=plain)["input_ids"])
    if ids[: len(start)] == start:
        return ids
    spell = partial(tokenizer.decode, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    if whole.startswith(prompt):
        rest = tokenizer(whole.removeprefix(prompt), add_special_tokens=False)["input_ids"]
        if spell([*start, *rest]) == spell(ids):
            return [*start, *rest]
    logger.warning_once(
        "tokens of prompts change when their completions follow: the model is trained on prompts "
        "that generation does not read; end prompts where a token ends, or change the template"
    )
    return ids


def pair_texts(row: Row, tokenizer: Tokenizer) -> tuple[str, str]:
    """The prompt as generation reads it, and the text of prompt and completion.

    Raises:
        BadValue: one is text and the other a conversation, or the completion is neither.
    """
    prompt, completion = row["prompt"], row["completion"]
    if isinstance(prompt, str):
        return prompt, prompt + ended(completion, tokenizer)
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


def encode_text(row: Row, text_field: str, tokenizer: Tokenizer) -> Row:
    """All tokens of a text, trained on, with the end token."""
    ids = tokenizer(ended(row[text_field], tokenizer))["input_ids"]
    return {"input_ids": ids, "labels": list(ids)}


def encode_turns(row: Row, tokenizer: Tokenizer, assistant_only: bool = False) -> Row:
    """All tokens of a conversation, trained on, or those of its assistant."""
    keywords = template_keywords(row)
    if assistant_only:
        return labelled(*assistant_tokens(tokenizer, row["messages"], keywords))
    text = chat(tokenizer, row["messages"], keywords)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]  # the template writes its own
    return {"input_ids": ids, "labels": list(ids)}


def labelled(ids: Sequence[int], kept: Sequence[bool]) -> Row:
    """Token ids with themselves as labels where they are kept."""
    labels = [token if keep else IGNORED for token, keep in zip(ids, kept, strict=True)]
    return {"input_ids": list(ids), "labels": labels}


def ended(text: str, tokenizer: Tokenizer) -> str:
    """Return a text with the end token, which it may have already.

    Raises:
        BadValue: it is no text.
    """
    if not isinstance(text, str):
        raise BadValue(f"{text!r} in the dataset: expected a text, found {type(text).__name__}")
    end = tokenizer.eos_token
    return text if text.endswith(end) else text + end
