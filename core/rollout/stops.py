"""What ends a completion: tokens, and strings over token ids."""

from collections.abc import Callable, Sequence
from typing import Any

from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

Stop = Callable[[list[int]], bool]


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Every token that ends a completion: the tokenizer's and those that the model declares."""
    return declared_ends(model.generation_config, tokenizer)


def declared_ends(config: GenerationConfig | None, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The same of a model of which only the configuration of its generation is at hand."""
    declared = getattr(config, "eos_token_id", None)
    listed = [declared] if isinstance(declared, int) else list(declared or [])
    own: Any = tokenizer.eos_token_id  # Any: typed for every special token at once
    return listed if own in listed else [own, *listed]


def stop_at(tokenizer: Any, strings: Sequence[str]) -> Stop | None:  # Any: a tokenizer
    """Whether the last of some tokens spell one of the strings; None if there are no strings."""
    wanted = [string for string in strings if string]
    if not wanted:
        return None
    window = 1 + max(len(string.encode()) for string in wanted)  # a token is at least a byte

    def stopped(tokens: list[int]) -> bool:
        tail = tokenizer.decode(tokens[-window:], skip_special_tokens=True)
        return any(string in tail for string in wanted)

    return stopped


def before_stop(text: str, strings: Sequence[str]) -> str | None:
    """The text up to the first of the strings in it; None if it holds none."""
    found = [at for string in strings if string and (at := text.find(string)) >= 0]
    return text[: min(found)] if found else None
