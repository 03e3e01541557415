"""Laws of the share of different grams and of the calibration error of sampled answers."""

from dataclasses import replace
from math import log, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.paper import Evaluation
from core.records.passed import Passed
from core.records.places import results
from core.records.run_samples import write_run_samples
from core.stages.evaluate import Scored
from core.stages.outcomes import outcomes_of
from core.stages.questions import check_metrics
from core.verdicts.regrade import Regrader, measure
from eval.errors import BadValue
from eval.grading.extraction import WHOLE
from eval.samples.parquet import write_sets
from eval.samples.sealing import brief
from eval.samples.store import Sample, Weighed, digest_of, write_samples
from eval.sets.benchmarks import find_benchmark
from eval.stats.calibration import BINS, calibration_gaps
from eval.stats.grams import tokens_of
from eval.stats.summary import score

GSM8K, KEY = find_benchmark("gsm8k"), "gsm8k-test-0"
NANO = find_benchmark("nano-sums", 3)
DRAWN = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


def answer(text, k=0, key="a", **fields):
    values = {"tokens": 1, "truncated": None, "correct": True, "reason": "", "rule": "boxed"}
    values |= {"benchmark": "gsm8k", "id": key, "sample": k, "output": text, "extracted": text}
    return Sample(**(values | fields))


def distinct(*texts, **fields):
    """The share of different grams among texts that answer one problem."""
    samples = [answer(text, k, **fields) for k, text in enumerate(texts)]
    return score(samples, GSM8K, (f"distinct-4@{len(texts)}",))[0].value


def error(answers):
    """The calibration error of pairs of a chance and whether the answer is right."""
    (gaps,) = calibration_gaps([[p for p, _ in answers]], [[right for _, right in answers]])
    return sum(gaps) / len(gaps)


def weighed(key, chance, correct, k=0):
    fields = vars(answer("1", k, key, correct=correct))
    return Weighed(**fields, logp=log(chance))


def test_one_text_again_and_again_has_a_kth_of_its_grams_and_other_texts_have_all():
    assert distinct(*["one two three four five six"] * 4) == 25.0
    assert distinct("a b c d e", "f g h i j", "1234567", "+-*/") == 100.0
    assert distinct("7 8", "7 8", "7 9") == pytest.approx(200 / 3)  # each text is one gram
    assert distinct("1 2 1 2 1 2 1 2") == pytest.approx(100 * 2 / 5)


@given(st.lists(st.text("ab 1", max_size=12), min_size=1, max_size=6), st.randoms())
def test_the_order_of_texts_is_nothing_and_a_text_again_adds_no_gram(texts, random):
    shuffled = random.sample(texts, len(texts))
    assert distinct(*texts) == distinct(*shuffled)
    assert 0 < distinct(*texts, *texts) == pytest.approx(distinct(*texts) / 2)


def test_tokens_are_words_and_single_digits_or_the_characters_of_whole_outputs():
    assert tokens_of(answer("We add 12+3 = 15_x")) == ["We", "add", *"12+3=15_", "x"]
    assert tokens_of(answer("aQ1", rule=WHOLE)) == [*"aQ1"]
    assert tokens_of(brief(answer("aQ1", rule=WHOLE))) == [*"aQ1"]
    with pytest.raises(BadValue, match="sample 0 of a is stored without its text"):
        tokens_of(brief(answer("so 3", extracted="3")))


def test_calibrated_answers_have_an_error_of_their_sampling_alone():
    """In expectation sqrt(2 / pi) standard errors of the share of right answers in a bin."""
    random, n = Random(0), 4000
    chances = [random.random() for _ in range(n)]
    errors = [error([(p, random.random() < p) for p in chances]) for _ in range(20)]
    middles = [(i + 0.5) / BINS for i in range(BINS)]
    expected = [sqrt(2 / 3.14159 * p * (1 - p) * BINS / n) for p in middles]
    assert sum(errors) / len(errors) == pytest.approx(sum(expected) / BINS, rel=0.2)


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.sampled_from([0.0, 0.3, 1.0]))
def test_one_chance_for_all_answers_has_its_distance_from_their_accuracy(right, chance):
    accuracy = sum(right) / len(right)
    assert error([(chance, r) for r in right]) == pytest.approx(abs(chance - accuracy))


@given(DRAWN, st.randoms())
def test_the_error_is_between_the_bias_and_the_mean_distance_in_any_order(answers, random):
    gaps = [p - right for p, right in answers]
    found = error(answers)
    assert abs(sum(gaps)) / len(gaps) - 1e-12 <= found
    assert found <= sum(map(abs, gaps)) / len(gaps) + 1e-12
    assert error(random.sample(answers, len(answers))) == pytest.approx(found)


def test_opposite_errors_of_two_bins_do_not_cancel():
    answers = [(0.2, i % 2 == 0) for i in range(50)] + [(0.8, i % 2 == 0) for i in range(50)]
    assert error(answers) == pytest.approx(0.3)


def test_both_have_the_number_of_problems_and_an_interval_over_them():
    random = Random(1)
    rows = [weighed(f"p{i:03}", 0.9, random.random() < 0.6, k) for i in range(200) for k in (0, 1)]
    (calibrated,) = score(rows, GSM8K, ("calibration@2",))
    accuracy = sum(row.correct for row in rows) / len(rows)
    assert calibrated.value == pytest.approx(100 * (0.9 - accuracy))
    assert calibrated.n == 200
    half = 196 * sqrt(0.24 / 400)  # of the share of right answers
    assert calibrated.high - calibrated.low == pytest.approx(2 * half, rel=0.1)
    texts = [answer("1234" if i % 2 else "123412341", i, f"p{i}") for i in range(40)]
    (varied,) = score([replace(s, sample=0) for s in texts], GSM8K, ("distinct-4@1",))
    assert varied.value == pytest.approx(100 * (1 + 4 / 6) / 2)
    assert (varied.n, varied.low < varied.value < varied.high) == (40, True)


def test_check_derives_both_again_and_notices_a_changed_file(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    problems = find_benchmark("nano-sums", 3).load()[:40]
    fields = {"benchmark": "nano-sums", "rule": WHOLE, "correct": False}
    rows = [
        Weighed(**vars(answer(f"1234{k}", k, p.id, **fields)), logp=log(0.5))
        for p in problems
        for k in (0, 1)
    ]
    digest = digest_of(rows)
    asked = {"benchmark": "nano-sums", "mirrors": "nano-sums", "mode": "cot", "digest": digest}
    scores = [
        {**asked, "metric": name, "draw": 3, **measure(rows, NANO, {"metric": name})}
        for name in ("calibration@2", "distinct-4@2")
    ]
    assert [row["value"] for row in scores] == pytest.approx([50.0, 75.0])
    run = {"paper": "rpo", "digest": "0", "start_scores": [], "sampling": {}, "train": {}}
    run["scores"] = scores
    write_run_samples(run, {digest: rows}.__getitem__, results())
    regrader = Regrader(Passed())
    assert [*regrader.find_damage(run)] == []
    assert [*regrader.differences(run, "nano-sums", "cot", scores[0])] == []
    wrong = [{**row, "high": 99.0} for row in scores]
    lines = [line for row in wrong for line in regrader.differences(run, "nano-sums", "cot", row)]
    assert len(lines) == 2
    assert all("high is 99.0, its samples give" in line for line in lines)
    (path,) = results().glob("rpo/*.parquet")
    write_sets(
        path, {"scores/nano-sums/cot/calibration@2": [replace(rows[0], logp=0.0), *rows[1:]]}
    )
    (damage,) = Regrader(Passed()).find_damage(run)
    assert "calibration@2 has the digest" in damage


def test_samples_without_what_a_metric_reads_are_refused():
    with pytest.raises(BadValue, match="a calibration error needs samples"):
        score([answer("1")], GSM8K, ("calibration@1",))
    with pytest.raises(BadValue, match="distinct-4@K, calibration@K"):
        score([answer("1", k) for k in range(3)], GSM8K, ("distinct-4@2",))
    with pytest.raises(BadValue, match="log-probabilities are those of answers in the mode cot"):
        check_metrics(Evaluation(temperature=1.0, mode="tir", metrics=("calibration@1",)))


def test_outcomes_of_arms_keep_the_texts_that_metrics_and_claims_read(tmp_path):
    texts, other = (
        [answer("so 3", key=KEY, extracted="3")],
        [answer("so 4", key=KEY, extracted="4")],
    )
    files = {
        write_samples(tmp_path / name, s): tmp_path / name
        for name, s in (("a.gz", texts), ("b.gz", other))
    }
    first, second = files
    rows = [
        {"benchmark": "gsm8k", "mirrors": "gsm8k", "metric": name, "digest": digest}
        for name, digest in (("top1", first), ("distinct-4@1", first), ("top1", second))
    ]
    for kept, expected in (((), [first, first]), (("gsm8k",), [first, first, second])):
        scored = outcomes_of(Scored(scores=rows, files=files), kept)
        assert [r["digest"] for r in scored.scores if "texts" not in r] == expected
