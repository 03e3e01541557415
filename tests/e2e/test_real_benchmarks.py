"""The pocket policy over the real test sets: the whole path, whatever the accuracy."""

import os

import pytest

from core.models.load import load_policy, load_tokenizer
from core.samplers.policy import PolicySampler
from eval.samples.evaluation import Decoding, run_benchmark
from eval.samples.store import read_samples, regrade, write_samples
from eval.sets.benchmarks import find_benchmark
from eval.stats.summary import score

DATA = os.environ.get("REPRO_DATA")
LIMIT = 6
SIZES = {"gsm8k": 1319, "math": 5000, "mgsm_zh": 250, "cmath": 1098}

pytestmark = pytest.mark.skipif(
    not DATA, reason="REPRO_DATA IS NOT SET: THE REAL BENCHMARKS ARE NOT TESTED"
)


@pytest.fixture(scope="module")
def sampler():
    return PolicySampler(load_policy("pocket-instruct"), load_tokenizer("pocket-instruct"))


@pytest.mark.parametrize(("name", "n"), SIZES.items())
def test_a_real_benchmark_runs_is_stored_and_graded_again(sampler, tmp_path, name, n):
    benchmark = find_benchmark(name)
    problems = benchmark.load()
    assert len(problems) == n
    samples = run_benchmark(
        sampler, benchmark, limit=LIMIT, decoding=Decoding(max_tokens=64, temperature=0.0)
    )
    assert [s.id for s in samples] == [p.id for p in benchmark.load(limit=LIMIT)]
    assert all(s.output and s.tokens <= 64 for s in samples)
    (top1,) = score(samples, benchmark)
    assert top1.limited
    assert top1.n == LIMIT
    assert top1.low <= top1.value <= top1.high
    assert top1.value == pytest.approx(100 * sum(s.correct is True for s in samples) / LIMIT)
    digest = write_samples(tmp_path / "s.jsonl.gz", samples)
    stored = read_samples(tmp_path / "s.jsonl.gz", digest)
    assert regrade(stored, problems) == samples


def test_the_gold_solutions_would_score_100():
    for name in ("gsm8k", "math"):
        benchmark = find_benchmark(name)
        problems = benchmark.load(limit=40)
        from eval.samples.evaluation import Completion

        texts = iter(p.solution.split("####")[0] + f"\\boxed{{{p.answer}}}" for p in problems)

        def gold(prompts, decoding, texts=texts):  # noqa: ARG001 - the sampler's signature
            return [[Completion(next(texts), 10, truncated=False)] for _ in prompts]

        samples = run_benchmark(gold, benchmark, limit=40, decoding=Decoding())
        right = score(samples, benchmark)[0].value
        assert right >= 95, (name, right)
