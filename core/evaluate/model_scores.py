"""A model on benchmarks, outside of any run."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from core.evaluate.sample_folder import samples_in
from core.models.builds import SHIPPED
from core.models.load import locate
from core.rollout.samplers.policy import ChunkedSampler
from core.rollout.samplers.served import ChatSampler, CompletionsSampler, Service
from core.stages.loading import Loading
from core.stages.tools import tools
from core.stages.train import prepare_torch
from core.stages.watch.meter import Watch, metered
from eval.samples.evaluation import Decoding, run_benchmark
from eval.samples.store import Sample
from eval.samples.tir import program_scores
from eval.sets.benchmarks import Benchmark, find_benchmark
from eval.stats.summary import Score, metrics, score
from eval.terminal import say


def score_model(
    model: str,
    benchmarks: Sequence[str],
    *,
    mode: str,
    decoding: Decoding,
    data: Path | None,
    limit: int | None,
    max_tokens: int | None = None,
    service: Service | None = None,
    out: Path | None = None,
    loading: Loading | None = None,
) -> list[Score]:
    """The scores of a model (a folder, a hub id or a shipped name) on benchmarks.

    Without `max_tokens` an answer may be as long as its benchmark allows. The model is behind the
    `service` if there is one, else it is loaded here as `loading` says. With `out`, the samples are
    kept in that folder, and a run that was killed goes on from there.
    """
    here = loading or Loading()
    found = [find_benchmark(name) for name in benchmarks]
    load = cache(lambda: load_sampler(model, service, here))  # what is finished needs no model
    scores: list[Score] = []
    with tools(mode) as with_tools:
        for benchmark in found:
            title = f"eval: {model} on {benchmark.name}, {mode}"
            asked: dict[str, Any] = {  # Any: keywords of several types
                "data": data,
                "limit": limit,
                "mode": mode,
                "decoding": replace(decoding, max_tokens=max_tokens or benchmark.max_tokens),
            }
            with metered(title) as watch:
                drawn = partial(watched, load, watch)
                if out is None:
                    solver = with_tools(drawn(), None)
                    samples: Sequence[Sample] = run_benchmark(solver, benchmark, **asked)
                else:
                    kept = {"service": service, "loading": here, "tools": with_tools}
                    samples = samples_in(out, model, drawn, benchmark, **kept, **asked)
            right = sum(sample.correct is True for sample in samples)
            say(f"{title}: {right} right of {len(samples)} answers")
            scores += scores_of(samples, benchmark, decoding.samples, mode, data, limit)
    return scores


def watched(load: Callable[[], ChunkedSampler[Any, Any]], watch: Watch) -> ChunkedSampler[Any, Any]:
    """What is loaded, which tells how far it is."""
    return load().with_progress(watch)


def scores_of(
    samples: Sequence[Sample],
    benchmark: Benchmark,
    k: int,
    mode: str,
    data: Path | None,
    limit: int | None,
) -> list[Score]:
    """The scores of k samples a problem; with tools also by the outputs of their programs."""
    named = metrics(k)
    found = score(samples, benchmark, named, mode=mode)
    if mode == "tir":
        found += program_scores(samples, benchmark.load(data, limit), benchmark, named)
    return [replace(one, drawn=benchmark.describe_sample(limit)) for one in found]


def load_sampler(
    model: str, service: Service | None = None, loading: Loading | None = None
) -> ChunkedSampler[Any, Any]:
    """A model as a sampler: loaded here, or behind a server."""
    here = loading or Loading()
    if service is not None and service.api == "chat":  # any name that the server knows
        return ChatSampler(service.server(), locate(model) if model in SHIPPED else model)
    if service is not None:
        tokenizer = here.tokenizer(model)
        return CompletionsSampler(service.server(), locate(model), tokenizer)
    prepare_torch(None)
    return here.answerer(model)
