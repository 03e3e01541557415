"""The benchmarks: where their problems are, how many there are, how they are asked.

Another distribution adds one by an entry point of the group `repro.benchmarks`,
`name = "module:OBJECT"` with a `Benchmark` of that name.
"""

import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import regex

from eval.errors import BadValue, DamagedFile, UnknownName
from eval.names import check_name
from eval.pocket.suites import SIZES
from eval.registered import find_row
from eval.sets.fewshot import FEW_SHOT, PAL, PROGRAMS, SHOTS, Shots
from eval.sets.kept import kept_problems
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
from eval.sets.prompts import REQUESTS, request_language, with_request
from eval.sets.subset import stratified

QUESTION = "{}"  # its place in a frame


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One test set. `n` is its full size; a score over fewer problems is marked as limited.

    `strata` are what a part of it is drawn over; a set whose problems come `in_turn`, kind by kind
    and level by level, has a fair part in its first ones. `margin` is how many points from a
    printed score still count as reproduced: it stands here so that it is chosen before any run. A
    set `by_id` need not lie in the data folder. A set may lie in a `folder` of its own, as
    `<split>.jsonl`.

    A set may ask and judge in its own way: `frame` is its prompt, with {} for the question, in
    place of the request for a box; `pattern` is a regular expression that finds the answer in an
    output, see `Answers`; `verbatim` answers are texts, such as the letter of a choice.

    Raises:
        BadValue: a name that no folder can have, a frame without a place for the question, or a
            pattern that is none.
    """

    name: str
    title: str
    n: int
    hub: Hub | None = None  # None without a folder: the set is generated
    folder: Path | None = None
    language: str = "en"
    style: str = "number"  # what an answer is: "number" or "latex"
    max_tokens: int = 1024  # the limit of the paper's evaluation
    margin: float = 2.0
    part_of: str | None = None  # the set whose problems it chooses from
    by_id: bool = False
    strata: tuple[str, ...] = ()  # attributes of a problem
    in_turn: bool = False
    draw: int = 0  # of a generated set's test problems
    frame: str | None = None
    pattern: str | None = None
    verbatim: bool = False

    def __post_init__(self) -> None:
        check_name("benchmark", self.name)
        if self.frame is not None and self.frame.count(QUESTION) != 1:
            raise BadValue(f"{self.name}: frame={self.frame!r}: expected one {QUESTION} in it")
        try:
            regex.compile(self.pattern or "")
        except regex.error as error:
            raise BadValue(f"{self.name}: pattern={self.pattern!r}: {error}") from error

    @property
    def judges(self) -> dict[str, object]:
        """How it judges in its own way; nothing where it judges as the others do."""
        own = {"pattern": self.pattern, "verbatim": self.verbatim}
        return {name: value for name, value in own.items() if value}

    @property
    def generated(self) -> bool:
        """Whether its problems are made here, see `eval.pocket`."""
        return self.hub is None and self.folder is None

    def load(
        self, data: Path | None = None, limit: int | None = None, split: str = "test"
    ) -> list[Problem]:
        """The problems of a split, in their order; if it is given, a fair part of `limit` of them.

        From `data`, else from the folder in REPRO_DATA, else from the hub.

        Raises:
            MissingFile, DamagedFile, BadValue: with the file, the line and what is wrong.
        """
        if limit is not None and limit < 1:
            raise BadValue(f"limit={limit}: expected at least 1 problem")
        problems, source = self._all(data, split)
        if self.judges:
            problems = [replace(p, answers=replace(p.reference, **self.judges)) for p in problems]
        if split == "test" and len(problems) != self.n:
            raise DamagedFile(
                f"{source}: {len(problems)} problems, expected {self.n}: "
                "the file is incomplete or of another version; get it again"
            )
        if limit is None or self.in_turn:
            return problems[:limit]
        return stratified(problems, limit, self.strata)

    def drawn(self, limit: int | None) -> str | None:
        """How `load` draws a part of so many problems, in words; None for the whole set."""
        if limit is None or limit >= self.n:
            return None
        if self.in_turn:
            return "the first ones, which are of all kinds in turn"
        return " ".join(
            ["a fixed sample", *(["over", " and ".join(self.strata)] if self.strata else [])]
        )

    def _all(self, data: Path | None, split: str) -> tuple[list[Problem], str]:
        """Every problem of a split and where it came from."""
        if self.folder is not None:
            own = self.folder / f"{split}.jsonl"
            return read_problems(own), str(own)
        if self.hub is None:
            draw = self.draw if split == "test" else 0
            return [*made_problems(self.name, split, draw)], self.name
        folder = data or os.environ.get("REPRO_DATA")
        path = Path(folder or ".") / (self.part_of or self.name) / f"{split}.jsonl"
        if not folder or (self.by_id and not path.exists()):
            return load_hub(self.name, self.hub, split), self.hub.id
        whole = read_problems(path)
        ids = path.with_name(f"{self.name}_ids.txt")
        problems = read_subset(ids, whole) if self.part_of else whole
        self._check_digest(problems, path, split)
        several = with_answers(whole, path.with_name(f"{split}_multibox.jsonl"))
        return (read_subset(ids, several) if self.part_of else several), str(path)

    def _check_digest(self, problems: list[Problem], path: Path, split: str) -> None:
        """Refuse a whole test set whose questions or answers are not the known ones."""
        expected = DIGESTS.get(self.name)
        if split != "test" or expected is None or len(problems) != self.n:
            return
        found = content_digest(problems)
        if found != expected:
            raise DamagedFile(
                f"{path}: questions and answers have the digest {found}, expected {expected}: "
                "a question or an answer differs from the published set; get it again"
            )

    def prompt(self, problem: Problem, mode: str = "cot") -> str:
        """The question, a newline and the request in Chinese or English, or examples before it."""
        if self.frame is not None:
            self.check_mode(mode)
            return self.frame.replace(QUESTION, problem.question)
        if shots := self.shots(mode, request_language(problem.language)):
            return shots.prompt(problem)
        self.check_mode(mode)
        return with_request(problem.question, problem.language, mode)

    def shots(self, mode: str, asked: str) -> Shots | None:
        """The examples of a mode that has some."""
        return {FEW_SHOT: SHOTS.get((self.style, asked)), PAL: PROGRAMS[self.style]}.get(mode)

    def check_mode(self, mode: str) -> None:
        """Refuse a mode of answering that there is not.

        Raises:
            UnknownName: with the modes that there are.
        """
        known = {"cot"} if self.frame else {FEW_SHOT, PAL, *(name for name, _ in REQUESTS)}
        if mode not in known:
            raise UnknownName("mode", mode, known)

    def stop(self, mode: str) -> tuple[str, ...]:
        """The texts before which an answer ends: where the next example would begin."""
        shots = self.shots(mode, request_language(self.language))
        return (shots.stop,) if shots else ()


@cache
def made_problems(name: str, split: str, draw: int) -> tuple[Problem, ...]:
    """The problems of a generated set, told once in a process."""
    return kept_problems(name, split, draw)


def contest(name: str, title: str, n: int) -> Benchmark:
    """A contest of few problems with integer answers, on which long chains of thought are usual."""
    hub = Hub(f"math-ai/{name}", None, contest_row)
    return Benchmark(name=name, title=title, n=n, hub=hub, max_tokens=32_768, by_id=True)


def mgsm(language: str) -> Benchmark:
    """MGSM in one language: 250 problems of GSM8K, translated."""
    name, hub = f"mgsm_{language}", Hub("juletxara/mgsm", language, MGSM_ROWS[language])
    return Benchmark(
        name=name,
        title=f"MGSM-{language}",
        n=250,
        hub=hub,
        language=language,
        by_id=name not in DIGESTS,
    )


def pocket(name: str, title: str, language: str, style: str) -> Benchmark:
    """A suite of the pocket world; its longest solution is under 200 tokens."""
    return Benchmark(
        name=name,
        title=title,
        language=language,
        n=SIZES["test"],
        max_tokens=200,
        style=style,
        hub=None,
        in_turn=True,
    )


# Of the questions and answers of the local test files; the hub's copies are only counted.
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
    Benchmark(name="gsm8k", title="GSM8K", n=1319, hub=GSM8K),
    Benchmark(name="gsm8k-platinum", title="GSM8K-Platinum", n=1209, hub=PLATINUM, by_id=True),
    Benchmark(
        name="math", title="MATH", n=5000, hub=MATH, style="latex", strata=("subject", "level")
    ),
    Benchmark(
        name="math500",
        title="MATH-500",
        n=500,
        hub=MATH500,
        style="latex",
        part_of="math",
        strata=("subject", "level"),
    ),
    *(mgsm(language) for language in MGSM_ROWS),
    Benchmark(name="cmath", title="CMATH", n=1098, hub=CMATH, language="zh", strata=("level",)),
    contest("aime24", "AIME 2024", 30),
    contest("aime25", "AIME 2025", 30),
    contest("amc23", "AMC 2023", 40),
    pocket("pocket-gsm8k", "pocket GSM8K", "en", "number"),
    pocket("pocket-math", "pocket MATH", "en", "latex"),
    pocket("pocket-mgsm-zh", "pocket MGSM-zh", "zh", "number"),
    pocket("pocket-cmath", "pocket CMATH", "zh", "number"),
)
BENCHMARKS = {row.name: row for row in ROWS}


def find_benchmark(name: str, draw: int = 0) -> Benchmark:
    """The benchmark of that name; a generated one with the test problems of a draw.

    Raises:
        UnknownName: there is none; the nearest names are given.
        BadValue: another distribution registers what is no benchmark, or one that we have.
    """
    found = find_row("benchmark", name, BENCHMARKS, "repro.benchmarks", Benchmark)
    return replace(found, draw=draw) if found.generated else found


def known_benchmark(name: str) -> Benchmark | None:
    """The benchmark of that name, or None: a record may name one that is not installed here."""
    try:
        return find_benchmark(name)
    except UnknownName:
        return None
