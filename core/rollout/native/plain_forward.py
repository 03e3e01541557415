"""The forward pass of Llama and Qwen as plain functions: small models are mostly bookkeeping."""

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
    # whatever the model's type, its norms use this one
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


def plain_forward_lacks(model: PreTrainedModel) -> str | None:
    """What the functions below need to compute what the model's own modules would; None if all is.

    They do so outside of autocast and under it.
    """
    return next((need for need, holds in NEEDS.items() if not holds(model)), None)


def has_own_layers(model: Any) -> bool:  # Any: as above
    """Whether the layers of a model of `KNOWN` are those that transformers made it of."""
    return (
        (is_linear(model.lm_head) or type(model.lm_head) is WideHead)
        and type(model.model.embed_tokens) is nn.Embedding
        and all(
            type(module).__module__.startswith("transformers.models.")
            for name, module in model.named_modules()
            if name.endswith("norm")
        )
        and all(
            is_linear(layer) and (layer.bias is None or name in ("q", "k", "v"))
            for block in model.model.layers
            for part in (block.self_attn, block.mlp)
            for child, layer in part.named_children()
            for name, _, end in (child.partition("_"),)
            if end == "proj"
        )
    )


class PlainDecoder:
    """Next-token logits of rows that continue prompts; a prompt is read and kept once.

    The weights are those of the moment it is made; `refills`: rows may enter while others go on;
    `drops`: it gains by going on without finished rows; `shared`: whether several rows may go on
    from one prompt.
    """

    refills = drops = True

    def __init__(self, model: Any, *, shared: bool = True):  # Any: its modules are untyped
        config = model.config
        self.type = autocast_type(model.device) or model.dtype
        self.body, self.head = model.model, head_of(model.lm_head, self.type)
        first = self.body.layers[0].self_attn
        self.size = int(first.head_dim)
        self.queries = int(config.num_attention_heads)
        self.keys = int(config.num_key_value_heads)
        self.eps = float(config.rms_norm_eps)
        like = self.body.norm.weight  # of all that is added up
        self.scale = torch.ones(self.queries + self.keys, 1).to(like)
        self.scaling = self.size**-0.5
        if self.type == like.dtype:  # else queries are rounded before they are scaled
            self.scale[: self.queries], self.scaling = self.scaling, 1.0
        self.angles = self.angles_to(0)
        self.blocks = [fused(block, self.size, self.type) for block in self.body.layers]
        kind = SharedAttention if shared else RowAttention
        self.attention = kind(len(self.blocks), self.keys, self.size, self.type, like=like)

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
            q, k, v = (part.to(self.type) for part in (q, k, v))
            found = scaled_dot_product_attention(
                q, k, v, seen, is_causal=not final, scale=self.scaling, enable_gqa=gqa
            )
            return found[:, :, 0] if final else found.transpose(1, 2)

        return self.logits(self.forward(ids, columns.expand_as(ids), attend, last))

    def step(self, tokens: Tensor, alive: Tensor) -> Tensor:
        """Logits (R, V) after one more token (R,) of every row that is alive."""
        positions = self.attention.advance(alive)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return self.attention(layer, q * self.scaling, k, v)

        return self.logits(self.forward(tokens, positions, attend))

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
        with torch.autocast(x.device.type, enabled=False):  # each type is given here
            for layer, block in enumerate(self.blocks):
                y = self.product(self.normalised(x, block.before), block.qkv, block.bias)
                y = y.unflatten(-1, (heads + self.keys, self.size))
                qk, v = y.split((heads, self.keys), dim=-2)
                if block.scales is not None:
                    qk = rms_norm(qk, qk.shape[-1:], eps=self.eps) * block.scales
                pairs = torch.view_as_complex(qk.to(x.dtype).unflatten(-1, (-1, 2)))
                qk = torch.view_as_real(pairs * turn).flatten(-2)
                q, k = qk.split((self.queries, self.keys), dim=-2)
                # with the digits that attention has of them under autocast
                found = attend(layer, *(part.to(self.type).to(x.dtype) for part in (q, k, v)))
                if only is not None and layer == len(self.blocks) - 1:
                    x = x[only]
                x = x + self.product(found.flatten(-2), block.out)
                y = self.product(self.normalised(x, block.between), block.gate_up)
                gate, up = y.chunk(2, dim=-1)
                x = x + linear(silu(gate).mul_(up), block.down)
        return x

    def logits(self, x: Tensor) -> Tensor:
        """Logits (..., V) of the last hidden states."""
        return self.head(self.normalised(x, self.body.norm.weight))

    def normalised(self, x: Tensor, weight: Tensor | None) -> Tensor:
        """RMSNorm of hidden states; without a weight it is in the matrix that comes next."""
        return rms_norm(x, x.shape[-1:], weight, self.eps)

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """A linear layer; under autocast of its type and in it."""
        return linear(x.to(self.type), weight, bias)

    def turns(self, positions: Tensor) -> Tensor:
        """Rotations (..., heads, D / 2) of queries and keys as complex numbers.

        The queries' are scaled as attention asks, but under autocast; the keys' are not.
        """
        longest = int(positions.max()) + 1
        if longest > len(self.angles):
            self.angles = self.angles_to(longest + ROOM)
        return self.angles[positions].unsqueeze(-2) * self.scale

    def angles_to(self, length: int) -> Tensor:
        """Rotations (length, D / 2) of the positions up to this one."""
        like = self.body.norm.weight
        positions = torch.arange(length, device=like.device).unsqueeze(0)
        cos, sin = self.body.rotary_emb(like, positions)
        return torch.complex(cos, sin)[0, :, : self.size // 2].contiguous()


def head_of(layer: Any, kind: torch.dtype) -> Callable[[Tensor], Tensor]:  # Any: as above
    """What makes logits of hidden states: a wide head itself, or a product in a type."""
    if type(layer) is WideHead:
        return layer
    weight = linear_weight(layer).to(kind)
    return lambda x: linear(x.to(kind), weight)


@dataclass(frozen=True)
class Block:
    """The weights of a layer: what acts on the same input is one matrix.

    The norms `before` attention and `between` it and the feed-forward block are folded into the
    next matrix, or stand here: what autocast rounds is to be rounded as the modules have it.
    `scales` (heads, D) are the norms of queries and keys, where the model has them.
    """

    before: Tensor | None
    qkv: Tensor
    bias: Tensor | None
    scales: Tensor | None
    out: Tensor
    between: Tensor | None
    gate_up: Tensor
    down: Tensor


def fused(block: Any, size: int, kind: torch.dtype) -> Block:  # Any: a decoder layer, half typed
    """The weights of a layer in a type, the halves of every query and key head interleaved.

    A rotation then turns neighbours, which is a product of complex numbers; as queries and keys are
    reordered alike, their products stay.
    """
    attention, mlp = block.self_attn, block.mlp
    before, between = block.input_layernorm.weight, block.post_attention_layernorm.weight
    q, k, v = attention.q_proj, attention.k_proj, attention.v_proj
    qkv = torch.cat([*(interleaved(linear_weight(p), size) for p in (q, k)), linear_weight(v)])
    gate_up = torch.cat([linear_weight(mlp.gate_proj), linear_weight(mlp.up_proj)])
    bias, scales = None, None
    if q.bias is not None:
        bias = torch.cat([interleaved(q.bias, size), interleaved(k.bias, size), v.bias]).to(kind)
    if hasattr(attention, "q_norm"):
        norms = [(attention.q_norm, q), (attention.k_norm, k)]
        scales = torch.cat(
            [interleaved(n.weight, size).expand(len(p.weight) // size, size) for n, p in norms]
        )
    folds = kind == before.dtype
    return Block(
        before=None if folds else before,
        qkv=qkv * before if folds else qkv.to(kind),
        bias=bias,
        scales=scales,
        out=linear_weight(attention.o_proj).to(kind),
        between=None if folds else between,
        gate_up=gate_up * between if folds else gate_up.to(kind),
        down=linear_weight(mlp.down_proj).to(kind),
    )


def interleaved(rows: Tensor, size: int) -> Tensor:
    """Rows of heads (heads x size, ...) with the two halves of each head taking turns."""
    return rows.unflatten(0, (-1, 2, size // 2)).transpose(1, 2).flatten(0, 2)
