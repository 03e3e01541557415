"""What the keys of a run depend on outside its settings: models, data and suites, by content."""

import os
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from core.claims import START
from core.data.sets import DataSet, find_sets
from core.families.table import find_family
from core.paper import Paper
from core.run.effective import effective
from core.run.files import digest_of, file_digest, folder_files
from core.run.resolve import Resolved
from core.run.settings import RunSettings
from core.run.stages.loading import loading_of
from core.run.stages.stage import Stage
from eval.grading import GRADER_VERSION
from eval.samples.evaluation import Decoding
from eval.sets.benchmarks import Benchmark, find_benchmark
from eval.sets.problem import Problem


def source_of(name: str) -> dict[str, str]:
    """The version of a benchmark's problems, and the words in which they are asked.

    It is that of their generator, of the local files, or the hub's name.
    """
    benchmark = find_benchmark(name)
    empty = Problem(id="", question="", answer="", language=benchmark.language)
    return {"version": _version(benchmark), "asked": benchmark.prompt(empty)}


def _version(benchmark: Benchmark) -> str:
    folder = os.environ.get("REPRO_DATA")
    if benchmark.folder is None and benchmark.hub is None:
        return f"generator {_generator()}"
    if benchmark.folder is None and not folder:
        return "hub"
    place = benchmark.folder or Path(folder or ".") / (benchmark.part_of or benchmark.name)
    return digest_of({p.name: file_digest(p) for p in sorted(place.glob("*")) if p.is_file()})


@cache
def _generator() -> str:
    """Digest of the sources that generate the pocket world."""
    spec = find_spec("eval.pocket")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return digest_of({p.name: file_digest(p) for place in places for p in Path(place).glob("*.py")})


def rows_version(one: DataSet) -> dict[str, object]:
    """The version of a data set's rows, and of the benchmarks that they are made of."""
    parts = {name: source_of(name) for name in one.source.benchmarks}
    return {"version": one.source.version(one.name), **parts}


def model_folder(name: str) -> Path | None:
    """The folder of a model that is shipped or local; None for one of the hub."""
    spec = find_spec("core.models")
    places = list(spec.submodule_search_locations or ()) if spec else []
    shipped = [Path(place) / "checkpoints" / name for place in places]
    return next((folder for folder in (*shipped, Path(name)) if folder.is_dir()), None)


def model_version(name: str) -> str:
    """Digest of a model's files, or its hub name."""
    folder = model_folder(name)
    return f"hub {name}" if folder is None else digest_of(folder_files(folder))


def data_stage(resolved: Resolved) -> Stage:
    """The rows that are trained on, made for the family's trainer."""
    name, family = resolved.run.data, resolved.paper.family
    return Stage(
        name="data",
        inputs={
            "data": name,
            "sources": {one.name: rows_version(one) for one in find_sets(name)},
            "family": family,
            "columns": find_family(family).columns,
        },
    )


def start_stage(resolved: Resolved) -> Stage:
    """The starting model."""
    name = resolved.run.model
    return Stage(name="start", inputs={"model": name, "version": model_version(name)})


def train_stage(resolved: Resolved, seed: int) -> Stage:
    """The training of one arm with one seed."""
    return Stage(
        name="train",
        inputs={
            **effective(resolved),
            "seed": seed,
            "data": data_stage(resolved).key,
            "start": start_stage(resolved).key,
            "grader": GRADER_VERSION,  # of the accuracy reward and of held-out problems
        },
    )


@dataclass(frozen=True, kw_only=True)
class Question:
    """What one eval stage asks of a policy: a suite, how many problems, and how to decode."""

    suite: str
    mirrors: str
    limit: int | None
    decoding: Decoding

    def stage(self, resolved: Resolved, policy: Stage) -> Stage:
        """The graded samples of one policy."""
        return Stage(
            name="eval",
            inputs={
                "policy": policy.key,
                "suite": self.suite,
                "source": source_of(self.suite),
                "decoding": asdict(self.decoding),
                "limit": self.limit,
                "dtype": loading_of(resolved).dtype,
                "threads": resolved.run.threads,
                "grader": GRADER_VERSION,
            },
        )


def greedy_questions(settings: RunSettings) -> list[Question]:
    """Every suite once, greedily."""
    return [
        Question(
            suite=suite,
            mirrors=name,
            limit=settings.eval_limit,
            decoding=Decoding(max_tokens=_tokens(settings, suite)),
        )
        for name, suite in settings.suites.items()
    ]


def at_k_questions(settings: RunSettings) -> list[Question]:
    """The first suites again, with the samples for Maj@K and Pass@K."""
    limits = [n for n in (settings.eval_limit, settings.at_k_limit) if n is not None]
    return [
        Question(
            suite=suite,
            mirrors=name,
            limit=min(limits, default=None),
            decoding=Decoding(
                samples=settings.at_k_samples,
                temperature=settings.at_k_temperature,
                max_tokens=_tokens(settings, suite),
            ),
        )
        for name, suite in list(settings.suites.items())[: settings.at_k_benchmarks]
    ]


def questions(resolved: Resolved) -> list[Question]:
    """All that is asked of a run's policy; samples only where a claim needs them."""
    sampled = at_k_questions(resolved.run) if resolved.arm in sampled_arms(resolved.paper) else []
    return greedy_questions(resolved.run) + sampled


def sampled_arms(paper: Paper) -> set[str]:
    """The arms whose samples a claim reads; the starting model's are in the record of any."""
    needs = [(claim.arms, *need) for claim in paper.claims for need in claim.needs]
    return {
        next(iter(arms), paper.main_arm) if arm == START else arm
        for arms, arm, need in needs
        if need.kind == "samples"
    }


def start_stages(resolved: Resolved) -> list[Stage]:
    """Loading and scoring the starting model."""
    start = start_stage(resolved)
    return [start, *(q.stage(resolved, start) for q in questions(resolved))]


def arm_stages(resolved: Resolved, seed: int) -> list[Stage]:
    """Training and scoring one arm with one seed."""
    train = train_stage(resolved, seed)
    scored = [q.stage(resolved, train) for q in questions(resolved)]
    return [data_stage(resolved), train, *scored]


def _tokens(settings: RunSettings, suite: str) -> int:
    """The most tokens of an answer: the run's setting, else the suite's."""
    return settings.eval_max_tokens or find_benchmark(suite).max_tokens
