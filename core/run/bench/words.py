"""A vocabulary of made-up words and random prompts of them: every number of tokens is exact."""

import random

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

PAD, SPECIAL = "w0", 3  # words that no prompt has: padding, an end and the unknown


def word_tokenizer(vocabulary: int, end: str = "w1") -> PreTrainedTokenizerFast:
    """The words w0, w1, ... as a token each; an `end` that is none of them gets the next id."""
    words = {f"w{i}": i for i in range(vocabulary)}
    tokenizer = Tokenizer(WordLevel(words, unk_token="w2"))
    tokenizer.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=end, unk_token="w2"
    )


def word_prompts(count: int, length: int, vocabulary: int) -> list[str]:
    """Different random prompts of so many tokens each, the same every time."""
    draw = random.Random(0)
    words = [f"w{i}" for i in range(SPECIAL, vocabulary)]
    return [" ".join(draw.choices(words, k=length)) for _ in range(count)]
