"""`repro eval`: the eval stage alone, or what can be said before a model is there."""

import re
from dataclasses import asdict
from pathlib import Path

from core.cli.evaluation_options import EvaluationOptions
from core.cli.options import takes
from core.cli.output import print_columns, print_json, say_loading
from core.cli.planning import show_contamination, show_power
from core.cli.scoring import show_scores
from eval.errors import BadValue

RUN = re.compile(r"[0-9a-f]{6,16}")  # how a run of `repro runs` is named; models have other names


@takes(EvaluationOptions)
def evaluate(asked: EvaluationOptions) -> int | None:
    """Score a model on benchmarks."""
    if asked.contamination is not None:
        return show_contamination(
            asked.contamination, asked.names, asked.data, as_json=asked.as_json
        )
    if asked.power:
        return show_power(
            asked.names,
            samples=asked.samples,
            seeds=asked.seeds,
            rate=asked.rate,
            seed_spread=asked.seed_spread,
            limit=asked.limit,
            as_json=asked.as_json,
        )
    if asked.model is None:
        raise BadValue("no MODEL: expected a shipped model, a folder or a hub id")
    model = model_named(asked.model)
    return show_benchmarks(model, asked) if asked.lm_eval is None else show_tasks(model, asked)


def model_named(name: str) -> str:
    """What a model is loaded from: that of a run of `repro runs`, or what is named."""
    if not RUN.fullmatch(name) or Path(name).exists():
        return name
    from core.records.found import find_run, model_of

    return str(model_of(find_run(name)))


def show_benchmarks(model: str, asked: EvaluationOptions) -> None:
    """Score a model on our benchmarks and print its scores, beside the printed ones if asked."""
    from eval.sets.benchmarks import find_benchmark

    for name in asked.names:
        find_benchmark(name)  # before what is slow to import
    from core.evaluate.reported import read_reported, refuse_parts

    printed = read_reported(asked.reported, asked.names)
    say_loading()
    from core.evaluate.model_scores import score_model

    loading = asked.loading
    sizes = {name: find_benchmark(name).n for name in printed}
    refuse_parts(printed, {name: min(n, asked.limit or n) for name, n in sizes.items()})
    scores = score_model(
        model,
        asked.names,
        mode=asked.mode,
        decoding=asked.decoding,
        max_tokens=asked.max_tokens,
        data=asked.data,
        limit=asked.limit,
        service=asked.service,
        out=asked.out,
        loading=loading,
    )
    return show_scores(scores, printed, as_json=asked.as_json)


def show_tasks(model: str, asked: EvaluationOptions) -> None:
    """Run tasks of lm-eval and print their numbers."""
    say_loading()
    loading = asked.loading
    try:
        from core.lm_eval.scores import score_tasks
    except ModuleNotFoundError as error:
        raise BadValue(
            f"{error.name} is not installed: pip install 'repro-papers[lm-eval]'"
        ) from error
    scores = score_tasks(
        model,
        asked.names,
        data=asked.data,
        limit=asked.limit,
        seed=asked.seed,
        loading=loading,
    )
    if asked.as_json:
        return print_json([asdict(one) for one in scores])
    head = ("task", "metric", "filter", "value", "95 % interval", "documents", "of", "shots")
    rows = [
        (
            one.task,
            one.metric,
            one.filter,
            "none" if one.value is None else f"{one.value:.4f}",
            "none" if one.low is None else f"{one.low:.4f} to {one.high:.4f}",
            one.n,
            "a part" if one.limited else "all",
            one.fewshot,
        )
        for one in scores
    ]
    return print_columns(head, rows)
