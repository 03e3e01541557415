"""Completions and prompts as reward functions receive them."""

from collections.abc import Mapping, Sequence

Completion = str | Sequence[Mapping[str, str]]


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
