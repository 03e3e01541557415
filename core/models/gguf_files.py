"""Conversion of GGUF files, which hold a Llama and its tokenizer, to folders of transformers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import torch
from gguf import MODEL_ARCH, GGUFReader, dequantize, get_tensor_name_map
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

Fields: TypeAlias = Mapping[str, Any]  # Any: texts, numbers and lists by the names of the format
CONTROL = 3  # the type of a token that is special
ROTATED = ("attn_q", "attn_k")  # projections whose rows the format has in another order


def convert(file: Path, folder: Path) -> None:
    """Write the model of a GGUF file, its weights in bfloat16, and its tokenizer into a folder."""
    reader = GGUFReader(file)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    tokenizer_of(fields).save_pretrained(folder)
    config = config_of(fields)
    weights = weights_of(reader, config)
    model: Any = LlamaForCausalLM.from_pretrained(  # Any: the path is typed as a text
        None, config=config, state_dict=weights, dtype=torch.bfloat16
    )
    model.save_pretrained(folder)


def config_of(fields: Fields) -> LlamaConfig:
    """Return the config of a Llama whose head and embeddings are tied."""
    heads = fields["llama.attention.head_count"]
    return LlamaConfig(
        vocab_size=fields["llama.vocab_size"],
        hidden_size=fields["llama.embedding_length"],
        intermediate_size=fields["llama.feed_forward_length"],
        num_hidden_layers=fields["llama.block_count"],
        num_attention_heads=heads,
        num_key_value_heads=fields["llama.attention.head_count_kv"],
        max_position_embeddings=fields["llama.context_length"],
        rms_norm_eps=round(fields["llama.attention.layer_norm_rms_epsilon"], 9),  # from 32 bits
        rope_parameters={"rope_type": "default", "rope_theta": fields["llama.rope.freq_base"]},
        tie_word_embeddings=True,
        bos_token_id=fields["tokenizer.ggml.bos_token_id"],
        eos_token_id=fields["tokenizer.ggml.eos_token_id"],
        pad_token_id=fields["tokenizer.ggml.padding_token_id"],
    )


def weights_of(reader: GGUFReader, config: LlamaConfig) -> dict[str, torch.Tensor]:
    """Return the dequantized weights by their names in transformers.

    The format rotates adjacent pairs of a head's dimensions, transformers dimension i and i + d/2:
    the rows of query and key projections are reordered.
    """
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    names = get_tensor_name_map(MODEL_ARCH.LLAMA, layers)
    with torch.device("meta"):
        shapes = LlamaForCausalLM(config).state_dict()
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    weights: dict[str, torch.Tensor] = {}
    for name, shape in shapes.items():
        if name == "lm_head.weight":
            continue
        key = names.get_name(name.removesuffix(".weight"))
        rows = dequantize(tensors[f"{key}.weight"].data, tensors[f"{key}.weight"].tensor_type)
        if str(key).endswith(ROTATED):
            count = heads if str(key).endswith("attn_q") else config.num_key_value_heads or heads
            rows = rows.reshape(count, -1, 2, rows.shape[-1]).swapaxes(1, 2)
        weights[name] = torch.tensor(rows.reshape(shape.shape), dtype=torch.bfloat16)
    return weights


def tokenizer_of(fields: Fields) -> PreTrainedTokenizerFast:
    """Return the byte-level BPE tokenizer of a file, whose splitter `smollm` isolates digits."""
    tokens = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(BPE({token: index for index, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = zip(tokens, fields["tokenizer.ggml.token_type"], strict=True)
    tokenizer.add_special_tokens([AddedToken(t) for t, kind in kinds if kind == CONTROL])
    special = {
        f"{role}_token": tokens[fields[f"tokenizer.ggml.{name}_token_id"]]
        for role, name in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
    }
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        chat_template=fields["tokenizer.chat_template"],
        padding_side="left",
        model_max_length=fields["llama.context_length"],
        clean_up_tokenization_spaces=False,
        **special,
    )
