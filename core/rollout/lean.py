"""The forward pass of Llama and Qwen as plain functions: small models are mostly bookkeeping."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu
from transformers import LlamaForCausalLM, PreTrainedModel, Qwen2ForCausalLM, Qwen3ForCausalLM

from core.rollout.adapters import is_linear, linear_weight
from core.rollout.alone import RowAttention
from core.rollout.shared import ROOM, SharedAttention

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]  # layer, queries, keys, values
Places = tuple[Tensor, Tensor]  # rows and columns (N,)
KNOWN = (LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM)


def is_lean(model: PreTrainedModel) -> bool:
    """Whether the functions below compute what the model's own modules would.

    True for a Llama, Qwen2 or Qwen3 outside of autocast, with transformers' usual attention over
    all tokens, its usual activation and angles of positions that do not depend on the longest row,
    and with layers that nobody has wrapped, hooked or sharded, but for LoRA adapters of linear
    ones.
    """
    config = model.config
    return (
        type(model) in KNOWN
        and model.dtype == torch.float32  # whatever the model's type, its norms use this one
        and config._attn_implementation == "sdpa"
        and config.hidden_act == "silu"
        and not getattr(config, "use_sliding_window", False)
        and config.rope_parameters["rope_type"] not in ("dynamic", "longrope")
        and not torch.is_autocast_enabled(model.device.type)
        and not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
        and is_linear(model.lm_head)
        and type(model.model.embed_tokens) is nn.Embedding
        and all(
            type(module).__module__.startswith("transformers.models.")
            for name, module in model.named_modules()
            if name.endswith("norm")
        )
        and all(type(p) in (nn.Parameter, Tensor) and p.numel() > 0 for p in model.parameters())
        and all(
            is_linear(layer) and (layer.bias is None or name in ("q", "k", "v"))
            for block in model.model.layers
            for part in (block.self_attn, block.mlp)
            for child, layer in part.named_children()
            for name, _, end in (child.partition("_"),)
            if end == "proj"
        )
    )


class LeanDecoder:
    """Next-token logits of rows that continue prompts; a prompt is read and kept once.

    The weights are those of the moment it is made; `refills`: rows may enter while others go on;
    `drops`: it gains by going on without finished rows; `shared`: whether several rows may go on
    from one prompt.
    """

    refills = drops = True

    def __init__(self, model: Any, *, shared: bool = True):  # Any: its modules are untyped
        config = model.config
        self.body, self.head = model.model, linear_weight(model.lm_head)
        first = self.body.layers[0].self_attn
        self.size = int(first.head_dim)
        self.queries = int(config.num_attention_heads)
        self.keys = int(config.num_key_value_heads)
        self.eps = float(config.rms_norm_eps)
        self.scale = torch.ones(self.queries + self.keys, 1).to(self.head)
        self.scale[: self.queries] = self.size**-0.5
        self.angles = self.angles_to(0)
        self.blocks = [fused(block, self.size) for block in self.body.layers]
        kind = SharedAttention if shared else RowAttention
        self.attention = kind(len(self.blocks), self.keys, self.size, like=self.head)

    def admit(self, prompts: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]) -> Tensor:
        """Read new prompts; logits (N, V) after each.

        `rows` are the places that go on from each; the first call's are 0, 1, ... in order.
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
            final = layer == len(self.blocks) - 1  # it is asked for the last tokens only
            q = (q[last].unsqueeze(1) if final else q).transpose(1, 2)
            k, v = k.transpose(1, 2), v.transpose(1, 2)
            self.attention.keep(layer, slots, k, v)
            # what stands behind a shorter prompt is seen by nothing before it
            seen = (columns <= ends)[:, None, None] if final else None
            found = scaled_dot_product_attention(
                q, k, v, seen, is_causal=not final, scale=1.0, enable_gqa=gqa
            )
            return found[:, :, 0] if final else found.transpose(1, 2)

        return self.logits(self.forward(ids, columns.expand_as(ids), attend, last))

    def step(self, tokens: Tensor, alive: Tensor) -> Tensor:
        """Logits (R, V) after one more token (R,) of every row that is alive."""
        positions = self.attention.advance(alive)
        return self.logits(self.forward(tokens, positions, self.attention))

    def select(self, rows: Tensor) -> None:
        """Go on with these rows only."""
        self.attention.select(rows)

    def forward(
        self, ids: Tensor, positions: Tensor, attend: Attend, only: Places | None = None
    ) -> Tensor:
        """Hidden states (..., H) of tokens (...), or of those at the places `only` (N, H)."""
        x = self.body.embed_tokens(ids)
        turn = self.turns(positions)
        heads = self.queries + self.keys
        for layer, block in enumerate(self.blocks):
            y = linear(rms_norm(x, x.shape[-1:], eps=self.eps), block.qkv, block.bias)
            y = y.unflatten(-1, (heads + self.keys, self.size))
            qk, v = y.split((heads, self.keys), dim=-2)
            if block.scales is not None:
                qk = rms_norm(qk, qk.shape[-1:], eps=self.eps) * block.scales
            pairs = torch.view_as_complex(qk.unflatten(-1, (-1, 2)))
            qk = torch.view_as_real(pairs * turn).flatten(-2)
            found = attend(layer, *qk.split((self.queries, self.keys), dim=-2), v)
            if only is not None and layer == len(self.blocks) - 1:
                x = x[only]
            x = x + linear(found.flatten(-2), block.out)
            y = linear(rms_norm(x, x.shape[-1:], eps=self.eps), block.gate_up)
            gate, up = y.chunk(2, dim=-1)
            x = x + linear(silu(gate).mul_(up), block.down)
        return x

    def logits(self, x: Tensor) -> Tensor:
        """Logits (..., V) of the last hidden states."""
        return linear(rms_norm(x, x.shape[-1:], self.body.norm.weight, self.eps), self.head)

    def turns(self, positions: Tensor) -> Tensor:
        """Rotations (..., heads, D / 2) of queries and keys as complex numbers.

        The queries' are scaled as attention asks, the keys' are not.
        """
        longest = int(positions.max()) + 1
        if longest > len(self.angles):
            self.angles = self.angles_to(longest + ROOM)
        return self.angles[positions].unsqueeze(-2) * self.scale

    def angles_to(self, length: int) -> Tensor:
        """Rotations (length, D / 2) of the positions up to this one."""
        positions = torch.arange(length, device=self.head.device).unsqueeze(0)
        cos, sin = self.body.rotary_emb(self.head, positions)
        return torch.complex(cos, sin)[0, :, : self.size // 2].contiguous()


@dataclass(frozen=True)
class Block:
    """The weights of a layer: what acts on the same input is one matrix, norms are folded in.

    `scales` (heads, D) are the norms of queries and keys, where the model has them.
    """

    qkv: Tensor
    bias: Tensor | None
    scales: Tensor | None
    out: Tensor
    gate_up: Tensor
    down: Tensor


def fused(block: Any, size: int) -> Block:  # Any: a decoder layer, whose modules are untyped
    """The weights of a layer, the halves of every query and key head interleaved.

    A rotation then turns neighbours, which is a product of complex numbers; as queries and keys are
    reordered alike, their products stay.
    """
    attention, mlp = block.self_attn, block.mlp
    q, k, v = attention.q_proj, attention.k_proj, attention.v_proj
    weights = [interleaved(linear_weight(part), size) for part in (q, k)]
    bias, scales = None, None
    if q.bias is not None:
        bias = torch.cat([interleaved(q.bias, size), interleaved(k.bias, size), v.bias])
    if hasattr(attention, "q_norm"):
        norms = [(attention.q_norm, q), (attention.k_norm, k)]
        scales = torch.cat(
            [interleaved(n.weight, size).expand(len(p.weight) // size, size) for n, p in norms]
        )
    return Block(
        qkv=torch.cat([*weights, linear_weight(v)]) * block.input_layernorm.weight,
        bias=bias,
        scales=scales,
        out=linear_weight(attention.o_proj),
        gate_up=torch.cat([linear_weight(mlp.gate_proj), linear_weight(mlp.up_proj)])
        * block.post_attention_layernorm.weight,
        down=linear_weight(mlp.down_proj),
    )


def interleaved(rows: Tensor, size: int) -> Tensor:
    """Rows of heads (heads x size, ...) with the two halves of each head taking turns."""
    return rows.unflatten(0, (-1, 2, size // 2)).transpose(1, 2).flatten(0, 2)
