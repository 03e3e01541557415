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
    from core.rollout.server_sampler import Service


def evaluate(
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
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="The longest answer; default: the benchmark's own.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Only so many: a fixed sample (of lm-eval, the first)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
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
    if server is None and (api, api_key_env) != (None, None):
        raise BadValue("--api and --api-key-env say how a server is asked: add --server URL")
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
    if (seeds, rate, seed_spread) != (1, 50.0, 0.0):
        raise BadValue("--seeds, --rate and --seed-spread plan an evaluation: add --power")
    if model is None:
        raise BadValue("no MODEL: expected a shipped model, a folder or a hub id")
    if lm_eval is not None:
        if (mode, samples, temperature, max_tokens) != ("cot", 1, None, None):
            raise BadValue("lm-eval's tasks say how they are decoded: leave these options out")
        if server is not None:
            raise BadValue(
                "--server: lm-eval asks servers itself, `lm_eval --model local-completions`"
            )
        return show_tasks(model, names, data, limit, seed, as_json=as_json)

    from core.run.reported import read_reported, refuse_parts
    from core.run.scoring import score_model
    from eval.benchmarks import find_benchmark
    from eval.scoring import Decoding

    printed = read_reported(reported, names)
    sizes = {name: find_benchmark(name).n for name in printed}
    refuse_parts(printed, {name: min(n, limit or n) for name, n in sizes.items()})
    chosen = (0.0 if samples == 1 else 0.7) if temperature is None else temperature
    scores = score_model(
        model,
        names,
        mode=mode,
        decoding=Decoding(samples=samples, temperature=chosen, seed=seed),
        max_tokens=max_tokens,
        data=data,
        limit=limit,
        service=to_service(server, api, api_key_env, mode),
        out=out,
    )
    return show_scores(scores, printed, as_json=as_json)


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
    from core.rollout.server_sampler import Service
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
    model: str, tasks: list[str], data: Path | None, limit: int | None, seed: int, *, as_json: bool
) -> None:
    """Run tasks of lm-eval and print their numbers."""
    try:
        from core.lm_eval.scores import score_tasks
    except ModuleNotFoundError as error:
        from eval.errors import BadValue

        raise BadValue(
            f"{error.name} is not installed: pip install 'repro-papers[lm-eval]'"
        ) from error
    scores = score_tasks(model, tasks, data=data, limit=limit, seed=seed)
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
