"""Quantities of the tokens that truncation keeps: by hand, in chunks, and of a trained policy."""

import math
from dataclasses import replace

import pytest
import torch

from core.claims import START, Claim, least, probability
from core.families.table import ROWS
from core.forward import kept_tokens as measured
from core.forward.kept_tokens import (
    KEPT_TOKENS,
    kept_quantity,
    kept_statistics,
    kept_tokens,
    statistics_of,
)
from core.forward.own_answers import labelled_rows
from core.rollout.engine import Sampling
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.record import measure
from papers.ssd import PAPER

# The worked example of the paper's card: two tokens kept at temperature 1.6 and top-p 0.8.
LOGITS, P = torch.tensor([[2.0, 1.0, 0.0, -3.0]]), (0.662272, 0.243636, 0.089629, 0.004462)


def sampling(temperature=1.6, top_k=0, top_p=1.0):
    return Sampling(
        max_tokens=1, ends=frozenset(), temperature=temperature, top_k=top_k, top_p=top_p
    )


def entropy(*shares):
    return -sum(p / sum(shares) * math.log(p / sum(shares)) for p in shares)


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"top_p": 0.8}, 2),
        ({"top_p": 0.95}, 3),
        ({"top_k": 3}, 3),
        ({"top_k": 3, "top_p": 0.8}, 2),
        ({}, 4),
    ],
)
def test_statistics_by_hand(options, kept):
    mask = kept_tokens(LOGITS, sampling(**options))
    assert mask.tolist() == [[place < kept for place in range(4)]]
    found = statistics_of(LOGITS, mask, 1.6)
    assert found.outside.item() == pytest.approx(sum(P[kept:]), abs=1e-6)
    assert found.entropy.item() == pytest.approx(entropy(*P[:kept]), abs=1e-5)
    heated = [p ** (1 / 1.6) for p in P[:kept]]
    assert found.tempered.item() == pytest.approx(entropy(*heated), abs=1e-5)


def test_what_a_policy_keeps_is_decided_by_its_start_and_not_by_itself():
    mask = kept_tokens(LOGITS, sampling(top_p=0.8))
    found = statistics_of(LOGITS.flip(-1), mask, 1.6)
    assert found.outside.item() == pytest.approx(P[0] + P[1], abs=1e-6)


ROWS_ = labelled_rows([[5, 6, 7], [8]], [[9, 10], [11, 12, 13, 14]])


@pytest.mark.parametrize("most", [1, 200, 10**9])
def test_chunks_of_any_size_give_the_softmax_of_whole_rows(tiny_llama, monkeypatch, most):
    asked, model, sizes = sampling(top_p=0.8), tiny_llama.eval(), []
    monkeypatch.setattr(measured, "chunk_size", lambda _: most)
    monkeypatch.setattr("core.forward.labelled.chunk_size", lambda _: most)
    whole = statistics_of

    def watched(logits, kept, temperature):
        sizes.append(logits.numel())
        return whole(logits, kept, temperature)

    monkeypatch.setattr(measured, "statistics_of", watched)
    found = kept_statistics(model, model, ROWS_, asked, pad=0)
    assert max(sizes) <= max(most, model.config.vocab_size)
    for row, one in zip(ROWS_, found, strict=True):
        first = row["labels"].count(-100)
        with torch.inference_mode():
            logits = model(torch.tensor([row["input_ids"]])).logits[0, first - 1 : -1]
        expected = whole(logits, kept_tokens(logits, asked), 1.6)
        for a, b in zip(one, expected, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=0)


def test_a_quantity_is_the_mean_over_all_tokens(tiny_llama):
    rows = kept_statistics(tiny_llama.eval(), tiny_llama, ROWS_, sampling(top_k=3), pad=0)
    tokens = torch.cat([row.outside for row in rows])
    found = kept_quantity("kept/outside", rows)
    assert (found.value, found.n) == (pytest.approx(tokens.mean().item()), 2)
    assert len(tokens) == 6


def test_families_declare_quantities_that_there_are():
    declared = [family for family in ROWS if family.kept_tokens]
    assert declared
    for family in declared:
        assert set(family.kept_tokens) <= KEPT_TOKENS.keys()
        config = family.config_class()(output_dir="runs", use_cpu=True, bf16=False)
        assert family.truncation(config)["temperature"] == config.temperature


def test_a_run_measures_both_models_at_the_answers_of_its_start(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    below = least(
        *(probability(name).of(START) - probability(name).of("ssd") for name in KEPT_TOKENS)
    )
    brief = {"max_steps": 1, "heldout_problems": 4, "benchmarks": (), "max_completion_length": 8}
    brief |= {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 1}
    brief |= {"rate_factors": (), "learning_rate": 1e-2, "filter_empty": False}
    claims = (Claim("below", ".", below > 0),)
    asked = replace(PAPER, slug="asking", claims=claims, arms={"ssd": {}}, profiles={"cpu": brief})
    chain = Chain(resolve(asked))
    for stage in chain.training:
        stage.run()
    found = measure(chain)
    assert found.keys() == KEPT_TOKENS.keys()
    assert all(one["n"] == 4 and one["before"] != one["after"] for one in found.values())
    assert 0 < found["kept/outside"]["before"] < 0.5
    hotter = Chain(resolve(asked, arguments=("temperature=2.0",)))
    assert hotter.probabilities[0].key != chain.probabilities[0].key
