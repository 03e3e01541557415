"""A user's turn or a conversation as messages, and as the text that a model reads."""

from typing import Any, TypeAlias

from core.bounded_templates import apply_template
from eval.errors import BadValue

Turns: TypeAlias = list[dict[str, str]]
Asked: TypeAlias = str | Turns  # a user's turn, or a conversation


def turns_of(prompt: Asked, system: str | None = None) -> Turns:
    """A user's turn, or a conversation, after a system's turn if there is one."""
    before = [] if system is None else [{"role": "system", "content": system}]
    asked = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    return [*before, *asked]


def chat_text(tokenizer: Any, prompt: Asked, system: str | None = None) -> str:  # Any: half typed
    """`turns_of` as text, up to where the answer begins.

    Raises:
        BadValue: the tokenizer has no chat template, or one that takes no such turns.
    """
    name = tokenizer.name_or_path
    if tokenizer.chat_template is None:
        raise BadValue(
            f"{name} has no chat template, as base models have none, and prompts are a user's "
            "turns: give chat_template=plain or a Jinja file (`repro eval --chat-template plain`), "
            "or answer benchmarks with --mode few-shot"
        )
    turns: Any = turns_of(prompt, system)
    text = apply_template(tokenizer, turns, tokenize=False, add_generation_prompt=True)
    if (system or "").strip() not in text:
        raise BadValue(f"the chat template of {name} leaves a system's turn out: give none")
    return text
