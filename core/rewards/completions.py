"""Texts of the completions and prompts that reward functions receive."""

from collections.abc import Mapping, Sequence

from eval.errors import BadValue

Completion = str | Sequence[Mapping[str, str]]
THINK = "<think>"


def completion_text(completion: Completion) -> str:
    """Return the text of a completion: the string itself, or its last message's content."""
    return completion if isinstance(completion, str) else completion[-1]["content"]


def first_text(completion: Completion) -> str:
    """Return the text of a completion: the string itself, or its first message's content."""
    return completion if isinstance(completion, str) else completion[0]["content"]


def question_text(prompt: Completion) -> str:
    """Return the text of a prompt: the string itself, or the content of its last user message.

    Raises:
        BadValue: no message is a user's.
    """
    if isinstance(prompt, str):
        return prompt
    for message in reversed(prompt):
        if message["role"] == "user":
            return message["content"]
    raise BadValue(f"the prompt {prompt!r:.200} has no message of the role user: add one")


def after_opened_thought(
    completions: Sequence[str], prompt_texts: Sequence[str] | None
) -> list[str]:
    """Return completions with `<think>` prepended where the prompt ends with it.

    Some chat templates open the reasoning themselves; the tag is then not part of the completion.
    """
    if prompt_texts is None:
        return list(completions)
    opened = [text.rstrip().endswith(THINK) for text in prompt_texts]
    return [THINK * has + text for has, text in zip(opened, completions, strict=True)]
