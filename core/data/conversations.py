"""Application of a tokenizer's chat template to the conversations of a dataset."""

import json
from collections.abc import Sequence
from typing import Any

from jinja2 import UndefinedError

from core.bounded_templates import Tokenizer, apply_template
from eval.errors import BadValue
from eval.sets.loading import Row


def template_keywords(row: Row) -> Row:
    """Return a row's keyword arguments of the chat template: its `tools` and its own keywords."""
    row_tools = row.get("tools")
    tools = json.loads(row_tools) if isinstance(row_tools, str) else row_tools
    return {"tools": tools, **(row.get("chat_template_kwargs") or {})}


def render_messages(
    tokenizer: Tokenizer, messages: Sequence[Row], **keywords: object
) -> Any:  # Any: text
    """Apply the chat template to messages; JSON texts in `tool_calls` are parsed.

    Tool-call arguments that are JSON texts are passed as texts; if the template refuses them, as
    mappings.
    """
    parsed_messages = [with_calls(message) for message in messages]
    try:
        return apply_template(tokenizer, parsed_messages, **keywords)
    except BadValue as error:
        mapped = [with_mappings(message) for message in parsed_messages]
        if not isinstance(error.__cause__, TypeError | UndefinedError) or mapped == parsed_messages:
            raise
        return apply_template(tokenizer, mapped, **keywords)


def with_calls(message: Row) -> Row:
    """Return a message whose `tool_calls`, if any, are a list of mappings."""
    calls = from_json(message.get("tool_calls"))
    if not isinstance(calls, list):
        return message
    return {**message, "tool_calls": [from_json(call) for call in calls]}


def with_mappings(message: Row) -> Row:
    """Return a message whose tool calls have mappings as arguments."""
    if not isinstance(message.get("tool_calls"), list):
        return message
    calls = []
    for call in message["tool_calls"]:
        function = call.get("function", call)
        parsed = {**function, "arguments": from_json(function.get("arguments"))}
        calls.append({**call, "function": parsed} if "function" in call else parsed)
    return {**message, "tool_calls": calls}


def from_json(value: object) -> object:
    """Parse a JSON text; return other values unchanged.

    Raises:
        BadValue: the text is not JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise BadValue(f"{value!r} of a tool call in the dataset: expected JSON, {error}") from None


def chat(
    tokenizer: Tokenizer, messages: Sequence[Row], keywords: Row, *, prompt: bool = False
) -> str:
    """Return a conversation as text; `prompt` appends the generation prompt."""
    options = {**keywords, "add_generation_prompt": prompt}
    return render_messages(tokenizer, messages, tokenize=False, **options)
