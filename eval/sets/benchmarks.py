"""The table of benchmarks: where their problems are, how many there are, and their prompts.

Another distribution adds a benchmark by an entry point of the group `repro.benchmarks`,
`name = "module:OBJECT"` with a `Benchmark` of that name.
"""

import os
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import regex

from eval.errors import BadValue, DamagedFile, MissingFile, UnknownName
from eval.names import check_name
from eval.nano import NANO_VERSION
from eval.nano.random_tables import COUNTS, MAX_TOKENS, pair_problems
from eval.nano.splits import TASKS, nano_problems
from eval.nano.task import Task
from eval.pocket import GENERATOR_VERSION
from eval.pocket.distracted import MOST, SIZE, distracted_problems
from eval.pocket.suites import DRAWS, SIZES
from eval.registered import find_row
from eval.sets.fewshot import FEW_SHOT, PAL, PROGRAMS, SHOTS, Shots
from eval.sets.generator import Generator
from eval.sets.loading import (
    MGSM_ROWS,
    Hub,
    cmath_row,
    content_digest,
    contest_row,
    gsm8k_row,
    load_hub,
    math500_row,
    math_row,
    read_problems,
    read_subset,
    with_answers,
)
from eval.sets.problem import Problem
from eval.sets.problem_cache import cached_pocket_problems
from eval.sets.prompts import BEGUN, DIRECT, REQUESTS, request_language, with_request
from eval.sets.subset import stratified_sample

QUESTION = "{}"  # the placeholder of the question in a frame


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A test set: its source, its size, its prompts and how its answers are graded.

    `n` is the full size; a score over fewer problems is marked as limited. Smaller samples are
    stratified by the attributes of `Problem` in `strata`; if the problems come `in_turn`, kind by
    kind and level by level, a smaller sample is simply the first ones. `margin` is the number of
    percentage points from a printed score that still count as reproduced, fixed here before any
    run. A set `by_id` is loaded from the hub if the data folder lacks it. A set with a `folder` of
    its own is read from `<split>.jsonl` in it, and one with a `generator` has the problems of a
    `draw`.

    A set may have its own prompt and grading: `frame` is the prompt, with {} for the question, and
    replaces the request for a boxed answer; `pattern` is a regular expression that finds the
    answer in an output, see `Answers`; `verbatim` answers are texts, such as the letter of a
    choice. `official` names the rule of `eval.grading.official` that its authors publish scores
    by, if any.

    Raises:
        BadValue: `name` cannot be the name of a folder, `frame` has no {} for the question, or
            `pattern` is not a regular expression.
    """

    name: str
    title: str
    n: int
    hub: Hub | None = None
    folder: Path | None = None
    language: str = "en"
    style: str = "number"  # of the answers: "number" or "latex"
    max_tokens: int = 1024  # of an answer, as in the paper's evaluation
    margin: float = 2.0
    part_of: str | None = None  # name of the set that this one is a subset of
    by_id: bool = False
    strata: tuple[str, ...] = ()  # attributes of a problem
    in_turn: bool = False
    generator: Generator | None = None
    draw: int = 0
    frame: str | None = None
    pattern: str | None = None
    verbatim: bool = False
    official: str = ""

    def __post_init__(self) -> None:
        check_name("benchmark", self.name)
        if self.frame is not None and self.frame.count(QUESTION) != 1:
            raise BadValue(f"{self.name}: frame={self.frame!r}: expected one {QUESTION} in it")
        try:
            regex.compile(self.pattern or "")
        except regex.error as error:
            raise BadValue(f"{self.name}: pattern={self.pattern!r}: {error}") from error

    @property
    def grading_overrides(self) -> dict[str, object]:
        """The fields of `Answers` that this benchmark sets for all its problems; mostly empty."""
        overrides = {"pattern": self.pattern, "verbatim": self.verbatim}
        return {name: override for name, override in overrides.items() if override}

    @property
    def is_generated(self) -> bool:
        """True if the problems are generated."""
        return self.generator is not None

    def draw_of(self, seed: int) -> int:
        """Return the number of the draw that belongs to a run's seed; 0 if nothing is drawn."""
        if self.generator is None:
            return 0
        return seed if self.generator.draws is None else seed % self.generator.draws

    def load(
        self, data: Path | None = None, limit: int | None = None, split: str = "test"
    ) -> list[Problem]:
        """Return the problems of a split in their order, or a representative sample of `limit`.

        They are read from `data`, else from the folder in REPRO_DATA, else from the hub.

        Raises:
            MissingFile: there is no such file, and no such data set in reach.
            DamagedFile: with the file, the line and what is wrong, or if the test split does not
                have `n` problems.
            BadValue: `limit` is less than 1.
        """
        if limit is not None and limit < 1:
            raise BadValue(f"limit={limit}: expected at least 1 problem")
        problems, source = self._load_all(data, split)
        if overrides := self.grading_overrides:
            problems = [replace(p, answers=replace(p.reference, **overrides)) for p in problems]
        if split == "test" and len(problems) != self.n:
            raise DamagedFile(
                f"{source}: {len(problems)} problems, expected {self.n}: "
                "the file is incomplete or of another version; get it again"
            )
        if limit is None or self.in_turn:
            return problems[:limit]
        return stratified_sample(problems, limit, self.strata)

    def describe_sample(self, limit: int | None) -> str | None:
        """Describe in words how `load` samples `limit` problems; None if it returns all of them."""
        if limit is None or limit >= self.n:
            return None
        if self.in_turn:
            return "the first ones, which are of all kinds in turn"
        return " ".join(
            ["a fixed sample", *(["over", " and ".join(self.strata)] if self.strata else [])]
        )

    def _load_all(self, data: Path | None, split: str) -> tuple[list[Problem], str]:
        """Return every problem of a split and the path or name of its source."""
        if self.folder is not None:
            own_path = self.folder / f"{split}.jsonl"
            return read_problems(own_path), str(own_path)
        if self.generator is not None:
            return [*self.generator.problems_of(split, self.draw)], self.name
        if self.hub is None:
            raise MissingFile(f"{self.name}: it has no hub, folder or generator: give it one")
        folder = data or os.environ.get("REPRO_DATA")
        path = Path(folder or ".") / (self.part_of or self.name) / f"{split}.jsonl"
        if not folder or (self.by_id and not path.exists()):
            return load_hub(self.name, self.hub, split), self.hub.id
        return self._read_data_folder(path, split), str(path)

    def _read_data_folder(self, path: Path, split: str) -> list[Problem]:
        """Return the problems of a split, with all their reference answers, from the data folder.

        `path` is the file of the set, or of the set that this one is a subset of.
        """
        all_problems = read_problems(path)
        ids = path.with_name(f"{self.name}_ids.txt")
        problems = read_subset(ids, all_problems) if self.part_of else all_problems
        self._check_digest(problems, path, split)
        answered = with_answers(all_problems, path.with_name(f"{split}_multibox.jsonl"))
        return read_subset(ids, answered) if self.part_of else answered

    def _check_digest(self, problems: list[Problem], path: Path, split: str) -> None:
        """Raise DamagedFile if a complete test set differs from the published one."""
        expected = DIGESTS.get(self.name)
        if split != "test" or expected is None or len(problems) != self.n:
            return
        actual = content_digest(problems)
        if actual != expected:
            raise DamagedFile(
                f"{path}: questions and answers have the digest {actual}, expected {expected}: "
                "a question or an answer differs from the published set; get it again"
            )

    def prompt(self, problem: Problem, mode: str = "cot") -> str:
        """Return the prompt of a problem: its question with a request, or after worked examples.

        Raises:
            UnknownName: the benchmark has no such mode.
        """
        if self.frame is not None:
            self.check_mode(mode)
            return self.frame.replace(QUESTION, problem.question)
        if shots := self.shots(mode, request_language(problem.language)):
            return shots.prompt(problem)
        self.check_mode(mode)
        return with_request(problem.question, problem.language, mode)

    def shots(self, mode: str, language: str) -> Shots | None:
        """Return the few-shot prompt of a mode and language; None for modes without examples."""
        return {FEW_SHOT: SHOTS.get((self.style, language)), PAL: PROGRAMS[self.style]}.get(mode)

    def check_mode(self, mode: str) -> None:
        """Check that the benchmark has a mode of answering.

        Raises:
            UnknownName: it has no such mode; the message lists the modes.
        """
        modes = {"cot"} if self.frame else {FEW_SHOT, PAL, *(name for name, _ in REQUESTS)}
        if mode not in modes:
            raise UnknownName("mode", mode, modes)

    def beginning(self, mode: str) -> str:
        """Return the beginning of an answer that the model continues; mostly empty."""
        return BEGUN if mode == DIRECT else ""

    def stop(self, mode: str) -> tuple[str, ...]:
        """Return the texts that end generation: those that would begin a next example or line."""
        if mode == DIRECT:
            return ("\n",)
        shots = self.shots(mode, request_language(self.language))
        return (shots.stop,) if shots else ()


@cache
def generated_problems(name: str, split: str, draw: int) -> tuple[Problem, ...]:
    """Return the problems of a suite of the pocket world, read once in a process."""
    return cached_pocket_problems(name, split, draw)


def contest(name: str, title: str, n: int) -> Benchmark:
    """Return a contest of few problems with integer answers, answered by long chains of thought."""
    hub = Hub(f"math-ai/{name}", None, contest_row)
    return Benchmark(name=name, title=title, n=n, hub=hub, max_tokens=32_768, by_id=True)


def mgsm(language: str) -> Benchmark:
    """Return MGSM in one language: 250 problems of GSM8K, translated."""
    name, hub = f"mgsm_{language}", Hub("juletxara/mgsm", language, MGSM_ROWS[language])
    return Benchmark(
        name=name,
        title=f"MGSM-{language}",
        n=250,
        hub=hub,
        language=language,
        by_id=name not in DIGESTS,
        official="mgsm",
    )


def pocket(name: str, title: str, language: str, style: str) -> Benchmark:
    """Return a suite of the pocket world; its longest solution is under 200 tokens."""
    return Benchmark(
        name=name,
        title=title,
        language=language,
        n=SIZES["test"],
        max_tokens=200,
        style=style,
        generator=Generator(partial(generated_problems, name), GENERATOR_VERSION, draws=DRAWS),
        in_turn=True,
    )


def distracted(distractors: int) -> Benchmark:
    """Return the Chinese stories of the pocket world with this number of distractors in each."""
    return Benchmark(
        name=f"pocket-distractors-{distractors}",
        title=f"pocket CMATH, {distractors} distractors",
        language="zh",
        n=SIZE,
        max_tokens=200,
        generator=Generator(
            partial(distracted_problems, distractors), GENERATOR_VERSION, draws=DRAWS
        ),
        in_turn=True,
    )


def nano(task: Task) -> Benchmark:
    """Return the suite of a nano task, whose questions are prompts as they stand."""
    return Benchmark(
        name=task.name,
        title=task.title,
        n=task.test_problems,
        max_tokens=task.max_tokens,
        generator=Generator(partial(nano_problems, task.name), f"nano {NANO_VERSION}"),
        frame=QUESTION,
        in_turn=True,
    )


def pair_table(name: str) -> Benchmark:
    """Return a table of random pairs of letters, whose keys are prompts as they stand."""
    return Benchmark(
        name=name,
        title=name.replace("-", " "),
        n=COUNTS[name],
        max_tokens=MAX_TOKENS,
        generator=Generator(partial(pair_problems, name), f"nano {NANO_VERSION}"),
        frame=QUESTION,
        in_turn=True,
    )


# `content_digest` of the local test files; of the hub's copies only the size is checked.
DIGESTS = {
    "cmath": "52f0eec432e7aaa0a62e896ae2acc6a232ef4280add89fba28f7bfbbccbd46d8",
    "gsm8k": "679f50aa36753f39e88f0f2e50baaa1a73109f01717733d347d42619a1846aaa",
    "math": "bdfbec4943c53a69845b6fb71491ac9167c74b0784c5fd45cef515f93a029e63",
    "math500": "ad1ae87cbaca8ce2c4830ed1dcd534566119adab530b7dd1d66537379efcbea0",
    "mgsm_en": "2fa7d38940a766d59a81a87b3d0421b7b60cbf160c0e7c3d48a29d0cf32fb29b",
    "mgsm_zh": "f4b9e48825e02361707d119baedaa3a93698a95035bbf378f1d259b88afc048b",
}
GSM8K = Hub("openai/gsm8k", "main", gsm8k_row)
PLATINUM = Hub("madrylab/gsm8k-platinum", "main", gsm8k_row)
MATH = Hub("DigitalLearningGmbH/MATH-lighteval", None, math_row)
MATH500 = Hub("HuggingFaceH4/MATH-500", None, math500_row)
CMATH = Hub("weitianwen/cmath", None, cmath_row)
ROWS = (
    Benchmark(name="gsm8k", title="GSM8K", n=1319, hub=GSM8K, official="gsm8k"),
    Benchmark(
        name="gsm8k-platinum",
        title="GSM8K-Platinum",
        n=1209,
        hub=PLATINUM,
        by_id=True,
        official="gsm8k",
    ),
    Benchmark(
        name="math",
        title="MATH",
        n=5000,
        hub=MATH,
        style="latex",
        strata=("subject", "level"),
        official="math",
    ),
    Benchmark(
        name="math500",
        title="MATH-500",
        n=500,
        hub=MATH500,
        style="latex",
        part_of="math",
        strata=("subject", "level"),
        official="math",
    ),
    *(mgsm(language) for language in MGSM_ROWS),
    Benchmark(
        name="cmath",
        title="CMATH",
        n=1098,
        hub=CMATH,
        language="zh",
        strata=("level",),
        official="cmath",
    ),
    contest("aime24", "AIME 2024", 30),
    contest("aime25", "AIME 2025", 30),
    contest("amc23", "AMC 2023", 40),
    pocket("pocket-gsm8k", "pocket GSM8K", "en", "number"),
    pocket("pocket-math", "pocket MATH", "en", "latex"),
    pocket("pocket-mgsm-zh", "pocket MGSM-zh", "zh", "number"),
    pocket("pocket-cmath", "pocket CMATH", "zh", "number"),
    *map(distracted, range(MOST + 1)),
    *map(nano, TASKS.values()),
    *map(pair_table, COUNTS),
)
BENCHMARKS = {row.name: row for row in ROWS}


def find_benchmark(name: str, draw: int = 0) -> Benchmark:
    """Return the benchmark of a name; a generated one with the test set of a draw.

    Raises:
        UnknownName: there is no such benchmark; the message suggests the nearest names.
        BadValue: another distribution registers an object that is not a benchmark, or a benchmark
            under a name of ours.
    """
    benchmark = find_row("benchmark", name, BENCHMARKS, "repro.benchmarks", Benchmark)
    return replace(benchmark, draw=draw) if benchmark.is_generated else benchmark


def find_benchmark_or_none(name: str) -> Benchmark | None:
    """Return the benchmark of a name; None if it is not installed, as a record may name such."""
    try:
        return find_benchmark(name)
    except UnknownName:
        return None
