"""What is shipped is what the newest pocket record describes."""

import json
from pathlib import Path

import pytest

from core.models.builds import SHIPPED
from core.models.folders import CHECKPOINTS
from core.models.load import load_policy, load_tokenizer
from core.records.answers import name_of
from core.records.files import folder_files
from core.samplers.policy import PolicySampler
from core.settings.canonical import digest_of
from eval.pocket import GENERATOR_VERSION
from eval.pocket.solver import fallible_solution
from eval.pocket.suites import SUITES, drafts, pocket_digest
from eval.samples.evaluation import Decoding, run_benchmark
from eval.sets.benchmarks import find_benchmark
from eval.stats.summary import score

RESULTS = Path(__file__).parents[2] / "results" / "pocket"


@pytest.fixture(scope="module")
def record():
    found = [json.loads(path.read_text("utf-8")) for path in RESULTS.glob("*.json")]
    newest = max((r for r in found if r["kind"] == "pocket"), key=lambda r: r["created"])
    assert (RESULTS / f"{name_of(newest)}.json").is_file()
    return newest


@pytest.mark.long
def test_the_world_is_the_recorded_one(record):
    assert record["data"] == pocket_digest()


@pytest.mark.parametrize("name", SHIPPED)
def test_the_files_are_the_recorded_ones(record, name):
    assert record["models"][name]["files"] == folder_files(CHECKPOINTS / name)


def test_the_policy_scores_what_the_record_says(record):
    """The first 100 problems fall into a 99.99 % band around the recorded share."""
    sampler = PolicySampler(load_policy("pocket-instruct"), load_tokenizer("pocket-instruct"))
    rows = record["models"]["pocket-instruct"]["scores"]
    stated = {r["benchmark"]: r["value"] for r in rows if r["metric"] == "top1"}
    for suite in SUITES:
        benchmark = find_benchmark(suite)
        samples = run_benchmark(sampler, benchmark, limit=100, decoding=Decoding(max_tokens=96))
        spread = 3.9 * (stated[suite] * (100 - stated[suite]) / 100) ** 0.5
        assert abs(score(samples, benchmark)[0].value - stated[suite]) <= max(spread, 4)


def test_what_is_generated_belongs_to_the_version_of_the_generator():
    """Whoever changes a problem, a solution or a mistake gives the generator another version."""
    texts = [
        fallible_solution(draft, build).text
        for suite in SUITES
        for draft in drafts(suite, "train")[:300]
        for build in (0, 1)
    ]
    assert (GENERATOR_VERSION[:8], digest_of([pocket_digest(), texts])[:8]) == (
        "5ba8540d",
        "f331eb25",
    )
