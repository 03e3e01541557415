"""Makes records of runs with real graded samples, without a model."""

from dataclasses import asdict

from core.paper.registry import find_paper
from core.run.places import results
from core.run.records.record import new_record, write_record
from core.run.resolve import resolve
from core.run.stages.record import request_of
from core.run.stages.sources import model_version
from eval.samples.evaluation import Completion, Decoding, run_benchmark, score
from eval.samples.store import write_samples
from eval.sets.benchmarks import find_benchmark

SUITES = {"gsm8k": "pocket-gsm8k", "math": "pocket-math"}
LIMIT = 60
STEPS = {"cpu": 36, "gpu": 200, "paper": 3}


def answering(suite, right):
    """A sampler that solves the first `right` problems of a suite."""
    problems = find_benchmark(suite).load(limit=LIMIT)

    def sampler(prompts, decoding):
        del prompts, decoding
        texts = [
            f"The answer is \\boxed{{{p.answer}}}." if i < right else "I do not know."
            for i, p in enumerate(problems)
        ]
        return [[Completion(text, 5, truncated=False)] for text in texts]

    return sampler


def scored(suite, mirrors, right):
    """One row of scores, its samples stored."""
    benchmark = find_benchmark(suite)
    samples = run_benchmark(answering(suite, right), benchmark, limit=LIMIT, decoding=Decoding())
    row = score(samples, benchmark, metrics=("top1",))[0]
    folder = results() / "samples"
    digest = write_samples(folder / "new.jsonl.gz", samples)
    (folder / "new.jsonl.gz").rename(folder / f"{digest}.jsonl.gz")
    return {**asdict(row), "mirrors": mirrors, "digest": digest}


def config(slug, arm, scale):
    """The settings of an arm as a record holds them."""
    return request_of(resolve(find_paper(slug), arm=arm, scale=scale))["config"]


def run_record(
    right, *, slug="deepseekmath-grpo", arm="grpo", seed=0, created="2026-01-01", scale="cpu"
):
    """Store a run that solves the first `right` problems of either suite."""
    rows = {
        name: [scored(suite, mirrors, n) for mirrors, suite in SUITES.items()]
        for name, n in (("start_scores", 20), ("scores", right))
    }
    model = resolve(find_paper(slug), arm=arm, scale=scale).run.model
    content = {
        "paper": slug,
        "scale": scale,
        "arm": arm,
        "main": arm == "grpo",
        "seed": seed,
        "config": config(slug, arm, scale),
        "overrides": {},
        "start_model": model,
        "size": "0.9M",
        "model": {
            "name": model,
            "digest": model_version(model),
            "parameters": 900_000,
        },
        "data": {"name": "pocket", "digest": "0", "rows": 100},
        "train": {"steps": STEPS[scale], "plan": "8 completions", "weights": f"{arm} {seed}"},
        "curves": {
            "reward": [[1, 0.1], [3, right + seed / 100]],
            "held_out/accuracy": [[0, 20.0], [3, 30.0]],
        },
        "sampling": {},
        "created": created,
    }
    return write_record(new_record("run", **content, **rows))
