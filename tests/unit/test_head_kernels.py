"""The head computed by Triton kernels equals its definition, on a GPU or in the interpreter.

Triton comes with a torch for GPUs. With `TRITON_INTERPRET=1` its interpreter runs them on a CPU.
"""

import os
from importlib.util import find_spec

import pytest
import torch

from core.forward import head
from core.forward.head import HeadLogps, KernelHeadLogps

ON = "cuda" if torch.cuda.is_available() else "cpu"
pytestmark = pytest.mark.skipif(
    not find_spec("triton") or (ON == "cpu" and os.environ.get("TRITON_INTERPRET") != "1"),
    reason="NOT TESTED: the kernels of the head need a GPU, or triton with TRITON_INTERPRET=1",
)

TOKENS, WIDTH, VOCABULARY = 9, 16, 5000  # more than a block of logits


def states(dtype):
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(TOKENS, WIDTH, generator=generator)
    weight = torch.randn(VOCABULARY, WIDTH, generator=generator)
    targets = torch.randint(VOCABULARY, (TOKENS,), generator=generator)
    targets[0] = (hidden[0] @ weight.T).argmax()  # one is the most likely token
    hidden, weight = (x.to(ON, dtype).requires_grad_() for x in (hidden, weight))
    return hidden, weight, targets.to(ON)


def outputs_and_gradients(compute, hidden, weight, *, learns):
    logps, entropy, right = compute(hidden, weight)
    scales = torch.randn(2, TOKENS, generator=torch.Generator().manual_seed(2)).to(logps)
    total = scales[0] @ logps + (scales[1] @ entropy if learns else 0)
    return logps, entropy, right, *torch.autograd.grad(total, (hidden, weight))


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("chunk", [1, 4 * VOCABULARY, 2**26])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_in_32_bits_it_is_the_definition(temperature, chunk, learns, monkeypatch):
    monkeypatch.setattr(head, "CHUNK", chunk)
    monkeypatch.setattr(head, "GPU_CHUNK", chunk)
    hidden, weight, targets = states(torch.float32)
    exact = [x.detach().double().requires_grad_() for x in (hidden, weight)]
    expected = outputs_and_gradients(
        lambda h, w: HeadLogps.apply(h, w, targets, temperature, True, True, learns),
        *exact,
        learns=learns,
    )
    found = outputs_and_gradients(
        lambda h, w: KernelHeadLogps.apply(h, w, targets, temperature, learns),
        hidden,
        weight,
        learns=learns,
    )
    assert found[2].tolist() == [1.0] + [0.0] * (TOKENS - 1)
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine.double(), other.double(), rtol=1e-5, atol=2e-5)


def test_in_16_bits_it_is_as_near_to_the_definition_as_the_other_form():
    hidden, weight, targets = states(torch.bfloat16)
    exact = [x.detach().double().requires_grad_() for x in (hidden, weight)]

    def plain(h, w):
        return HeadLogps.apply(h, w, targets, 0.7, True, True, True)

    truth = outputs_and_gradients(plain, *exact, learns=True)
    other = outputs_and_gradients(plain, hidden, weight, learns=True)
    mine = outputs_and_gradients(
        lambda h, w: KernelHeadLogps.apply(h, w, targets, 0.7, True), hidden, weight, learns=True
    )
    for ours, theirs, right in zip(mine, other, truth, strict=True):
        assert (ours - right).norm() <= 1.05 * (theirs - right).norm() + 1e-6


def test_logits_that_are_minus_infinity_are_no_tokens():
    from core.forward.head_kernels import gradient_in_place, read_logits

    logits = torch.randn(3, VOCABULARY, generator=torch.Generator().manual_seed(0)).to(ON)
    logits[:, 5::2] = -torch.inf
    total, entropy, most_likely = read_logits(logits, 1.0)
    log_probs = logits.log_softmax(-1)
    p = log_probs.exp()
    torch.testing.assert_close(total, logits.logsumexp(-1))
    torch.testing.assert_close(entropy, torch.special.entr(p).sum(-1))
    assert most_likely.equal(logits.argmax(-1))
    targets = torch.tensor([0, 1, 2], device=ON)
    ones = torch.ones(3, device=ON)
    found = gradient_in_place(logits.clone(), targets, total, entropy, ones, ones, 1.0)
    expected = torch.nn.functional.one_hot(targets, VOCABULARY) - p
    expected -= torch.nan_to_num(p * (log_probs + entropy[:, None]))
    torch.testing.assert_close(found, expected)


def test_no_tokens_have_no_gradient():
    hidden, weight, _ = states(torch.float32)
    logps, entropy, right = KernelHeadLogps.apply(
        hidden[:0], weight, torch.zeros(0, dtype=torch.long, device=ON), 1.0, True
    )
    assert logps.shape == entropy.shape == right.shape == (0,)
    (gradient,) = torch.autograd.grad((logps + entropy).sum(), weight)
    assert not gradient.any()
