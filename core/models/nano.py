"""Tokenizers and architectures of the nano worlds: random weights, drawn by a seed."""

from itertools import product
from string import digits
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE, WordLevel
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from core.models.builds import ENCODER, has_pairs, is_encoder
from core.models.pocket import CONTEXT, END, INIT, PAD, Size, new_model
from eval.nano.canvas import LENGTH, SYMBOLS
from eval.nano.task import ALPHABET

NANO = Size(hidden=64, inner=128, layers=2, heads=4)
NANO_ENCODER = Size(hidden=48, inner=96, layers=2, heads=4)
PAIRS = [pair for pair in product(digits, digits) if sum(map(int, pair)) % 10 < 3]  # 30 of 100
# Turns without marks: a question ends in "=", an answer in the end token.
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
)


def nano_tokenizer(alphabet: str = ALPHABET) -> PreTrainedTokenizerFast:
    """Return a tokenizer of which each character of an alphabet is a token."""
    vocabulary = {token: index for index, token in enumerate((PAD, END, *alphabet))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=PAD))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    return of_texts(tokenizer)


def paired_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of characters in which `PAIRS` are tokens, too."""
    tokens = (PAD, END, *ALPHABET, *map("".join, PAIRS))
    vocabulary = {token: index for index, token in enumerate(tokens)}
    return of_texts(Tokenizer(BPE(vocabulary, PAIRS, unk_token=PAD)))


def of_texts(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """Return a tokenizer whose tokens are texts, with the special tokens of the nano worlds."""
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


def nano_model(seed: int, *, pairs: bool = False) -> LlamaForCausalLM:
    """Return a Llama of 2 layers of width 64 with random weights, see `paired_tokenizer`."""
    return new_model(NANO, paired_tokenizer() if pairs else nano_tokenizer(), seed)


def nano_encoder(seed: int) -> BertForMaskedLM:
    """Return a BERT of 2 layers of width 48 with random weights, for texts of the task `canvas`."""
    torch.manual_seed(seed)
    tokenizer: Any = untrained_tokenizer(ENCODER)  # Any: its ids are unions
    return BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=NANO_ENCODER.hidden,
            intermediate_size=NANO_ENCODER.inner,
            num_hidden_layers=NANO_ENCODER.layers,
            num_attention_heads=NANO_ENCODER.heads,
            max_position_embeddings=LENGTH + 1,  # with the end token
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            initializer_range=INIT,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
        )
    )


def untrained_tokenizer(name: str) -> PreTrainedTokenizerFast:
    """Return the tokenizer of a model with random weights."""
    if has_pairs(name):
        return paired_tokenizer()
    return nano_tokenizer(SYMBOLS if is_encoder(name) else ALPHABET)
