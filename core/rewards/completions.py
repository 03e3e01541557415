"""Completions and prompts as reward functions receive them."""

from collections.abc import Mapping, Sequence

Completion = str | Sequence[Mapping[str, str]]
THINK = "<think>"


def completion_text(completion: Completion) -> str:
    """Return a completion's text: itself, or what its last message says."""
    return completion if isinstance(completion, str) else completion[-1]["content"]


def first_text(completion: Completion) -> str:
    """Return a completion's text: itself, or what its first message says."""
    return completion if isinstance(completion, str) else completion[0]["content"]


def question_text(prompt: Completion) -> str:
    """Return a prompt's text: itself, or what the user's last message says."""
    if isinstance(prompt, str):
        return prompt
    return next(message["content"] for message in reversed(prompt) if message["role"] == "user")


def after_opened_thought(
    completions: Sequence[str], prompt_texts: Sequence[str] | None
) -> list[str]:
    """Return texts of completions, each after the `<think>` that its prompt ends with, if it does.

    Some chat templates open the reasoning themselves: the tag is then no part of the completion.
    """
    if prompt_texts is None:
        return list(completions)
    opened = [text.rstrip().endswith(THINK) for text in prompt_texts]
    return [THINK * has + text for has, text in zip(opened, completions, strict=True)]
