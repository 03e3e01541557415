"""`repro eval`: scores a model, or plans an evaluation without one."""

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
def evaluate(options: EvaluationOptions) -> int | None:
    """Score a model on benchmarks."""
    if options.contamination is not None:
        return show_contamination(
            options.contamination, options.names, options.data, as_json=options.as_json
        )
    if options.power:
        return show_power(
            options.names,
            samples=options.samples,
            seeds=options.seeds,
            rate=options.rate,
            seed_spread=options.seed_spread,
            limit=options.limit,
            as_json=options.as_json,
        )
    if options.model is None:
        raise BadValue("no MODEL: expected a shipped model, a folder or a hub id")
    from core.records.runs_lock import reading

    model = model_named(options.model)
    show = show_benchmarks if options.lm_eval is None else show_tasks
    with reading(Path(model)):
        return show(model, options)


def model_named(name: str) -> str:
    """Return the model of a recorded run if the name is that of a run, else the name itself."""
    if not RUN.fullmatch(name) or Path(name).exists():
        return name
    from core.records.found import find_run, model_of

    return str(model_of(find_run(name)))


def show_benchmarks(model: str, options: EvaluationOptions) -> None:
    """Score a model on our benchmarks and print the scores, compared with printed ones if given."""
    from eval.sets.benchmarks import find_benchmark

    for name in options.names:
        find_benchmark(name)  # before what is slow to import
    from core.evaluate.reported import read_reported, refuse_parts

    printed = read_reported(options.reported, options.names)
    say_loading()
    from core.evaluate.model_scores import score_model

    loading = options.loading
    sizes = {name: find_benchmark(name).n for name in printed}
    refuse_parts(printed, {name: min(n, options.limit or n) for name, n in sizes.items()})
    rater = None
    if options.scorer is not None:
        from core.scoring.rater import load_rater

        rater = load_rater(model_named(options.scorer), loading, options.step_separator)
    scores = score_model(
        model,
        options.names,
        mode=options.mode,
        decoding=options.decoding,
        max_tokens=options.max_tokens,
        data=options.data,
        limit=options.limit,
        service=options.service,
        out=options.out,
        loading=loading,
        rater=rater,
    )
    return show_scores(scores, printed, as_json=options.as_json)


def show_tasks(model: str, options: EvaluationOptions) -> None:
    """Run tasks of lm-eval and print their scores."""
    say_loading()
    loading = options.loading
    try:
        from core.lm_eval.scores import score_tasks
    except ModuleNotFoundError as error:
        raise BadValue(
            f"{error.name} is not installed: pip install 'repro-papers[lm-eval]'"
        ) from error
    scores = score_tasks(
        model,
        options.names,
        data=options.data,
        limit=options.limit,
        seed=options.seed,
        loading=loading,
    )
    if options.as_json:
        return print_json([asdict(row) for row in scores])
    head = ("task", "metric", "filter", "value", "95 % interval", "documents", "of", "shots")
    rows = [
        (
            row.task,
            row.metric,
            row.filter,
            "none" if row.value is None else f"{row.value:.4f}",
            "none" if row.low is None else f"{row.low:.4f} to {row.high:.4f}",
            row.n,
            "a part" if row.limited else "all",
            row.fewshot,
        )
        for row in scores
    ]
    return print_columns(head, rows)
