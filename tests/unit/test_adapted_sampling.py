"""Rollouts of a model with adapters: which ones the plain forward adds, and which the modules."""

import pytest
import torch
from lora_models import adapted, lora
from peft import IA3Config, get_peft_model

from core.rollout.cached import CachedDecoder
from core.rollout.merged_adapters import linear_weight, unwrap_peft
from core.rollout.native.plain_forward import PlainDecoder, plain_forward_needs
from core.samplers.policy import PolicySampler
from eval.samples.evaluation import Decoding

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
PROMPTS = [[5, 6, 7], [8, 9], [10, 11, 12, 13]]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"target_modules": ["q_proj", "down_proj"], "use_rslora": True, "lora_alpha": 3},
        {"target_modules": ["lm_head", "v_proj"]},
    ],
)
@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`")
def test_the_lean_pass_adds_the_adapters(changes, build_llama):
    model = adapted(build_llama, **changes)
    assert plain_forward_needs(unwrap_peft(model)) is None
    rows = [[0], [1], [2]]
    with torch.no_grad():
        both = PlainDecoder(unwrap_peft(model)), CachedDecoder(unwrap_peft(model))
        mine, theirs = (decoder.admit(PROMPTS, rows) for decoder in both)
        for _ in range(5):
            torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=2e-4)
            tokens = theirs.argmax(-1)
            mine, theirs = (d.step(tokens, torch.ones(3, dtype=torch.bool)) for d in both)
        with model.disable_adapter():
            off = PlainDecoder(unwrap_peft(model)).admit(PROMPTS, rows)
        plain = PlainDecoder(build_llama(seed=1)).admit(PROMPTS, rows)
    assert torch.equal(off, plain)
    assert (mine - plain).abs().max() > 0.1


@pytest.mark.parametrize(
    "config",
    [
        lora(use_dora=True),
        lora(modules_to_save=["norm"]),
        lora(modules_to_save=["lm_head"], target_modules=["q_proj"]),
        lora(target_modules=["embed_tokens"]),
        lora(lora_bias=True, target_modules=["q_proj"]),
        IA3Config(task_type="CAUSAL_LM"),
    ],
)
@pytest.mark.filterwarnings("ignore")  # peft's, about tied weights
def test_other_adapters_are_left_to_the_modules(config, build_llama, tiny_tokenizer):
    model = get_peft_model(build_llama(seed=1), config).eval()
    assert plain_forward_needs(unwrap_peft(model)) is not None
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.mul_(1.3).add_(0.05)
    sampler = PolicySampler(model, tiny_tokenizer)
    (tokens,) = sampler.draw([[5, 6, 7]], Decoding(max_tokens=6), [0])
    ids = torch.tensor([[5, 6, 7, *tokens]])
    greedy = model(input_ids=ids).logits.argmax(-1)[0, 2:-1]
    assert greedy.tolist() == tokens


def test_merged_adapters_are_left_to_the_modules(build_llama):
    model = adapted(build_llama)
    model.merge_adapter()
    assert plain_forward_needs(unwrap_peft(model)) is not None


def test_autocast_takes_no_digits_from_adapters(build_llama):
    """Their weights are handed to engines whole; the modules themselves round each product."""
    wrapped = adapted(build_llama)
    model = unwrap_peft(wrapped)
    layer = model.model.layers[0].self_attn.q_proj
    plain = linear_weight(layer)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(linear_weight(layer), plain)
        assert plain_forward_needs(model) == "adapters off under autocast"
        with wrapped.disable_adapter():
            assert plain_forward_needs(model) is None
