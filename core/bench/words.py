"""A vocabulary of made-up words and random prompts of an exact number of tokens."""

import random

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

CHAT = "{% for message in messages %}{{ message.content }} {% endfor %}"
PAD, END, UNKNOWN = SPECIAL = ("<pad>", "<end>", "<unknown>")  # no word may begin with one


def word_tokenizer(vocabulary: int, end: str = END) -> PreTrainedTokenizerFast:
    """Return a tokenizer with three special tokens and a token for each word.

    An `end` token of another name is added after the words.
    """
    tokens = [*SPECIAL, *vocabulary_words(vocabulary)]
    tokenizer = Tokenizer(WordLevel({t: i for i, t in enumerate(tokens)}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=end,
        unk_token=UNKNOWN,
        chat_template=CHAT,
    )


def word_prompts(count: int, length: int, vocabulary: int) -> list[str]:
    """Return random prompts of `length` tokens each, the same on every call."""
    draw = random.Random(0)
    return [" ".join(draw.choices(vocabulary_words(vocabulary), k=length)) for _ in range(count)]


def vocabulary_words(vocabulary: int) -> list[str]:
    """Return the words of a vocabulary, named by their ids."""
    return [f"w{i}" for i in range(len(SPECIAL), vocabulary)]
