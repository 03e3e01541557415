"""The plain forward pass computes what transformers' own modules do, or leaves it to them."""

from functools import partial

import pytest
import torch
from test_engines import OTHERS

from core.rollout.cached import CachedDecoder
from core.rollout.native.plain_forward import PlainDecoder, plain_forward_needs
from core.rollout.native.prefix_attention import ROOM
from core.rollout.native.static import static_needs

PROMPTS = [[5, 6, 7], [8, 9], [10, 11, 12, 13, 14, 15], [20]]
SHAPES = {
    "grouped": {},
    "own heads": {"num_key_value_heads": 4},
    "slow rotation": {
        "rope_parameters": {"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0}
    },
    "wide heads": {"head_dim": 16},
}


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_step_gives_the_logits_of_the_modules(build_llama, shape, shared):
    """Past the first room of the buffers, while rows leave and others take their places."""
    model = build_llama(seed=1, **SHAPES[shape]).eval()
    assert plain_forward_needs(model) is None
    both = PlainDecoder(model, shared=shared), CachedDecoder(model)
    owners, late = ([0, 0, 1, 2, 3], [0, 0]) if shared else (range(5), range(2))
    prompts = PROMPTS if shared else [PROMPTS[0], *PROMPTS]
    rows = [[0, 1], [2], [3], [4]] if shared else [[0], [1], [2], [3], [4]]
    places = [[1, 3]] if shared else [[1], [3]]
    with torch.no_grad():
        mine, theirs = (decoder.admit(prompts, rows)[list(owners)] for decoder in both)
        alive = torch.ones(5, dtype=torch.bool)
        for step in range(2 * ROOM + 4):
            close = {"rtol": 1e-5, "atol": 1e-4}
            torch.testing.assert_close(mine[alive], theirs[alive], **close)
            tokens = theirs.argmax(-1)
            if step == 4:
                alive[3] = False
            if step == 90:
                keep = torch.tensor([1, 2, 4])
                for decoder in both:
                    decoder.select(keep)
                tokens, alive = tokens[keep], alive[keep]
            mine, theirs = (decoder.step(tokens, alive) for decoder in both)
            if step == 9:
                for decoder, logits in zip(both, (mine, theirs), strict=True):
                    new = decoder.admit([[30, 31, 32, 33]] * len(places), places)
                    logits[[1, 3]] = new[list(late)]
                alive[3] = True


def test_what_modules_would_do_otherwise_is_left_to_them(build_llama):
    assert plain_forward_needs(build_llama().bfloat16()) == "weights in 32 bits"
    assert plain_forward_needs(build_llama().double()) == "weights in 32 bits"
    assert plain_forward_needs(build_llama(hidden_act="gelu")) == "the activation silu"
    assert (
        plain_forward_needs(build_llama(attn_implementation="eager"))
        == "attn_implementation='sdpa'"
    )
    dynamic = {"rope_type": "dynamic", "rope_theta": 500.0, "factor": 2.0}
    assert "longest row" in plain_forward_needs(build_llama(rope_parameters=dynamic))
    hooked, wrapped, replaced = build_llama(), build_llama(), build_llama()
    hooked.model.layers[1].mlp.register_forward_hook(lambda *_: None)
    assert plain_forward_needs(hooked) == "no hooks"
    attention = wrapped.model.layers[0].self_attn
    attention.q_proj = torch.nn.Sequential(attention.q_proj)
    for model in (wrapped, build_llama(mlp_bias=True)):
        assert "nobody has wrapped" in plain_forward_needs(model)
    replaced.forward = torch.autocast("cpu", torch.bfloat16)(replaced.forward)
    assert "forward pass" in plain_forward_needs(replaced)
    with torch.autocast("cpu", torch.bfloat16):
        assert plain_forward_needs(replaced) is None


def test_hooks_that_ask_for_a_gradient_change_nothing(build_llama):
    """Gradient checkpointing, TRL's default, sets one; peft and transformers may set it twice."""
    model = build_llama()
    model.activation_checkpointing_enable()
    model.enable_input_require_grads()
    assert len(model.model.embed_tokens._forward_hooks) == 2
    assert plain_forward_needs(model) is static_needs(model) is None
    model.model.embed_tokens.register_forward_hook(lambda *_: None)
    assert plain_forward_needs(model) == static_needs(model) == "no hooks"


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_under_autocast_it_rounds_what_the_modules_round(kind, shared, build_llama):
    """From the forward pass of the modules it is little farther than their own growing cache.

    In 32 bits it is farther: it has none of the errors that both sides have in common.
    """
    model = scaled(kind, build_llama)
    ids = torch.randint(2, 60, (64, 50), generator=torch.Generator().manual_seed(0))

    def stepwise(make):
        decoder, alive = make(model), torch.ones(len(ids), dtype=torch.bool)
        found = [decoder.admit(ids[:, :20].tolist(), [[row] for row in range(len(ids))])]
        found += [decoder.step(token, alive) for token in ids[:, 20:-1].unbind(1)]
        return torch.stack(found, dim=1).float().log_softmax(-1)

    plain = partial(PlainDecoder, shared=shared)
    with torch.no_grad():
        exact = stepwise(plain)
        with torch.autocast("cpu", torch.bfloat16):
            assert plain_forward_needs(model) is None
            whole = model(ids).logits[:, 19:-1].float().log_softmax(-1)
            mine, cached = stepwise(plain), stepwise(CachedDecoder)
    mine, cached, exact = ((each - whole).square().mean().sqrt() for each in (mine, cached, exact))
    assert 0 < mine < 1.4 * cached
    assert mine < 0.8 * exact


def scaled(kind, build_llama):
    """A model with weights like those of trained ones, and norms and biases that do something."""
    settings = {"initializer_range": 0.1, "hidden_size": 64, "head_dim": 32}
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = (build_llama(**settings) if kind == "llama" else OTHERS[kind](**settings)).eval()
    random = torch.Generator().manual_seed(3)
    for name, weight in model.named_parameters():
        if "norm" in name:
            torch.nn.init.uniform_(weight, 0.5, 1.5, generator=random)
        if "bias" in name:
            torch.nn.init.normal_(weight, std=0.3, generator=random)
    return model
