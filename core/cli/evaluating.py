"""`repro eval`: the eval stage alone, or what can be said before a model is there."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.output import AsJson, print_columns, print_json
from core.cli.planning import show_contamination, show_power
from core.cli.scoring import Data, Mode, Reported, show_scores

if TYPE_CHECKING:
    from core.rollout.samplers.served import Service
    from core.run.stages.loading import Loading

# What each way to evaluate takes; whatever else is given is refused.
DRAWN = {"model", "mode", "samples", "temperature", "top_p", "system", "max_tokens", "seed"}
SCORED = {"benchmarks", "data", "limit", "reported", "out", "as_json"}
LOADED = {"dtype", "device", "batch_size"}
TAKES = {
    "contamination": {"contamination", "benchmarks", "data", "as_json"},
    "power": {"power", "benchmarks", "samples", "seeds", "rate", "seed_spread", "limit", "as_json"},
    "lm_eval": {"lm_eval", "model", "data", "limit", "seed", "as_json"} | LOADED,
    "server": {"server", "api", "api_key_env"} | DRAWN | SCORED,
    "benchmarks": {"top_k"} | DRAWN | SCORED | LOADED,
}


def evaluate(
    ctx: typer.Context,
    model: Annotated[
        str | None, typer.Argument(help="A shipped model, a folder or a hub id.")
    ] = None,
    benchmarks: Annotated[str | None, typer.Option(help="Names joined by commas.")] = None,
    lm_eval: Annotated[
        str | None, typer.Option(help="Instead: tasks of lm-eval joined by commas, or task files.")
    ] = None,
    mode: Mode = "cot",
    samples: Annotated[int, typer.Option(min=1, help="Samples of each problem.")] = 1,
    temperature: Annotated[
        float | None, typer.Option(min=0.0, help="Default: 0 for one sample, else 0.7.")
    ] = None,
    top_p: Annotated[
        float, typer.Option(help="Draw from the likeliest tokens with this share together.")
    ] = 1.0,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Draw from so many of the likeliest tokens.")
    ] = None,
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A system prompt before each question.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="The longest answer; default: the benchmark's own.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Only so many: a fixed sample (of lm-eval, the first)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    reported: Reported = None,
    power: Annotated[
        bool, typer.Option("--power", help="Only say what such an evaluation can see; no model.")
    ] = False,
    seeds: Annotated[int, typer.Option(min=1, help="With --power: training runs.")] = 1,
    rate: Annotated[float, typer.Option(help="With --power: the expected score.")] = 50.0,
    seed_spread: Annotated[
        float, typer.Option(help="With --power: standard deviation over seeds, in points.")
    ] = 0.0,
    contamination: Annotated[
        Path | None,
        typer.Option(
            metavar="TRAINFILE",
            help="Only look for test questions in it, reworded ones too; 1 if any.",
        ),
    ] = None,
    data: Data = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="An OpenAI-compatible server (vLLM, ...) that has MODEL."),
    ] = None,
    api: Annotated[
        str | None,
        typer.Option(help="With --server: completions (default), or chat, by its own template."),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="With --server: where its key is; default: OPENAI_API_KEY, if set."
        ),
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="Of the weights: float32, bfloat16, float16; auto: as in its files.")
    ] = "float32",
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda or cuda:N; default: the GPU if there is one.")
    ] = None,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Answers decoded at a time; fewer need less memory.")
    ] = 128,
    out: Annotated[
        Path | None,
        typer.Option(help="Keep samples and a page to browse them here; resumable after a kill."),
    ] = None,
    as_json: AsJson = False,
) -> int | None:
    """Score a model on benchmarks."""
    from eval.errors import BadValue

    if (benchmarks is None) == (lm_eval is None):
        raise BadValue("what to score: expected one of --benchmarks NAMES and --lm-eval TASKS")
    check_options(ctx)
    names = to_names(benchmarks or lm_eval or "")
    if not names or len(set(names)) < len(names):
        raise BadValue(f"what to score: {names}: expected different names joined by commas")
    if contamination is not None:
        return show_contamination(contamination, names, data, as_json=as_json)
    if power:
        return show_power(
            names,
            samples=samples,
            seeds=seeds,
            rate=rate,
            seed_spread=seed_spread,
            limit=limit,
            as_json=as_json,
        )
    if model is None:
        raise BadValue("no MODEL: expected a shipped model, a folder or a hub id")

    from core.evaluate.model_scores import score_model
    from core.evaluate.reported import read_reported, refuse_parts
    from core.run.stages.loading import Loading
    from eval.samples.evaluation import Decoding
    from eval.sets.benchmarks import find_benchmark
    from eval.sets.fewshot import FEW_SHOT, PAL

    loading = Loading(dtype=dtype, device=device, batch_size=batch_size)
    if lm_eval is not None:
        return show_tasks(model, names, data, limit, seed, loading, as_json=as_json)
    printed = read_reported(reported, names)
    sizes = {name: find_benchmark(name).n for name in printed}
    refuse_parts(printed, {name: min(n, limit or n) for name, n in sizes.items()})
    scores = score_model(
        model,
        names,
        mode=mode,
        decoding=Decoding(
            samples=samples,
            temperature=(0.0 if samples == 1 else 0.7) if temperature is None else temperature,
            top_p=top_p,
            top_k=top_k,
            seed=seed,
            chat=mode not in (FEW_SHOT, PAL),
            system=system,
        ),
        max_tokens=max_tokens,
        data=data,
        limit=limit,
        service=to_service(server, api, api_key_env, mode),
        out=out,
        loading=loading,
    )
    return show_scores(scores, printed, as_json=as_json)


def check_options(ctx: typer.Context) -> None:
    """Refuse options that the chosen way to evaluate would not look at.

    Raises:
        BadValue: the first of them, and what it goes with.
    """
    from eval.errors import BadValue

    options = {p.name or "": p.opts[0] for p in ctx.command.params} | {"model": "MODEL"}
    sources = {name: ctx.get_parameter_source(name) for name in options}
    given = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
    way = next(way for way in TAKES if way in given)
    for name in given:
        if name not in TAKES[way]:
            others = " or ".join(options[other] for other in TAKES if name in TAKES[other])
            raise BadValue(f"{options[name]} goes with {others}, not with {options[way]}")


def to_names(text: str) -> list[str]:
    """The names that commas separate."""
    return [name.strip() for name in text.split(",") if name.strip()]


def to_service(
    url: str | None, api: str | None, key_variable: str | None, mode: str
) -> "Service | None":
    """The server to ask, with the key from the environment; None where there is none.

    Raises:
        BadValue: no such interface or variable, or no key that a request can carry.
    """
    from core.rollout.samplers.served import Service
    from eval.errors import BadValue

    if url is None:
        return None
    if api not in (None, "completions", "chat"):
        raise BadValue(f"--api {api}: expected completions or chat")
    if api == "chat" and mode != "cot":
        raise BadValue(f"--api chat asks with user turns alone: --mode {mode} needs completions")
    variable = key_variable or "OPENAI_API_KEY"
    key = os.environ.get(variable, "").strip()
    if key_variable and not key:
        raise BadValue(f"--api-key-env {key_variable}: no key in this environment variable")
    if not key.isascii() or not key.isprintable():
        raise BadValue(f"the key in {variable} has characters that no request can carry")
    return Service(url=url, api=api or "completions", key=key or None)


def show_tasks(
    model: str,
    tasks: list[str],
    data: Path | None,
    limit: int | None,
    seed: int,
    loading: "Loading",
    *,
    as_json: bool,
) -> None:
    """Run tasks of lm-eval and print their numbers."""
    try:
        from core.lm_eval.scores import score_tasks
    except ModuleNotFoundError as error:
        from eval.errors import BadValue

        raise BadValue(
            f"{error.name} is not installed: pip install 'repro-papers[lm-eval]'"
        ) from error
    scores = score_tasks(model, tasks, data=data, limit=limit, seed=seed, loading=loading)
    if as_json:
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
