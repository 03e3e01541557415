"""A vocabulary of made-up words and random prompts of them: every number of tokens is exact."""

import random

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

PAD, END, UNKNOWN = SPECIAL = ("<pad>", "<end>", "<unknown>")  # no word may begin with one


def word_tokenizer(vocabulary: int, end: str = END) -> PreTrainedTokenizerFast:
    """Three special tokens, then a token for each word; an `end` of another name comes after."""
    tokens = [*SPECIAL, *words(vocabulary)]
    tokenizer = Tokenizer(WordLevel({t: i for i, t in enumerate(tokens)}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=end, unk_token=UNKNOWN
    )


def word_prompts(count: int, length: int, vocabulary: int) -> list[str]:
    """Different random prompts of so many tokens each, the same every time."""
    draw = random.Random(0)
    return [" ".join(draw.choices(words(vocabulary), k=length)) for _ in range(count)]


def words(vocabulary: int) -> list[str]:
    """The words of a vocabulary, named by their ids."""
    return [f"w{i}" for i in range(len(SPECIAL), vocabulary)]
