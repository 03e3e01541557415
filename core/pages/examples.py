"""Answers before and after a training, side by side: the first of each kind, by a fixed rule."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from core.pages.stored import samples_path
from core.records.run_samples import read_run_samples
from core.records.schema import RunRecord, ScoreRow
from core.stages.questions import PLAIN_MODE
from core.verdicts.run_differences import key_of
from eval.errors import MissingFile
from eval.samples.store import Sample
from eval.sets.benchmarks import find_benchmark, find_benchmark_or_none
from eval.tables.report import Answer, Example, Examples

Pair: TypeAlias = tuple[Sample, Sample]

SHOWN = 2000  # characters of an answer
WORDS = {True: "right", False: "wrong", None: "no verdict"}
KINDS: dict[str, Callable[[bool, bool], bool]] = {
    "Wrong before, right after": lambda before, after: after and not before,
    "Right before, wrong after": lambda before, after: before and not after,
    "The same verdict before and after": lambda before, after: before == after,
}


def rule_of(run: RunRecord) -> str:
    """Say how the examples of a run are chosen."""
    return (
        f"The starting model beside {run['arm']}, seed {run['seed']}, on the same problems: of "
        "each suite, in the order of its stored answers, the first that became right, the first "
        "that became wrong, and the first whose verdict stayed."
    )


def examples_of(run: RunRecord, folder: Path) -> tuple[Examples, ...]:
    """Return the examples of each suite that a run was scored on, with links from `folder`."""
    pairs = [(old, new) for new in run["scores"] for old in run["start_scores"]]
    alike = [(old, new) for old, new in pairs if key_of(old) == key_of(new)]
    once = {(old["digest"], new["digest"]): (old, new) for old, new in alike}
    return tuple(of_suite(run, *rows, folder) for rows in once.values())


def of_suite(run: RunRecord, before: ScoreRow, after: ScoreRow, folder: Path) -> Examples:
    """Return the first pair of answers of each kind, or a note why there is none."""
    mode = after["mode"]
    suite = after["benchmark"] + ("" if mode == PLAIN_MODE else f" {mode}")
    if "texts" in before or "texts" in after:
        reason = f"The texts of {run['arm']} are not stored, only the outcome of every problem."
        return Examples(suite=suite, rows=(), notes=(reason,))
    try:
        pairs = list(paired_answers(run, before, after))
    except MissingFile:
        return Examples(suite=suite, rows=(), notes=("Its samples are not stored here.",))
    first_pairs, several = dict(firsts(pairs)), any(old.sample for old, _ in pairs)
    question_texts, names = questions(after), (run["start_model"] or "start", run["arm"])
    paths = [samples_path(run, row["digest"], folder) for row in (before, after)]
    return Examples(
        suite=suite,
        rows=tuple(
            Example(
                because=kind,
                problem=pair[0].id + (f", sample {pair[0].sample}" if several else ""),
                question=question_texts.get(pair[0].id, ""),
                answers=(answer(names[0], pair[0], paths[0]), answer(names[1], pair[1], paths[1])),
            )
            for kind, pair in first_pairs.items()
        ),
        notes=tuple(f"{kind}: none." for kind in KINDS if kind not in first_pairs),
    )


def paired_answers(run: RunRecord, before: ScoreRow, after: ScoreRow) -> Iterator[Pair]:
    """Yield the answers before and after to the same problem, in the order of the file."""
    old, new = (read_run_samples(run, row["digest"]) for row in (before, after))
    trained = {(sample.id, sample.sample): sample for sample in new}
    for sample in old:
        if (answer_after := trained.get((sample.id, sample.sample))) is not None:
            yield sample, answer_after


def firsts(pairs: Sequence[Pair]) -> Iterator[tuple[str, Pair]]:
    """Yield each kind that occurs, with its first pair."""
    for kind, fits in KINDS.items():
        for old, new in pairs:
            if fits(old.correct is True, new.correct is True):
                yield kind, (old, new)
                break


def questions(row: ScoreRow) -> dict[str, str]:
    """Return the questions of a generated suite by id; empty for suites that we may not print."""
    benchmark = find_benchmark_or_none(row["benchmark"])
    if benchmark is None or not benchmark.is_generated:
        return {}
    problems = find_benchmark(benchmark.name, row.get("draw", 0)).load()
    return {problem.id: problem.question for problem in problems}


def answer(by: str, sample: Sample, path: str) -> Answer:
    """Return an answer as the page shows it, cut to `SHOWN` characters."""
    return Answer(
        by=by,
        verdict=WORDS[sample.correct],
        text=sample.output[:SHOWN],
        more=max(0, len(sample.output) - SHOWN),
        path=path,
    )
