"""A head that computes in 32 bits whatever is around it, in training and in decoding."""

import pytest
import torch
from grpo_runs import logs
from lora_models import lora
from torch.nn.functional import linear

from core.forward.batches import token_batch
from core.forward.logps import Entropy, padded_logps, token_logps
from core.rollout.cached import CachedDecoder
from core.rollout.native.plain_forward import PlainDecoder, plain_forward_needs
from core.rollout.wide_head import WideHead, widen_head
from eval.errors import BadValue

ROWS = [[5, 6, 7], [8, 9], [10]]


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32, torch.float64])
def test_it_multiplies_in_32_bits_or_more(kind, build_llama):
    model = build_llama().to(kind)
    widen_head(model)
    hidden = torch.randn(3, 32).to(kind)
    most = torch.promote_types(kind, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = model.lm_head(hidden)
    assert found.dtype == most
    assert torch.equal(found, linear(hidden.to(most), model.lm_head.weight.to(most)))


@pytest.mark.parametrize("wide", [True, False])
def test_log_probabilities_are_those_of_its_logits(wide, build_llama):
    """Of packed rows as of padded ones, with their gradient; under autocast."""
    model, batch = build_llama(), token_batch([[1, 2], [1, 2], [3]], ROWS, 0, None)
    mask = batch["completion_mask"].bool()
    if wide:
        widen_head(model)
    found, gradients = [], []
    for read in (token_logps, lambda *a: padded_logps(*a, Entropy(computed=False))):
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logps = read(model, batch, 1.0).logps
        logps.sum().backward()
        found.append(logps.detach()[mask])
        gradients.append(model.lm_head.weight.grad.flatten())
    rows = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        hidden = model.model(rows[:1]).last_hidden_state[:, 1:-1]
    exact = linear(hidden.float(), model.lm_head.weight).log_softmax(-1)
    expected = exact.gather(-1, torch.tensor([ROWS[0]]).unsqueeze(-1))[0, :, 0]
    close = torch.allclose(found[0][:3], expected.float(), atol=1e-5, rtol=0)
    assert close is wide
    torch.testing.assert_close(*found, atol=0.02, rtol=0)
    assert torch.cosine_similarity(*gradients, dim=0) > 0.999


def test_the_native_engine_decodes_with_it(build_llama):
    model = build_llama().eval()
    widen_head(model)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        assert plain_forward_needs(model) is None
        ours, theirs = (
            decoder(model).admit([[1, 2, 3], [4, 5]], [[0], [1]])
            for decoder in (PlainDecoder, CachedDecoder)
        )
    assert ours.dtype == theirs.dtype == torch.float32
    assert not torch.equal(ours, ours.bfloat16().float())
    torch.testing.assert_close(ours, theirs, atol=0.02, rtol=0)


def test_a_trainer_and_its_reference_have_it(make_grpo):
    trainer = make_grpo(cast_lm_head_to_fp32=True, beta=0.1, bf16=True)
    trainer.train()
    for model in (trainer.model, trainer.ref_model):
        assert type(model.lm_head) is WideHead
    assert len(logs(trainer, "loss")) == 2


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
@pytest.mark.filterwarnings("ignore")  # peft's, about the head
def test_a_head_with_adapters_is_refused(build_llama):
    from peft import get_peft_model

    model = get_peft_model(build_llama(), lora(target_modules=["lm_head"]))
    with pytest.raises(BadValue, match="cast_lm_head_to_fp32=True: the head is a Linear"):
        widen_head(model.get_base_model())
