"""Prompts of a teacher that is shown more than its student."""

from collections.abc import Callable, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from core.collect.generation import pad_token_id, tokenize_prompts
from core.configs.rollout import RolloutConfig
from core.data.conversations import Row
from core.distillation.required_columns import Datasets, check_column
from core.forward.batches import TEACHER_KEYS, Batch, pad_rows
from core.rewards.completions import Completion, completion_text
from eval.errors import BadValue

CONTEXT = "privileged_context"  # column of what a teacher is shown
SHORT = 60  # characters of a prompt in an error


def rewritten(prompt: Completion, write: Callable[[str], str]) -> Completion:
    """Return a prompt whose text, or that of its last message, is written anew.

    Raises:
        BadValue: the last message is not the user's, or no text.
    """
    if isinstance(prompt, str):
        return write(prompt)
    if not prompt:
        raise BadValue("a prompt has no message: expected one of the user at its end")
    *before, last = prompt
    if last["role"] != "user":
        raise BadValue(
            f"a prompt ends with a message of the {last['role']}, and the teacher's is written "
            "from the last one of the user: end it there"
        )
    text = text_of(last, "the last message of a prompt")
    return [*before, {"role": "user", "content": write(text)}]


def text_of(message: object, where: str) -> str:
    """Return the text of a message, of all its parts; empty without content.

    Raises:
        BadValue: it is no message, or has a part that is no text; the error begins with `where`.
    """
    content: Any = message.get("content", message) if isinstance(message, dict) else message
    parts: list[Any] = content if isinstance(content, list) else [{"text": content or ""}]
    texts = [part["text"] for part in parts if isinstance(part, dict) and "text" in part]
    is_whole = len(texts) == len(parts) and all(isinstance(text, str) for text in texts)
    if not isinstance(message, dict) or not is_whole:
        raise BadValue(
            f"{where} is {message!r:.80}, and the teacher's prompt is written from its text: "
            "expected a message with a text"
        )
    return "".join(texts)


def prompt_with_context(row: Row, template: str) -> Completion:
    """Return the prompt of a row with its context, written by a template of both."""
    context = context_text(row)
    return rewritten(
        row["prompt"], lambda text: template.format(prompt=text, privileged_context=context)
    )


def context_text(row: Row) -> str:
    """Return the text of the column that the teacher sees; messages are joined by lines.

    Raises:
        BadValue: there is none, or a message of it is none of text.
    """
    context = row.get(CONTEXT)
    if context is None:
        raise BadValue(
            f"the row with the prompt {completion_text(row['prompt'])!r} has no {CONTEXT}: "
            "give every row a text or messages that the teacher is shown"
        )
    if isinstance(context, list):
        texts = (text_of(message, f"a message of {CONTEXT}") for message in context)
        return "\n".join(text for text in texts if text)
    return str(context)


def check_contexts(datasets: Datasets) -> None:
    """Refuse data without a column of what the teacher is shown, see `check_column`."""
    check_column(
        datasets,
        CONTEXT,
        missing=f": add a column {CONTEXT!r} with the demonstration that the teacher is shown",
        advice="add it, or drop the row",
    )


def teacher_prompts(
    prompts: Sequence[Completion],
    tokenizer: PreTrainedTokenizerBase,
    args: RolloutConfig,
    limit: tuple[str, int | None],
) -> Batch:
    """Return token ids and mask of the teacher's prompts, padded on the left.

    Args:
        prompts: The prompts.
        tokenizer: The student's.
        args: Settings of the trainer.
        limit: Name and value of the setting that limits their tokens.

    Raises:
        BadValue: a prompt is longer than the limit, or has no tokens.
    """
    setting, longest = limit
    rows = tokenize_prompts(tokenizer, prompts, args.template)
    for prompt, ids in zip(prompts, rows, strict=True):
        if longest is not None and len(ids) > longest:
            start = completion_text(prompt)[:SHORT]
            raise BadValue(
                f"the teacher's prompt {start!r}... has {len(ids)} tokens, and {setting} is "
                f"{longest}: raise it, or shorten the row; cut, the teacher would not see all of it"
            )
    ids, mask = pad_rows(rows, pad_token_id(tokenizer), left=True, multiple=args.padding)
    return {
        key: tensor.to(args.device) for key, tensor in zip(TEACHER_KEYS, (ids, mask), strict=True)
    }
