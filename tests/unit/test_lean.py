"""The lean forward pass computes what transformers' own modules do, or leaves it to them."""

import pytest
import torch

from core.rollout.cached import CachedDecoder
from core.rollout.lean import LeanDecoder, is_lean
from core.rollout.shared import ROOM

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
    assert is_lean(model)
    both = LeanDecoder(model, shared=shared), CachedDecoder(model)
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
    assert not is_lean(build_llama().bfloat16())
    assert not is_lean(build_llama().double())
    assert not is_lean(build_llama(hidden_act="gelu"))
    assert not is_lean(build_llama(attn_implementation="eager"))
    assert not is_lean(build_llama(mlp_bias=True))
    dynamic = {"rope_type": "dynamic", "rope_theta": 500.0, "factor": 2.0}
    assert not is_lean(build_llama(rope_parameters=dynamic))
    hooked, wrapped = build_llama(), build_llama()
    hooked.model.layers[1].mlp.register_forward_hook(lambda *_: None)
    assert not is_lean(hooked)
    attention = wrapped.model.layers[0].self_attn
    attention.q_proj = torch.nn.Sequential(attention.q_proj)
    assert not is_lean(wrapped)
    with torch.autocast("cpu"):
        assert not is_lean(build_llama())
