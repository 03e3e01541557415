"""Demonstrations of the pocket world, on which its models are trained."""

from collections.abc import Sequence
from itertools import cycle

from core.data.sources import STYLES, Row, Style
from eval.pocket.solver import fallible_solution
from eval.pocket.suites import drafts
from eval.sets.benchmarks import Benchmark, find_benchmark

# Styles take turns, and so do the kinds of problems, by 8, 16 and 9: 7 shares no factor with these.
WORKED = ("program", *("worked",) * 6)
FALLIBLE = ("program", *("fallible",) * 6)


def pocket_demonstrations(
    suites: Sequence[str], styles: Sequence[str], build: int = 0
) -> list[Row]:
    """Return a prompt and completion for each training problem; the styles alternate.

    Args:
        suites: names of the benchmarks.
        styles: "worked" answers step by step, "program" by a program, and "fallible" step by step
            with the mistakes of a model build.
        build: number of the model build.

    Returns:
        The rows, none without suites.

    Raises:
        UnknownName, MissingFile: a suite is no pocket suite.
        KeyError: a style has another name.
    """
    fallible = Style("cot", lambda draft: fallible_solution(draft, build).text)
    ways = {**STYLES, "fallible": fallible}
    rows: list[Row] = []
    for suite in suites:
        benchmark: Benchmark = find_benchmark(suite)
        problems = benchmark.load(split="train")
        pairs = zip(problems, drafts(suite, "train"), strict=True)
        for name, (problem, draft) in zip(cycle(styles), pairs, strict=False):
            prompt = benchmark.prompt(problem, ways[name].mode)
            rows.append(
                {
                    "prompt": [{"role": "user", "content": prompt}],
                    "completion": [{"role": "assistant", "content": ways[name].answer(draft)}],
                }
            )
    return rows
