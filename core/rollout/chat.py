"""Chat messages of a prompt, and the text that a chat template makes of them."""

from typing import TypeAlias

from transformers import PreTrainedTokenizerBase

from core.bounded_templates import apply_template
from eval.errors import BadValue

Messages: TypeAlias = list[dict[str, str]]
ChatPrompt: TypeAlias = str | Messages  # the text of one user message, or a conversation


def chat_messages(prompt: ChatPrompt, system: str | None = None) -> Messages:
    """Return the chat messages of a prompt: the system message, if any, before the user's."""
    before = [] if system is None else [{"role": "system", "content": system}]
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    return [*before, *messages]


def chat_text(
    tokenizer: PreTrainedTokenizerBase, prompt: ChatPrompt, system: str | None = None
) -> str:
    """Apply the tokenizer's chat template to the messages of a prompt, with a generation prompt.

    Raises:
        BadValue: the tokenizer has no chat template, or its template omits the system message or
            the prompt's last message.
    """
    name = tokenizer.name_or_path
    if tokenizer.chat_template is None:
        raise BadValue(
            f"{name} has no chat template, as base models have none, and prompts are user "
            "messages: give chat_template=plain or a Jinja file (`repro eval --chat-template "
            "plain`), or answer benchmarks with --mode few-shot"
        )
    messages = chat_messages(prompt, system)
    text = apply_template(tokenizer, messages, tokenize=False, add_generation_prompt=True)
    if (system or "").strip() not in text:
        raise BadValue(f"the chat template of {name} omits system messages: give none")
    last = messages[-1].get("content") if messages else ""
    if not text or (isinstance(last, str) and last.strip() not in text):
        raise BadValue(
            f"the chat template of {name} omits the prompt, so no model would read it: give "
            "chat_template=plain or a Jinja file (`repro eval --chat-template plain`)"
        )
    return text
