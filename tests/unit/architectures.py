"""Tiny random models of many architectures, by how they know positions and what they keep."""

import torch
from transformers import AutoConfig, AutoModelForCausalLM

TOKENS = {"vocab_size": 64, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": 1}
WIDE = {**TOKENS, "hidden_size": 32, "num_hidden_layers": 2, "initializer_range": 0.3}
SMALL = {
    **WIDE,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
WINDOW = {**SMALL, "sliding_window": 4}
GPT = {**TOKENS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}
EXPERTS = {
    **SMALL,
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
}
SSM = {
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_d_state": 8,
    "mamba_n_groups": 1,
    "mamba_chunk_size": 8,
}
LINEAR = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
XGLM = {"d_model": 32, "ffn_dim": 48, "num_layers": 2, "attention_heads": 4, "init_std": 0.3}
MPT = {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 256}
NEO = {"num_layers": 2, "attention_types": [[["global", "local"], 1]], "num_heads": 4}

ATTENTION = {  # whose states are keys and values
    # positions that are learned, counted or read off a table
    "gpt2": GPT,
    "gpt_bigcode": GPT,
    "gpt_neo": {**WIDE, **NEO, "window_size": 4, "max_position_embeddings": 256},
    "opt": {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32, "init_std": 0.3},
    "biogpt": SMALL,
    "xglm": {**TOKENS, **XGLM, "max_position_embeddings": 256},
    "ctrl": {**GPT, "dff": 48},
    # slopes
    "bloom": {**TOKENS, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "mpt": {**TOKENS, **MPT},
    "falcon": {**SMALL, "alibi": True},
    # rotations of all dimensions or some
    "gptj": {**GPT, "rotary_dim": 4},
    "gpt_neox": SMALL,
    "llama": SMALL,
    "qwen2": SMALL,
    "qwen3": {**SMALL, "head_dim": 8},
    "phi": SMALL,
    "phi3": SMALL,
    "stablelm": SMALL,
    "olmo": SMALL,
    "olmo2": SMALL,
    "granite": SMALL,
    "hunyuan_v1_dense": {**SMALL, "head_dim": 8},
    # windows
    "mistral": WINDOW,
    "gemma2": {**WINDOW, "head_dim": 8},
    "gemma3_text": {**WINDOW, "head_dim": 8},
    "cohere2": WINDOW,
    "gpt_oss": {**EXPERTS, "sliding_window": 4, "head_dim": 8},
    # experts
    "mixtral": EXPERTS,
    "qwen3_moe": {**EXPERTS, "head_dim": 8},
    "glm4_moe": {**EXPERTS, "head_dim": 8, "n_routed_experts": 4, "n_group": 1, "topk_group": 1},
}
STATES = {  # of recurrences and convolutions; or nothing is kept at all
    "mamba": {**WIDE, "state_size": 4},
    "mamba2": {**WIDE, "state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 2},
    "falcon_h1": {**SMALL, **SSM, "mamba_d_ssm": 64},
    "granitemoehybrid": {**EXPERTS, **SSM, "layer_types": ["mamba", "attention"]},
    "jamba": {**EXPERTS, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 4},
    "nemotron_h": {
        **SMALL,
        "layers_block_type": ["mamba", "attention"],
        "mamba_num_heads": 8,
        "mamba_head_dim": 8,
        "ssm_state_size": 8,
        "n_groups": 1,
        "chunk_size": 8,
    },
    "lfm2": {**SMALL, "layer_types": ["conv", "full_attention"]},
    "recurrent_gemma": {**SMALL, "lru_width": 32, "block_types": ["recurrent", "attention"]},
    "qwen3_next": {**EXPERTS, **LINEAR, "shared_expert_intermediate_size": 16},
    "qwen3_5_text": {**SMALL, **LINEAR, "head_dim": 8},
    "minimax": EXPERTS,
    "openai-gpt": GPT,
}


def built(name, **changes):
    """A model whose norms are not the ones with which they begin, in evaluation mode."""
    config = AutoConfig.for_model(name, **(ATTENTION | STATES)[name] | changes)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = AutoModelForCausalLM.from_config(config).eval()
        for parameter, weight in model.named_parameters():
            if "norm" in parameter and weight.dim() == 1 and (weight == 1).all():
                torch.nn.init.uniform_(weight, 0.5, 1.5)
    return model
