"""Votes that are weighted by probabilities, votes of the halves by agreement, and exact laws."""

from dataclasses import asdict, replace
from math import log

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.paper import Evaluation
from core.samplers.policy import PolicySampler
from core.stages.answer_logps import with_logps
from core.stages.evaluate import Scored
from core.stages.outcomes import outcomes_of
from core.stages.questions import check_metrics
from core.verdicts.regrade import measure
from eval.errors import BadValue, DamagedFile
from eval.samples.parquet import read_columns, read_set, write_sets
from eval.samples.store import (
    Sample,
    Weighed,
    digest_of,
    read_samples,
    to_sample,
    write_samples,
)
from eval.sets.benchmarks import find_benchmark
from eval.stats.estimates import Votes, maj_at_k, pass_at_k
from eval.stats.summary import score
from eval.stats.vote_laws import excess, outcomes, partitions
from eval.stats.voting import Ballots, tally, weighted_share

GSM8K = find_benchmark("gsm8k")
# The worked example of arXiv 2203.11171 in its card: answer, log-probability, tokens.
PATHS = (("18", -2.0, 4), ("17", -1.0, 4), ("18", -3.0, 6), ("26", -0.8, 4), ("17", -6.0, 5))
PATHS += (("18", -5.0, 8),)
LABELS = st.lists(st.sampled_from([None, 0, 1, 2, 3]), min_size=1, max_size=8)


def weighed(answer, logp, tokens, k=0, key="a", right="18"):
    return Weighed(
        benchmark="gsm8k",
        id=key,
        sample=k,
        output="",
        tokens=tokens,
        truncated=None,
        extracted=answer,
        correct=answer == right,
        rule="boxed",
        reason="",
        logp=logp,
    )


def plain(sample):
    """The sample without its log-probability."""
    return Sample(**{k: v for k, v in asdict(sample).items() if k != "logp"})


def row_of(right="18", key="a"):
    return [weighed(*path, k=k, key=key, right=right) for k, path in enumerate(PATHS)]


@pytest.mark.parametrize(
    ("metric", "winner"), [("maj", "18"), ("maj-prob", "26"), ("maj-norm", "18")]
)
def test_the_worked_example_has_its_winners(metric, winner):
    for right in ("18", "17", "26"):
        (result,) = score(row_of(right), GSM8K, (f"{metric}@6",))
        assert result.value == 100 * (right == winner)


def test_the_worked_sums_decide_the_margins():
    """The sums of the card: a right answer whose weight lies between them wins or loses."""
    sums = {"18": 0.19186, "17": 0.370358, "26": 0.449329}
    for answer, total in sums.items():
        for factor, wins in ((1.001, True), (0.999, False)):
            labels = [1 if a == answer else None for a, _, _ in PATHS] + [0]
            logs = [p for _, p, _ in PATHS] + [log(total * factor)]
            assert weighted_share(labels, logs) == wins


@given(LABELS, st.floats(-2000, 0))
def test_equal_weights_are_the_majority(labels, log_weight):
    n = len(labels)
    majority = maj_at_k(tally(labels), n)
    assert weighted_share(labels, [log_weight] * n) == pytest.approx(majority, abs=1e-15)


@given(
    st.lists(st.tuples(st.sampled_from([None, 0, 1, 2]), st.floats(-50, 0)), min_size=1),
    st.floats(-900, 900),
)
def test_a_common_factor_of_the_weights_changes_nothing(votes, shift):
    labels, logs = map(list, zip(*votes, strict=True))
    logs = [round(x, 3) for x in logs]
    moved = [x + round(shift) for x in logs]
    assert weighted_share(labels, moved) == pytest.approx(weighted_share(labels, logs))


def test_the_halves_are_split_by_agreement():
    rows = [
        [weighed(a, -1.0, 5, k, key, "1") for k, a in enumerate(answers)]
        for key, answers in {"a": "1111", "b": "1234", "c": "2221", "d": "1123"}.items()
    ]
    ballots = Ballots(rows)
    assert ballots.agreement == [1.0, 0.25, 0.75, 0.5]
    flat = [s for row in rows for s in row]
    upper, lower, both = score(flat, GSM8K, ("maj-upper@4", "maj-lower@4", "maj@4"))
    assert (upper.value, lower.value) == (50.0, 62.5)  # a and c; b shares its vote, d wins
    assert both.value == pytest.approx((upper.value + lower.value) / 2)


def test_a_weighted_vote_needs_log_probabilities_of_all_samples():
    with pytest.raises(BadValue, match="sample 0 of a has no log-probability"):
        score([plain(row_of()[0])], GSM8K, ("maj-prob@1",))
    with pytest.raises(BadValue, match="weighted votes and rm-vote@K exactly K"):
        score(row_of(), GSM8K, ("maj-norm@5",))
    with pytest.raises(BadValue, match="maj-lower@K"):
        score(row_of(), GSM8K, ("maj-best@6",))


def test_a_vote_is_never_above_pass_on_any_outcome_of_8_samples():
    assert sum(1 for _ in partitions(8)) == 22  # the partitions of 8
    assert len([*outcomes(2)]) == 7  # right: 2, 1 + blank, 1 + wrong, 0 with 2 + 1 + 1 others
    assert max(excess(8)) <= 1e-12
    assert min(excess(8)) == 0.0  # equal at one m at least
    plurality_only = Votes((3, 3, 2), (True, False, False))
    assert maj_at_k(plurality_only, 8) == 0.5
    assert pass_at_k(8, 3, 8) == 1.0


@pytest.mark.parametrize(("rates", "limit"), [((0.4, 0.35, 0.25), 1.0), ((0.35, 0.4, 0.25), 0.0)])
def test_the_vote_tends_to_the_mode(rates, limit):
    votes = Votes(tuple(round(100_000 * rate) for rate in rates), (True, False, False))
    distances = [abs(maj_at_k(votes, k) - limit) for k in (1, 101, 2001)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.02


def test_log_probabilities_survive_both_stores(tmp_path):
    row = row_of()
    digest = write_samples(tmp_path / "s.jsonl.gz", row)
    assert read_samples(tmp_path / "s.jsonl.gz", digest) == row
    other = [plain(s) for s in row]
    write_sets(tmp_path / "s.parquet", {"a": row, "b": other})
    assert read_set(tmp_path / "s.parquet", "a", digest_of(row)) == row
    assert read_set(tmp_path / "s.parquet", "b", digest_of(other)) == other
    write_sets(tmp_path / "t.parquet", {"b": other})
    assert read_set(tmp_path / "t.parquet", "b", digest_of(other)) == other
    assert set(read_columns(tmp_path / "t.parquet").rows("b")["logp"]) == {None}
    assert digest_of(row) != digest_of([replace(s, logp=s.logp - 1e-6) for s in row])


def test_a_log_probability_of_another_type_is_damage():
    with pytest.raises(DamagedFile, match="expected the keys"):
        to_sample(b'{"logp": "x"}', "line 1")


def test_log_probabilities_are_those_of_the_tokens(build_llama, tiny_tokenizer):
    """By a forward pass of one row without padding; samples of one text share one number."""
    sampler = PolicySampler(build_llama(seed=4), tiny_tokenizer)
    texts = ("2 + 2", "2", "2 + 2")
    samples = [replace(plain(s), output=t) for s, t in zip(row_of(), texts, strict=False)]
    found = with_logps(samples, sampler, {"a": "1 + 1"})
    assert [plain(s) for s in found] == samples
    assert found[0].logp == found[2].logp != found[1].logp
    for sample in found[:2]:
        prompt = sampler.encode("1 + 1")
        own = tiny_tokenizer(sample.output, add_special_tokens=False)["input_ids"]
        answer = [*own, tiny_tokenizer.eos_token_id]
        with torch.inference_mode():
            logits = sampler.model(torch.tensor([prompt + answer])).logits[0]
        logps = logits.double().log_softmax(-1)[len(prompt) - 1 : -1]
        expected = sum(float(row[token]) for row, token in zip(logps, answer, strict=True))
        assert sample.logp == pytest.approx(expected, abs=1e-4)


def test_outcomes_of_arms_keep_samples_with_log_probabilities(tmp_path):
    digest = write_samples(tmp_path / "s.jsonl.gz", row_of())
    row = {"benchmark": "gsm8k", "mirrors": "gsm8k", "metric": "maj-prob@6", "digest": digest}
    scored = Scored(scores=[row], files={digest: tmp_path / "s.jsonl.gz"})
    assert outcomes_of(scored).scores == scored.scores


def test_a_recorded_weighted_vote_is_computed_again():
    fields = measure(row_of("26"), GSM8K, {"metric": "maj-prob@6"})
    assert fields["value"] == 100.0


@pytest.mark.parametrize(
    ("evaluation", "message"),
    [
        (Evaluation(samples=4, temperature=1.0, metrics=("maj@5",)), "maj@5 from 4 samples"),
        (Evaluation(samples=4, temperature=1.0, metrics=("maj-norm@2",)), "maj-norm@2 from 4"),
        (
            Evaluation(samples=4, temperature=1.0, mode="tir", metrics=("maj-prob@4",)),
            "maj-prob@4 in the mode tir",
        ),
    ],
)
def test_metrics_that_the_samples_cannot_give_are_refused(evaluation, message):
    with pytest.raises(BadValue, match=message):
        check_metrics(evaluation)
