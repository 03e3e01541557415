"""Metrics of samples that a reward model has rated, against enumeration and published values."""

import json
import os
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from core.cli.main import app
from core.paper import Evaluation
from core.stages.questions import check_metrics
from eval.errors import BadValue
from eval.json_lines import json_lines
from eval.samples.store import Rated, Sample
from eval.sets.benchmarks import find_benchmark
from eval.stats.estimates import best_of_k
from eval.stats.summary import metrics_of_rated, score

DATA = os.environ.get("REPRO_DATA")
GSM8K = find_benchmark("gsm8k")
RATED = st.lists(st.tuples(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), st.booleans()), min_size=1)


def rated(*answers, right="18"):
    """Samples of one problem, from each answer and its rating."""
    return [
        Rated(
            benchmark="gsm8k",
            id="a",
            sample=k,
            output="",
            tokens=1,
            truncated=None,
            extracted=answer,
            correct=answer == right,
            rule="boxed",
            reason="",
            rm_score=rating,
        )
        for k, (answer, rating) in enumerate(answers)
    ]


def value_of(metric, samples):
    (result,) = score(samples, GSM8K, (metric,))
    return result.value


def best_of(subset):
    """How often the best rated of these is right, if equal ratings share."""
    best = max(rating for rating, _ in subset)
    return fmean(right for rating, right in subset if rating == best)


@given(RATED.filter(lambda rows: len(rows) <= 7), st.data())
def test_the_best_of_k_is_the_mean_over_all_choices_of_k(rows, data):
    k = data.draw(st.integers(1, len(rows)))
    ratings, right = zip(*rows, strict=True)
    expected = fmean(map(best_of, combinations(rows, k)))
    assert best_of_k(ratings, right, k) == pytest.approx(expected, abs=1e-12)


def test_more_samples_help_or_hurt_as_their_ratings_say():
    answers = ["18", "17", "17", "17"]
    helped = rated(*zip(answers, (0.9, 0.1, 0.2, 0.3), strict=True))
    hurt = rated(*zip(answers, (0.0, 0.1, 0.2, 0.3), strict=True))
    assert [value_of(f"rm@{k}", helped) for k in (1, 2, 4)] == [25, 50, 100]
    assert [value_of(f"rm@{k}", hurt) for k in (1, 2, 4)] == [25, 0, 0]


@given(st.lists(st.sampled_from(["18", "17", "16", None]), min_size=1, max_size=8))
def test_with_equal_ratings_every_sample_has_one_vote(answers):
    k = len(answers)
    for rating in (0.0, 0.25):
        samples = rated(*((answer, rating) for answer in answers))
        assert value_of(f"rm-weighted@{k}", samples) == value_of(f"maj@{k}", samples)


def test_a_large_rating_outvotes_two_small_ones():
    for rating, value in ((0.5, 100), (0.3, 0), (0.0, 0)):
        samples = rated(("18", rating), ("17", 0.2), ("17", 0.2), ("16", 0.0))
        assert value_of("rm-weighted@4", samples) == value


def test_the_five_best_rated_vote():
    best = [("18", 0.9), ("18", 0.8), ("18", 0.7), ("17", 0.6), ("16", 0.5)]
    others = [("17", 0.4), ("17", 0.3), ("17", 0.2)]
    assert value_of("rm-vote@8", rated(*others, *best)) == 100
    assert value_of("maj@8", rated(*others, *best)) == 0


def test_ratings_that_cannot_act_are_refused():
    negative = rated(("18", 1.0), ("17", -0.5))
    with pytest.raises(BadValue, match=r"rm_score -0\.5 of a"):
        score(negative, GSM8K, ("rm-weighted@2",))
    unrated = [
        Sample(**{name: value for name, value in asdict(sample).items() if name != "rm_score"})
        for sample in negative
    ]
    for metric in ("rm@2", "rm-weighted@2", "rm-vote@2"):
        with pytest.raises(BadValue, match="sample 0 of a has no rating"):
            score(unrated, GSM8K, (metric,))
        with pytest.raises(BadValue, match="have no ratings"):
            check_metrics(Evaluation(metrics=(metric,), samples=2, temperature=1.0))
    with pytest.raises(BadValue, match=r"rm@3 from 2 samples"):
        score(negative, GSM8K, ("rm@3",))


def test_rated_samples_have_the_metrics_that_their_number_allows():
    assert metrics_of_rated(1, weighted=True) == ("rm@1",)
    assert metrics_of_rated(6, weighted=False) == ("rm@1", "rm@2", "rm@4", "rm@6", "rm-vote@6")
    assert metrics_of_rated(4, weighted=True) == ("rm@1", "rm@2", "rm@4", "rm-weighted@4")


def scored(tmp_path, rows, *options):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return CliRunner().invoke(app, ["score", str(file), "--benchmark", "pocket-gsm8k", *options])


def test_a_column_of_ratings_is_whole_and_finite(tmp_path):
    problem = find_benchmark("pocket-gsm8k").load()[0]
    row = {"id": problem.id, "output": f"\\boxed{{{problem.answer}}}"}
    rows = [{**row, "sample": k, "rm_score": k} for k in range(2)]
    found = scored(tmp_path, rows, "--json")
    values = {line["metric"]: line["value"] for line in json.loads(found.stdout)}
    assert {"rm@1", "rm@2", "rm-weighted@2"} < values.keys()
    for wrong, reason in (
        ({"rm_score": "high"}, "line 2: rm_score='high': expected float or int"),
        ({"rm_score": float("nan")}, "line 2: rm_score=nan: expected a finite number"),
        ({"rm_score": None}, "1 of 2 rows have rm_score: expected all or none"),
    ):
        found = scored(tmp_path, [rows[0], {**rows[1], **wrong}])
        assert found.exit_code == 2
        assert reason in " ".join(found.output.split())


@pytest.mark.skipif(not DATA, reason="REPRO_DATA is not set: released ratings are NOT read")
def test_published_ratings_give_their_published_accuracies():
    """A reward model's best of 1, 2, 4, 8 on released outputs, graded as DeepSeekMath does."""
    file = Path(DATA) / "model_outputs/math_qwen2.5-math-example_cot_8samples_a.jsonl.gz"
    by_problem = {}
    for _, row in json_lines(file):
        by_problem.setdefault(row["id"], []).append((row["rm_score"], row["published_correct"]))
    for k, expected in ((1, 87.75), (2, 90.07), (4, 91.26), (8, 92.00)):
        values = [best_of_k(*zip(*pairs, strict=True), k) for pairs in by_problem.values()]
        assert 100 * fmean(values) == pytest.approx(expected, abs=0.005)
