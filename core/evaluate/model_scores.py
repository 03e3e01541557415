"""Scores a model on benchmarks, outside of any training run."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TypedDict

from core.evaluate.sample_folder import samples_in
from core.models.builds import SHIPPED
from core.models.fit import check_finite, check_vocabulary
from core.models.folders import locate
from core.samplers.policy import AnySampler, PolicySampler
from core.samplers.served import ChatSampler, CompletionsSampler, Service
from core.scoring.rater import Asked, Rater
from core.stages.loading import Loading
from core.stages.tools import Tools, tools
from core.stages.training import prepare_torch
from core.stages.watch.meter import Watch, open_meter
from eval.samples.evaluation import Decoding, run_benchmark
from eval.samples.store import TYPES, Rated, Sample
from eval.samples.tir import program_scores
from eval.sets.benchmarks import Benchmark, find_benchmark
from eval.sets.fewshot import FEW_SHOT, PAL
from eval.stats.summary import Score, metrics, metrics_of_rated, score
from eval.terminal import say


class Server(TypedDict):
    """The keywords that say where a model runs."""

    service: Service | None
    loading: Loading


class Request(TypedDict):
    """The keywords of an evaluation of one benchmark."""

    data: Path | None
    limit: int | None
    mode: str
    decoding: Decoding


class Settings(Server, Request):
    """The keywords of `samples_in`."""

    tools: Tools


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
    rater: Rater | None = None,
) -> list[Score]:
    """Score a model (a folder, a hub id or a shipped name) on benchmarks.

    With a `rater`, the best rated of several answers and votes by ratings are scored, too.

    The model runs behind `service`, or is loaded here. Without `max_tokens`, answers may have the
    maximum length of their benchmark. A killed evaluation is resumed from the samples in `out`.
    """
    server: Server = {"service": service, "loading": loading or Loading()}
    suites = [find_benchmark(name) for name in benchmarks]
    load = cache(lambda: load_sampler(model, **server))  # only if a benchmark is not finished
    scores: list[Score] = []
    with tools(mode) as with_tools:
        for benchmark in suites:
            limits = replace(decoding, max_tokens=max_tokens or benchmark.max_tokens)
            request: Request = {"data": data, "limit": limit, "mode": mode, "decoding": limits}
            title = f"eval: {model} on {benchmark.name}, {mode}"
            samples: Sequence[Sample]
            with open_meter(title) as watch:
                watched_load = partial(load_with_watch, load, watch)
                if out is None:
                    solver = with_tools(watched_load(), None)
                    samples = run_benchmark(solver, benchmark, **request)
                else:
                    settings: Settings = {**server, "tools": with_tools, **request}
                    samples = samples_in(out, model, watched_load, benchmark, **settings)
            correct = sum(sample.correct is True for sample in samples)
            say(f"{title}: {correct} right of {len(samples)} answers")
            if rater is not None:
                samples = rated(samples, rater, benchmark, mode, data, limits)
            scores += scores_of(samples, benchmark, decoding.samples, mode, data, limit)
    return scores


def load_with_watch(load: Callable[[], AnySampler], watch: Watch) -> AnySampler:
    """Load the sampler and let it report its progress to `watch`."""
    return load().with_progress(watch)


def scores_of(
    samples: Sequence[Sample],
    benchmark: Benchmark,
    k: int,
    mode: str,
    data: Path | None,
    limit: int | None,
) -> list[Score]:
    """Return the scores of k samples a problem, in mode `tir` also by their programs' outputs."""
    names = metrics(k, mode)
    ratings = [sample.rm_score for sample in samples if isinstance(sample, Rated)]
    of_ratings = metrics_of_rated(k, weighted=min(ratings) >= 0) if ratings else ()
    scores = score(samples, benchmark, (*names, *of_ratings), mode=mode)
    if mode == "tir":
        scores += program_scores(samples, benchmark.load(data, limit), benchmark, names)
    return [replace(row, drawn=benchmark.describe_sample(limit)) for row in scores]


def rated(
    samples: Sequence[Sample],
    rater: Rater,
    benchmark: Benchmark,
    mode: str,
    data: Path | None,
    decoding: Decoding,
) -> list[Rated]:
    """Return samples with the ratings of their outputs after the prompts that they answer."""
    chat = mode not in (FEW_SHOT, PAL)
    prompts = {problem.id: benchmark.prompt(problem, mode) for problem in benchmark.load(data)}
    answers = [Asked(prompts[s.id], s.output, chat, decoding.system) for s in samples]
    say(f"{rater.name} rates {len(answers)} answers")
    fields = [{name: getattr(sample, name) for name in TYPES} for sample in samples]
    return [Rated(**of, rm_score=r) for of, r in zip(fields, rater(answers), strict=True)]


def load_sampler(
    model: str, service: Service | None = None, loading: Loading | None = None
) -> AnySampler:
    """Return a sampler of a model that is loaded here or runs behind a server.

    Raises:
        DamagedFile: weights that are loaded here are not finite.
        BadValue: the tokenizer has tokens for which such a model has no embedding.
    """
    model_loading = loading or Loading()
    if service is not None and service.api == "chat":  # the server may use any name
        return ChatSampler(service.server(), locate(model) if model in SHIPPED else model)
    if service is not None:
        tokenizer = model_loading.tokenizer(model)
        return CompletionsSampler(service.server(), locate(model), tokenizer)
    prepare_torch(None)
    sampler = model_loading.answerer(model)
    if isinstance(sampler, PolicySampler):
        check_finite(model, sampler.model)
        check_vocabulary(sampler.tokenizer, sampler.model)
    return sampler
