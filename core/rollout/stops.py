"""Ends of completions: end tokens and stop strings."""

from collections.abc import Callable, Sequence
from typing import Any

from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from core.bounded_templates import Tokenizer
from eval.errors import BadValue

Stop = Callable[[list[int]], bool]


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return the token ids that end a completion: the tokenizer's and the model's own."""
    return declared_ends(model.generation_config, tokenizer)


def declared_ends(config: GenerationConfig | None, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return the token ids that a generation config and a tokenizer declare as ends.

    Raises:
        BadValue: there are none, or one is no token id.
    """
    declared: Any = getattr(config, "eos_token_id", None)  # Any: of the model's files
    listed = list(declared or []) if isinstance(declared, list | tuple | None) else [declared]
    end = tokenizer.eos_token_id
    ends = listed if end is None or end in listed else [end, *listed]
    if not ends or not all(isinstance(token, int) for token in ends):
        raise BadValue(
            f"{tokenizer.name_or_path}: found eos_token={tokenizer.eos_token!r} of the tokenizer "
            f"and eos_token_id={declared!r} of generation_config.json: expected the token that "
            "ends a completion, and ids of tokens"
        )
    return ends


def stop_function(tokenizer: Tokenizer, strings: Sequence[str]) -> Stop | None:
    """Return a function that tells whether token ids end in a stop string; None without strings.

    The function decodes the last tokens only and looks for the strings in their text.
    """
    stop_strings = [string for string in strings if string]
    if not stop_strings:
        return None
    window = 1 + max(len(string.encode()) for string in stop_strings)  # a token is at least a byte

    def ends_in_stop(tokens: list[int]) -> bool:
        tail = tokenizer.decode(tokens[-window:], skip_special_tokens=True)
        return any(string in tail for string in stop_strings)

    return ends_in_stop


def before_stop(text: str, strings: Sequence[str]) -> str | None:
    """Return the text before the first stop string in it; None if it contains none."""
    positions = [position for string in strings if string and (position := text.find(string)) >= 0]
    return text[: min(positions)] if positions else None
