"""Forward pass of Llama and Qwen as plain functions, which spares the overhead of modules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu
from transformers import LlamaForCausalLM, PreTrainedModel, Qwen2ForCausalLM, Qwen3ForCausalLM

from core.rollout.merged_adapters import is_adapted, is_linear, linear_weight
from core.rollout.native.prefix_attention import ROOM, SharedAttention
from core.rollout.native.row_attention import RowAttention
from core.rollout.wide_head import WideHead
from core.rollout.wrappings import autocast_type, has_unsharded_weights, is_hooked

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]  # layer, queries, keys, values
Places = tuple[Tensor, Tensor]  # rows and columns (N,)
KNOWN = (LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM)


NEEDS: Mapping[str, Callable[[Any], bool]] = {  # Any: modules and configs are half typed
    "a Llama, Qwen2 or Qwen3": lambda model: type(model) in KNOWN,
    # the dtype of the norms
    "weights in 32 bits": lambda model: model.dtype == torch.float32,
    "attn_implementation='sdpa'": lambda model: model.config._attn_implementation == "sdpa",
    "attention to all tokens": lambda model: not getattr(model.config, "use_sliding_window", False),
    "the activation silu": lambda model: model.config.hidden_act == "silu",
    "angles of positions that do not depend on the longest row": lambda model: (
        model.config.rope_parameters["rope_type"] not in ("dynamic", "longrope")
    ),
    "a forward pass that nobody has replaced, but for autocast": lambda model: (
        "forward" not in vars(model) or autocast_type(model.device) is not None
    ),
    "no hooks": lambda model: not is_hooked(model),
    "layers that nobody has wrapped, but for plain LoRA": lambda model: has_own_layers(model),
    "adapters off under autocast": lambda model: (
        autocast_type(model.device) is None or not is_adapted(model)
    ),
    "weights that are not sharded": lambda model: has_unsharded_weights(model),
}


def plain_forward_needs(model: PreTrainedModel) -> str | None:
    """Return what this model misses for `PlainDecoder` to equal its modules; None if nothing.

    The requirements hold outside of autocast and under it.
    """
    return next((requirement for requirement, is_met in NEEDS.items() if not is_met(model)), None)


def has_own_layers(model: Any) -> bool:  # Any: as above
    """Return whether the layers of a model of `KNOWN` are those that transformers creates.

    Linear layers with plain LoRA adapters and a `WideHead` are accepted.
    """
    return (
        (is_linear(model.lm_head) or type(model.lm_head) is WideHead)
        and type(model.model.embed_tokens) is nn.Embedding
        and all(
            type(module).__module__.startswith("transformers.models.")
            for name, module in model.named_modules()
            if name.endswith("norm")
        )
        and all(
            has_plain_projections(part)
            for block in model.model.layers
            for part in (block.self_attn, block.mlp)
        )
    )


def has_plain_projections(part: nn.Module) -> bool:
    """Return whether the projections of a block are linear; only q, k and v may have a bias."""
    return all(
        is_linear(layer) and (layer.bias is None or name in ("q_proj", "k_proj", "v_proj"))
        for name, layer in part.named_children()
        if name.endswith("_proj")
    )


class PlainDecoder:
    """Decoder of Llama and Qwen models without their modules; each prompt is read and cached once.

    It uses the weights that the model has when the decoder is created. `refills` tells whether new
    rows can be admitted while other rows are being decoded; `drops`, whether decoding gets faster
    without the finished rows.

    Args:
        model: a model without unmet `plain_forward_needs`.
        shared: whether several rows may continue one prompt.
    """

    refills = drops = True

    def __init__(self, model: Any, *, shared: bool = True):  # Any: its modules are untyped
        config = model.config
        self.type = autocast_type(model.device) or model.dtype
        self.body, self.head = model.model, head_function(model.lm_head, self.type)
        first = self.body.layers[0].self_attn
        self.size = int(first.head_dim)
        self.queries = int(config.num_attention_heads)
        self.keys = int(config.num_key_value_heads)
        self.eps = float(config.rms_norm_eps)
        like = self.body.norm.weight  # has the dtype of the residual stream
        self.scale = torch.ones(self.queries + self.keys, 1).to(like)
        self.scaling = self.size**-0.5
        if self.type == like.dtype:  # else queries are rounded before they are scaled
            self.scale[: self.queries], self.scaling = self.scaling, 1.0
        self.angles = self.rotation_table(0)
        self.blocks = [fuse_block(block, self.size, self.type) for block in self.body.layers]
        kind = SharedAttention if shared else RowAttention
        self.attention = kind(len(self.blocks), self.keys, self.size, self.type, like=like)

    def admit(self, prompts: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]) -> Tensor:
        """Read new prompts; return the next-token logits of each prompt, shape (N, V).

        Args:
            prompts: token ids of N prompts.
            rows: for each prompt, the row indices that continue it; the first call's are 0, 1,
                ... in order.
        """
        lengths = [len(prompt) for prompt in prompts]
        ids = torch.zeros(len(prompts), max(lengths), dtype=torch.long, device=self.body.device)
        for place, prompt in enumerate(prompts):
            ids[place, : len(prompt)] = torch.tensor(prompt)
        slots = self.attention.open(lengths, rows)
        columns = torch.arange(ids.size(1), device=ids.device)
        ends = torch.tensor(lengths, device=ids.device).unsqueeze(1) - 1
        last = torch.arange(len(prompts), device=ids.device), ends.squeeze(1)
        gqa = self.queries != self.keys

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            final = layer == len(self.blocks) - 1  # which computes the last tokens only
            q = (q[last].unsqueeze(1) if final else q).transpose(1, 2)
            k, v = k.transpose(1, 2), v.transpose(1, 2)
            self.attention.keep(layer, slots, k, v)
            # causal attention hides the padding behind shorter prompts
            is_visible = (columns <= ends)[:, None, None] if final else None
            q, k, v = (part.to(self.type) for part in (q, k, v))
            attended = scaled_dot_product_attention(
                q, k, v, is_visible, is_causal=not final, scale=self.scaling, enable_gqa=gqa
            )
            return attended[:, :, 0] if final else attended.transpose(1, 2)

        return self.logits(self.forward(ids, columns.expand_as(ids), attend, last))

    def step(self, tokens: Tensor, alive: Tensor) -> Tensor:
        """Append one token (R,) to every alive row; return the logits (R, V)."""
        positions = self.attention.advance(alive)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return self.attention(layer, q * self.scaling, k, v)

        return self.logits(self.forward(tokens, positions, attend))

    def select(self, rows: Tensor) -> None:
        """Keep only these rows, in this order."""
        self.attention.select(rows)

    def forward(
        self, ids: Tensor, positions: Tensor, attend: Attend, only: Places | None = None
    ) -> Tensor:
        """Return the hidden states (..., H) of tokens (...), or (N, H) of the places in `only`.

        They come from the last layer, before the final norm, which `logits` applies.
        """
        x = self.body.embed_tokens(ids)
        rotation = self.rotations(positions)
        heads = self.queries + self.keys
        with torch.autocast(x.device.type, enabled=False):  # dtypes are explicit here
            for layer, block in enumerate(self.blocks):
                y = self.product(self.normalise(x, block.before), block.qkv, block.bias)
                y = y.unflatten(-1, (heads + self.keys, self.size))
                qk, v = y.split((heads, self.keys), dim=-2)
                if block.scales is not None:
                    qk = rms_norm(qk, qk.shape[-1:], eps=self.eps) * block.scales
                pairs = torch.view_as_complex(qk.to(x.dtype).unflatten(-1, (-1, 2)))
                qk = torch.view_as_real(pairs * rotation).flatten(-2)
                q, k = qk.split((self.queries, self.keys), dim=-2)
                # rounded to the dtype that attention has under autocast
                attended = attend(layer, *(part.to(self.type).to(x.dtype) for part in (q, k, v)))
                if only is not None and layer == len(self.blocks) - 1:
                    x = x[only]
                x = x + self.product(attended.flatten(-2), block.out)
                y = self.product(self.normalise(x, block.between), block.gate_up)
                gate, up = y.chunk(2, dim=-1)
                x = x + linear(silu(gate).mul_(up), block.down)
        return x

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits (..., V) of the last layer's hidden states."""
        return self.head(self.normalise(x, self.body.norm.weight))

    def normalise(self, x: Tensor, weight: Tensor | None) -> Tensor:
        """Apply RMSNorm; `weight` is None where it is folded into the next matrix."""
        return rms_norm(x, x.shape[-1:], weight, self.eps)

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Apply a linear layer in its dtype, which under autocast is autocast's."""
        return linear(x.to(self.type), weight, bias)

    def rotations(self, positions: Tensor) -> Tensor:
        """Return rotary embeddings (..., heads, D / 2) of queries and keys as complex numbers.

        Those of the queries include the scale of attention, except under autocast.
        """
        longest = int(positions.max()) + 1
        if longest > len(self.angles):
            self.angles = self.rotation_table(longest + ROOM)
        return self.angles[positions].unsqueeze(-2) * self.scale

    def rotation_table(self, length: int) -> Tensor:
        """Return the rotations (length, D / 2) of positions 0 to length - 1."""
        like = self.body.norm.weight
        positions = torch.arange(length, device=like.device).unsqueeze(0)
        cos, sin = self.body.rotary_emb(like, positions)
        return torch.complex(cos, sin)[0, :, : self.size // 2].contiguous()


def head_function(layer: Any, kind: torch.dtype) -> Callable[[Tensor], Tensor]:  # Any: as above
    """Return the function from hidden states to logits: a `WideHead`, or a product in `kind`."""
    if type(layer) is WideHead:
        return layer
    weight = linear_weight(layer).to(kind)
    return lambda x: linear(x.to(kind), weight)


@dataclass(frozen=True)
class Block:
    """Weights of a decoder layer; matrices that act on the same input are concatenated.

    The norms `before` attention and `between` it and the feed-forward block are folded into the
    next matrix, or are None there. Under autocast they are separate, so that roundings equal the
    modules'. `scales` (heads, D) are the norms of queries and keys, if the model has them.
    """

    before: Tensor | None
    qkv: Tensor
    bias: Tensor | None
    scales: Tensor | None
    out: Tensor
    between: Tensor | None
    gate_up: Tensor
    down: Tensor


def fuse_block(
    block: Any, size: int, kind: torch.dtype
) -> Block:  # Any: a decoder layer, half typed
    """Return the weights of a layer in dtype `kind`, with interleaved query and key heads.

    The two halves of each head alternate, so a rotation is a product of complex numbers. Queries
    and keys are permuted alike, which leaves their products unchanged.
    """
    attention, mlp = block.self_attn, block.mlp
    before, between = block.input_layernorm.weight, block.post_attention_layernorm.weight
    q, k, v = attention.q_proj, attention.k_proj, attention.v_proj
    weights = [interleave_halves(linear_weight(projection), size) for projection in (q, k)]
    qkv = torch.cat([*weights, linear_weight(v)])
    gate_up = torch.cat([linear_weight(mlp.gate_proj), linear_weight(mlp.up_proj)])
    bias = None
    if q.bias is not None:
        biases = [interleave_halves(q.bias, size), interleave_halves(k.bias, size), v.bias]
        bias = torch.cat(biases).to(kind)
    folds = kind == before.dtype
    return Block(
        before=None if folds else before,
        qkv=qkv * before if folds else qkv.to(kind),
        bias=bias,
        scales=query_key_norms(attention, size),
        out=linear_weight(attention.o_proj).to(kind),
        between=None if folds else between,
        gate_up=gate_up * between if folds else gate_up.to(kind),
        down=linear_weight(mlp.down_proj).to(kind),
    )


def query_key_norms(attention: Any, size: int) -> Tensor | None:  # Any: its modules are untyped
    """Return the norm weights (heads, D) of query and key heads; None if the model has none."""
    if not hasattr(attention, "q_norm"):
        return None
    norms = [(attention.q_norm, attention.q_proj), (attention.k_norm, attention.k_proj)]
    return torch.cat(
        [
            interleave_halves(norm.weight, size).expand(len(projection.weight) // size, size)
            for norm, projection in norms
        ]
    )


def interleave_halves(rows: Tensor, size: int) -> Tensor:
    """Permute rows of heads (heads x size, ...) so that the two halves of each head alternate."""
    return rows.unflatten(0, (-1, 2, size // 2)).transpose(1, 2).flatten(0, 2)
