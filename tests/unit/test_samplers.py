"""Sampling from weights that are old or rounded, and from a part of the vocabulary that is kept."""

from itertools import pairwise
from math import ceil

import pytest
import torch
from grpo_runs import digits, logs, prompts, weights
from hypothesis import given
from hypothesis import strategies as st
from lora_models import adapted
from torch.nn.functional import log_softmax
from transformers import TrainerCallback

from core.configs.engines import ENGINES
from core.forward.batches import token_batch
from core.forward.head import HeadLogps
from core.forward.logps import Entropy, padded_logps, token_logps
from core.rollout.support import as_bytes, as_tensor, support, within
from core.shards.past_weights import round_weight
from eval.errors import BadValue

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
INSIDE = sorted(name for name, row in ENGINES.items() if not row.is_vllm)
KEEPING = sorted(name for name, row in ENGINES.items() if row.keeps_support)
SINGLE = 1e-4


@given(st.integers(0, 10**6), st.integers(2, 12))
def test_rounded_weights_are_multiples_of_a_step_of_their_row(seed, bits):
    random = torch.Generator().manual_seed(seed)
    weight = torch.randn(3, 2, 17, generator=random, dtype=torch.float64)
    weight[0, 0] = 0.0
    found, most = round_weight(weight, bits), 2 ** (bits - 1) - 1
    step = weight.abs().amax(-1, keepdim=True) / most
    assert ((found - weight).abs() <= step / 2 + 1e-12).all()
    torch.testing.assert_close(found.abs().amax(-1), weight.abs().amax(-1))
    levels = (found / step).nan_to_num(0.0)
    torch.testing.assert_close(levels, levels.round())
    assert levels.abs().max() <= most + 1e-9
    torch.testing.assert_close(round_weight(found, bits), found)
    torch.testing.assert_close(round_weight(-weight, bits), -found)


def test_what_has_no_rows_is_not_rounded():
    norm = torch.randn(8)
    assert round_weight(norm, 2) is norm


class Kept(TrainerCallback):
    """The weights before each optimizer step."""

    def __init__(self):
        self.before = []

    def on_step_begin(self, *_, **given):
        self.before.append(weights(given["model"]))


def watched(trainer):
    """The weights that each rollout was sampled from, and the steps at which they were."""
    kept, sampled, engine = Kept(), [], trainer.engine

    def watch(model):
        sampled.append((trainer.state.global_step, trainer.mode, weights(model)))
        return engine(model)

    trainer.add_callback(kept)
    trainer.engine = watch
    trainer.train()
    return kept.before, sampled


@pytest.mark.parametrize(
    ("lag", "split"),
    [(1, {}), (3, {}), (2, {"steps_per_generation": 8}), (2, {"steps_per_generation": 1})],
)
def test_a_lag_samples_from_the_weights_of_so_many_steps_ago(lag, split, make_grpo):
    trainer = make_grpo(rollout_lag=lag, max_steps=6, **split)
    before, sampled = watched(trainer)
    assert len(sampled) == ceil(6 * 2 / split.get("steps_per_generation", 2))
    for step, _, found in sampled:
        assert found.equal(before[max(0, step - lag)])
    assert all(not a.equal(b) for a, b in pairwise(before))


def test_bits_round_what_samples_and_nothing_else(make_grpo, build_llama):
    trainer = make_grpo(rollout_bits=3, evaluation=prompts(4), eval_strategy="steps", eval_steps=1)
    before, sampled = watched(trainer)
    model = build_llama()
    for step, mode, found in sampled:
        own = before[step] if step < len(before) else weights(trainer.model)
        if mode == "eval":
            assert found.equal(own)
            continue
        torch.nn.utils.vector_to_parameters(own, model.parameters())
        whole = {id(model.lm_head.weight), id(model.model.embed_tokens.weight)}
        parts = [p if id(p) in whole else round_weight(p, 3) for p in model.parameters()]
        assert found.equal(torch.cat([part.detach().flatten() for part in parts]))
        assert not found.equal(own)
    assert {mode for _, mode, _ in sampled} == {"train", "eval"}


def test_lagged_adapters_are_those_of_steps_ago(make_grpo, build_llama):
    trainer = make_grpo(rollout_lag=2, max_steps=4, model=adapted(build_llama))
    before, sampled = watched(trainer)
    for step, _, found in sampled:
        assert found.equal(before[max(0, step - 2)])
    assert not before[0].equal(before[-1])


@pytest.mark.parametrize("engine", INSIDE)
def test_a_sampler_with_the_trained_weights_has_ratio_1(engine, make_grpo):
    options = {"rollout_engine": engine, "temperature": 0.8, "steps_per_generation": 4}
    trainer = make_grpo(compare_sampler=True, max_steps=2, **options)
    trainer.train()
    for end in ("min", "mean", "max"):
        found = logs(trainer, f"sampling/importance_sampling_ratio/{end}")
        assert found == pytest.approx([1.0] * len(found), abs=SINGLE)
    assert max(logs(trainer, "sampling/sampling_logp_difference/max")) < SINGLE
    assert logs(trainer, "sampling/masked_fraction") == [0.0]


@pytest.mark.parametrize("engine", INSIDE)
def test_every_engine_samples_from_the_rounded_weights(engine, make_grpo):
    """What it says of its tokens is what a model with those weights says."""
    trainer = make_grpo(rollout_engine=engine, rollout_bits=3)
    trainer.model.train()
    batch = trainer.rollout([{"prompt": row["prompt"]} for row in prompts(2) for _ in range(4)])
    found = []
    for bits in (3, None):
        with trainer.past.within(trainer.model, bits):
            found.append(token_logps(trainer.model, batch, 1.0).logps.detach())
    said = batch["sampling_logps"].to(found[0]) * batch["completion_mask"]
    torch.testing.assert_close(said, found[0], atol=SINGLE, rtol=0)
    assert (said - found[1]).abs().max() > 0.01


@pytest.mark.parametrize("correction", [True, False])
def test_another_sampler_is_corrected_unless_that_is_turned_off(correction, make_grpo):
    options = {"vllm_importance_sampling_mode": "token_truncate", "rollout_bits": 2}
    trainer = make_grpo(vllm_importance_sampling_correction=correction, **options)
    trainer.train()
    assert min(logs(trainer, "sampling/sampling_logp_difference/mean")) > 1e-3
    ratios = logs(trainer, "sampling/importance_sampling_ratio/max")
    assert (len(ratios) == 2 and min(ratios) > 1) if correction else ratios == []


def test_the_off_policy_mask_reads_the_engine(make_grpo):
    """On-policy nothing is left out; of a sampler that is far away, negative completions are."""
    for bits, same in ((None, True), (2, False)):
        options = {"rollout_bits": bits, "vllm_importance_sampling_correction": False}
        masked, free = (
            make_grpo(**options, off_policy_mask_threshold=threshold) for threshold in (0.01, None)
        )
        for trainer in (masked, free):
            trainer.train()
        apart = (weights(masked.model) - weights(free.model)).abs().max()
        assert (apart < 1e-5) if same else (apart > 1e-4)


@given(st.integers(0, 10**6), st.integers(2, 40))
def test_support_is_what_is_not_minus_infinity(seed, vocabulary):
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(3, 4, vocabulary, generator=random)
    cut = logits.masked_fill(torch.rand(logits.shape, generator=random) < 0.5, -torch.inf)
    kept = support(cut)
    assert torch.equal(within(logits, kept) > -1e29, cut > -torch.inf)
    rows = [as_bytes(kept[0]), as_bytes(kept[1, :2])]
    again = as_tensor(rows, 5)
    assert torch.equal(again[0, :4], kept[0])
    assert torch.equal(again[1, :2], kept[1, :2])
    assert torch.equal(within(logits[:1, :3], again[1:, 2:]), logits[:1, :3])


@pytest.mark.parametrize("learns", [False, True])
def test_the_head_normalises_over_what_is_kept(learns):
    random = torch.Generator().manual_seed(0)
    hidden = torch.randn(5, 4, generator=random, dtype=torch.float64)
    weight = torch.randn(11, 4, generator=random, dtype=torch.float64)
    targets, cut = torch.arange(5), torch.rand(5, 11, generator=random) < 0.4
    cut[torch.arange(5), targets] = False
    kept = support(torch.zeros(5, 11).masked_fill(cut, -torch.inf))
    gradients, values = [], []
    for ours in (True, False):
        h, w = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
        if ours:
            logps, entropy, _ = HeadLogps.apply(h, w, targets, 0.7, True, False, learns, kept)
        else:
            every = log_softmax((h @ w.T / 0.7).masked_fill(cut, -1e30), -1)
            logps, entropy = every[torch.arange(5), targets], -(every.exp() * every).sum(-1)
        (logps.sum() + (entropy.square().sum() if learns else 0)).backward()
        values.append(torch.stack([logps, entropy]).detach())
        gradients.append(torch.cat([h.grad, w.grad]))
    torch.testing.assert_close(*values)
    torch.testing.assert_close(*gradients)


def test_packed_and_padded_rows_keep_the_same(build_llama):
    random = torch.Generator().manual_seed(0)
    model = build_llama()
    rows = [[5, 6, 7], [8], [9, 10]]
    batch = token_batch([[1, 2], [1, 2], [3, 4, 5]], rows, 0, None)
    vocabulary = model.config.vocab_size
    cut = torch.rand(3, 3, vocabulary, generator=random) < 0.5
    cut.scatter_(2, batch["completion_ids"].unsqueeze(-1), value=False)
    kept = support(torch.zeros(cut.shape).masked_fill(cut, -torch.inf))
    batch["support"] = kept
    packed = token_logps(model, batch, 0.9, with_entropy=True)
    padded = padded_logps(model, batch, 0.9, Entropy(computed=True))
    torch.testing.assert_close(packed.logps, padded.logps)
    torch.testing.assert_close(packed.entropy, padded.entropy)
    del batch["support"]
    free = token_logps(model, batch, 0.9)
    there = batch["completion_mask"].bool()
    assert (packed.logps > free.logps)[there].all()


@pytest.mark.parametrize("engine", KEEPING)
def test_with_the_mask_of_the_sampler_equal_weights_have_ratio_1(engine, make_grpo):
    """And without it the ratio of a token is the probability that top-p left over."""
    options = {"rollout_engine": engine, "top_p": 0.7, "compare_sampler": True, "max_steps": 2}
    options["vllm_importance_sampling_mode"] = "token_truncate"
    found = []
    for keeps in (True, False):
        trainer = make_grpo(keep_sampling_mask=keeps, steps_per_generation=4, **options)
        trainer.train()
        (mean,) = logs(trainer, "sampling/importance_sampling_ratio/mean")
        (most,) = logs(trainer, "sampling/importance_sampling_ratio/max")
        found.append((mean, most))
    assert found[0] == pytest.approx((1.0, 1.0), abs=SINGLE)
    assert found[1][1] < 0.95
    assert found[1][0] == pytest.approx(0.7, abs=0.1)


def test_settings_of_a_sampler_are_refused_beside_a_rollout_function(make_grpo):
    def rollout(prompts, trainer):
        raise NotImplementedError

    for options in ({"rollout_lag": 1}, {"keep_sampling_mask": True, "top_k": 2}):
        with pytest.raises(BadValue, match="cannot act: rollout_func makes the completions"):
            make_grpo(digits, rollout=rollout, **options)


def test_rounding_is_refused_beside_adapters(make_grpo, build_llama):
    with pytest.raises(BadValue, match="rollout_bits=4 rounds whole weights"):
        make_grpo(rollout_bits=4, model=adapted(build_llama))
