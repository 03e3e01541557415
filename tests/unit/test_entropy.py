"""The entropy of tokens has a gradient, is paid for by a steered weight, and chooses tokens."""

import json

import pytest
import torch
from grpo_runs import double, logs, prompts
from hypothesis import given
from hypothesis import strategies as st

from core.forward import head, micro_pieces
from core.forward import logps as forward
from core.forward.head import HeadLogps
from core.forward.logps import token_logps
from core.forward.packing import can_pack
from core.losses.entropy import EntropyConfig, acting_coefficient, next_coefficient
from core.trainers.entropy_bonus import STATE
from eval.errors import DamagedFile

STEERED = {"use_adaptive_entropy": True, "entropy_target": 1.0, "entropy_coef_delta": 0.25}


def numbers(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("kept", [0, 2**26])
@pytest.mark.parametrize("chunk", [1, 10, 10**6])
def test_the_heads_entropy_has_the_gradient_of_its_definition(chunk, kept, monkeypatch):
    """-p_v (log p_v + H) by each logit, whether or not the probabilities are computed again."""
    monkeypatch.setattr(head, "CHUNK", chunk)
    monkeypatch.setattr(head, "KEPT", kept)
    hidden, weight = numbers(7, 3).requires_grad_(), numbers(10, 3).requires_grad_()
    targets, weights = torch.arange(7), numbers(2, 7)

    def gradients(logps, entropy):
        total = (weights[0] * logps + weights[1] * entropy).sum()
        return torch.autograd.grad(total, (hidden, weight))

    logps, entropy, _ = HeadLogps.apply(hidden, weight, targets, 0.7, True, False, True)
    every = (hidden @ weight.T / 0.7).log_softmax(-1)
    plain = -(every.exp() * every).sum(-1)
    torch.testing.assert_close(entropy, plain)
    expected = gradients(every[torch.arange(7), targets], plain)
    torch.testing.assert_close(gradients(logps, entropy), expected)


def test_without_being_learned_the_entropy_has_none():
    hidden, weight = numbers(4, 3).requires_grad_(), numbers(10, 3)
    _, entropy, _ = HeadLogps.apply(hidden, weight, torch.arange(4), 1.0, True, False, False)
    assert not entropy.requires_grad


def test_packed_and_padded_rows_have_one_gradient(build_llama, monkeypatch):
    model = double(build_llama())
    batch = {
        "prompt_ids": torch.tensor([[5, 6], [5, 6], [7, 8]]),
        "prompt_mask": torch.ones(3, 2).long(),
        "completion_ids": torch.tensor([[9, 10, 11], [12, 13, 0], [14, 0, 0]]),
        "completion_mask": torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0]]),
    }

    def gradient():
        model.zero_grad()
        asked = {"with_entropy": True, "learns_entropy": True}
        token_logps(model, batch, 0.9, **asked).entropy.square().sum().backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    assert can_pack(model, batch)
    packed = gradient()
    monkeypatch.setattr(forward, "can_pack", lambda *_: False)
    torch.testing.assert_close(packed, gradient())
    assert packed.norm() > 1e-3


@given(st.floats(0, 1), st.floats(0, 2))
def test_the_weight_rises_to_its_greatest_and_falls_to_its_least(coefficient, entropy):
    c = EntropyConfig(**STEERED, entropy_coef_min=0.1, entropy_coef_max=0.6)
    low, found = entropy <= 1.0, next_coefficient(coefficient, entropy, c)
    step = coefficient + 0.25 if low else coefficient - 0.25
    assert found == (min(step, 0.6) if low else max(step, 0.1))
    assert acting_coefficient(coefficient, entropy, c) == (coefficient if low else 0.0)
    fixed = EntropyConfig(entropy_coef=0.3)
    assert next_coefficient(0.3, entropy, fixed) == acting_coefficient(0.3, entropy, fixed) == 0.3


def test_a_bonus_is_in_the_loss_and_in_the_log(make_grpo):
    """With rewards that all agree it is all that is learned from."""

    def same(completions, **_):
        return [1.0] * len(completions)

    def steps(**settings):
        trainer = make_grpo(same, loss_type="grpo", **settings)
        trainer.train()
        return trainer

    paid, unpaid = steps(entropy_coef=0.1), steps()
    assert max(logs(unpaid, "grad_norm")) == 0 < min(logs(paid, "grad_norm"))
    assert logs(paid, "entropy_coef") == [0.1, 0.1]
    assert logs(paid, "policy_loss") == pytest.approx([0.0, 0.0], abs=1e-7)
    bonus = [-0.1 * entropy for entropy in logs(paid, "entropy")]
    assert logs(paid, "loss") == pytest.approx(bonus, rel=0.1)  # a mean of micro-batches' means


def test_a_bonus_is_split_like_the_loss(make_grpo, build_llama):
    """Loss, policy loss and gradient of pieces are those of the whole."""

    def step(tokens, patch):
        patch.setitem(micro_pieces.TOKENS, "cpu", tokens)
        trainer = make_grpo(model=double(build_llama()), entropy_coef=0.1, loss_type="dapo")
        trainer.train()
        return [logs(trainer, n) for n in ("loss", "grad_norm", "policy_loss", "entropy")]

    with pytest.MonkeyPatch.context() as patch:
        whole, parts = step(10**6, patch), step(1, patch)
    for one, other in zip(whole, parts, strict=True):
        assert one == pytest.approx(other, abs=1e-6)


def test_the_steered_weight_follows_the_entropy_of_the_last_step(make_grpo):
    """Nothing is known before the first step, so it acts from the second on."""
    settings = {"use_adaptive_entropy": True, "entropy_coef": 0.1, "max_steps": 3}
    up = make_grpo(**settings, entropy_target=9.0, entropy_coef_delta=0.5)
    up.train()
    assert logs(up, "entropy_coef") == [0.6, 1.0, 1.0]
    pairs = zip(logs(up, "loss"), logs(up, "policy_loss"), strict=True)
    first, second, _ = (loss - alone for loss, alone in pairs)
    assert abs(first) < 1e-6
    assert second < -1.0  # 0.6 times the entropy of some nats
    down = make_grpo(**settings, entropy_target=0.1, entropy_coef_delta=0.06)
    down.train()
    assert logs(down, "entropy_coef") == pytest.approx([0.04, 0.0, 0.0])


def test_the_state_of_a_steered_weight_is_trls_file(make_grpo):
    settings = {"use_adaptive_entropy": True, "entropy_target": 9.0}
    trainer = make_grpo(**settings, save_strategy="steps", save_steps=1)
    trainer.train()
    file = f"{trainer.args.output_dir}/checkpoint-1/{STATE}"
    with open(file, encoding="utf-8") as lines:
        state = json.load(lines)
    assert state == {
        "entropy_coef": logs(trainer, "entropy_coef")[0],
        "last_world_entropy": pytest.approx(logs(trainer, "entropy")[0], rel=0.1),
    }
    assert trainer.entropy_coef == logs(trainer, "entropy_coef")[-1]
    with open(file, "w", encoding="utf-8") as lines:
        lines.write("{}")
    with pytest.raises(DamagedFile, match="not the state of an entropy bonus"):
        make_grpo(**settings).train(f"{trainer.args.output_dir}/checkpoint-1")


@pytest.mark.parametrize("pieces", [1, 10**6])
def test_tokens_are_chosen_among_those_of_the_whole_micro_batch(pieces, make_grpo, monkeypatch):
    """And a loss may be divided by them alone."""
    monkeypatch.setitem(micro_pieces.TOKENS, "cpu", pieces)
    found = {}
    for count in ("all", "kept"):
        trainer = make_grpo(
            loss_type="dapo",
            top_entropy_quantile=0.25,
            top_entropy_normalizer=count,
            max_steps=1,
            dataset=prompts(),
        )
        seen, loss = [], trainer.loss

        def looked(model, inputs, seen=seen, loss=loss):
            seen.append(inputs)
            return loss(model, inputs)

        monkeypatch.setattr(trainer, "loss", looked)
        trainer.train()
        tokens = sum(int(batch["completion_mask"].sum()) for batch in seen)
        kept = sum(int(batch["kept_tokens"].sum()) for batch in seen)
        assert kept == pytest.approx(tokens / 4, abs=2)
        items = {float(batch["num_items_in_batch"]) for batch in seen}
        assert items == {float(kept if count == "kept" else tokens)}
        found[count] = logs(trainer, "grad_norm")[0], kept / tokens
    assert found["all"][0] == pytest.approx(found["kept"][0] * found["kept"][1], rel=1e-4)
