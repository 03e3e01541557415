"""Tokenizer and architecture of the nano worlds: 87,000 random weights, drawn by a seed."""

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from core.models.pocket import CONTEXT, END, PAD, Size, new_model
from eval.nano.task import ALPHABET

NANO = Size(hidden=64, inner=128, layers=2, heads=4)
# Turns without marks: a question ends in "=", an answer in the end token.
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
)


def nano_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of which each character of the nano alphabet is a token."""
    vocabulary = {token: index for index, token in enumerate((PAD, END, *ALPHABET))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=PAD))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        chat_template=CHAT_TEMPLATE,
        padding_side="left",
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )


def nano_model(seed: int) -> LlamaForCausalLM:
    """Return a Llama of 2 layers of width 64 with random weights."""
    return new_model(NANO, nano_tokenizer(), seed)
