"""Samples of arms other than the main one, stored as outcomes without their texts."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from core.paper import Paper
from core.stages.evaluate import Scored
from core.stages.questions import PLAIN_MODE
from core.stages.stage import OUTCOMES, Outputs
from eval.samples.sealing import brief, seal_samples
from eval.samples.store import Sample, Weighed, read_samples, write_samples
from eval.sets.benchmarks import find_benchmark
from eval.stats.summary import reads_texts


def outcomes_of(scored: Scored, with_texts: Collection[str] = ()) -> Scored:
    """Return scores that refer to outcomes by `digest` and to the full samples by `texts`.

    The files of both are included, so either can be published. Samples with log-probabilities, and
    those of which a metric or a claim reads the texts, stay as they are.

    Args:
        scored: The scores of a policy.
        with_texts: Benchmarks, by the paper's names, of whose answers claims read the texts.
    """
    files = dict(scored.files)
    kept = {
        row["digest"]
        for row in scored.scores
        if reads_texts(row["metric"]) or row["mirrors"] in with_texts
    }

    def seal_row(suite: str, row: Outputs) -> Outputs:
        path, texts = scored.files[row["digest"]], row["digest"]
        if texts in kept:
            return row
        samples = read_samples(path, texts)
        if any(isinstance(sample, Weighed) for sample in samples):
            return row
        problems = find_benchmark(suite, row.get("draw", 0)).load()
        outcomes = seal_samples(samples, problems, row.get("mode", PLAIN_MODE))
        return {**row, "digest": write_beside(path, outcomes, files), "texts": texts}

    return replace(
        scored,
        scores=[seal_row(row["benchmark"], row) for row in scored.scores],
        at_k={suite: seal_row(suite, row) for suite, row in scored.at_k.items()},
        files=files,
    )


def claimed_texts(paper: Paper, arm: str) -> frozenset[str]:
    """Return the benchmarks of which a claim reads the texts of an arm's answers."""
    needs = {need for claim in paper.claims for a, need in claim.needs if a == arm}
    return frozenset(need.name for need in needs if need.kind == "texts")


def held_out_outcomes(trained: Outputs, scored: Scored) -> tuple[Outputs, Scored]:
    """Return a training's outputs and files with outcomes in place of its held-out answers."""
    files, texts = dict(scored.files), trained.get("held_out", {})
    held_out: dict[str, str] = {}
    for step, digest in texts.items():
        samples = read_samples(scored.files[digest], digest)
        held_out[step] = write_beside(scored.files[digest], map(brief, samples), files)
    digests = {"held_out": held_out, "texts": texts} if texts else {}
    return {**trained, **digests}, replace(scored, files=files)


def write_beside(path: Path, samples: Iterable[Sample], files: dict[str, Path]) -> str:
    """Write outcomes to a folder beside their samples, and return their digest.

    The file is added to `files` under that digest.
    """
    place = path.parent / OUTCOMES / path.name
    digest = write_samples(place, samples)
    files[digest] = place
    return digest
