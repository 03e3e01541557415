"""Renders the self-contained HTML page for browsing the samples of one or two models."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypedDict, TypeVar

from eval.samples.prompted_samples import PromptedSample
from eval.tables.formulas import FORMULA, formulas
from eval.tables.render import Script, environment, load_script

SHOWN = 10_000  # samples of a page at most, so that browsers stay fast

Label = TypeVar("Label", int, str)
WORDS = {True: "right", False: "wrong", None: "none"}


class SampleRow(TypedDict):
    """A sample in the page's JSON."""

    sample: int
    output: str
    extracted: str | None
    verdict: str
    paper: str
    rule: str
    reason: str | None
    tokens: int | None
    truncated: bool | None


class ProblemRow(TypedDict):
    """A problem in the page's JSON; `sides` has the samples of each model."""

    asked: str
    id: str
    level: int | None
    subject: str | None
    prompt: str
    promptTokens: int | None
    answer: str
    sides: list[list[SampleRow]]


@dataclass(frozen=True)
class SampleSet:
    """The samples of each model on one benchmark, or on another named set of prompts.

    `samples` has one sequence for each model, in the order of the page's columns.
    """

    name: str
    samples: tuple[Sequence[PromptedSample], ...]

    def problems(self, limit: int) -> list[ProblemRow]:
        """Return the problems with every model's samples, until `limit` samples are reached."""
        sides_by_problem: dict[str, list[list[PromptedSample]]] = {}
        for place, samples in enumerate(self.samples):
            for sample in samples:
                sides = sides_by_problem.setdefault(sample.id, [[] for _ in self.samples])
                sides[place].append(sample)
        rows: list[ProblemRow] = []
        for sides in sides_by_problem.values():
            limit -= sum(map(len, sides))
            if limit < 0:
                break
            rows.append(self.problem(sides))
        return rows

    def problem(self, sides: list[list[PromptedSample]]) -> ProblemRow:
        """Return the texts of a problem and the answers of each model to it."""
        first = next(sample for side in sides for sample in side)
        return {
            "asked": self.name,
            "id": first.id,
            "level": first.level,
            "subject": first.subject,
            "prompt": first.prompt,
            "promptTokens": first.prompt_tokens,
            "answer": first.answer,
            "sides": [[sample_row(sample) for sample in side] for side in sides],
        }


@dataclass(frozen=True, kw_only=True)
class Page:
    """The fields of the template `samples.html.j2`.

    `data` is JSON in which no text can close the script element. `several` says that some problem
    has several samples, `differ` that samples carry the paper's verdicts too. `script`
    is the only one that the page's content security policy allows, so no text of a model is ever
    run. `key` identifies the page to the caller that wrote it.
    """

    title: str
    key: str
    models: Sequence[str]
    asked: Sequence[str]
    levels: Sequence[int]
    subjects: Sequence[str]
    several: bool
    differ: bool
    shown: int
    total: int
    data: str
    script: Script


def sample_row(sample: PromptedSample) -> SampleRow:
    """Return the fields of a sample that the page's script reads."""
    return {
        "sample": sample.sample,
        "output": sample.output,
        "extracted": sample.extracted,
        "verdict": WORDS[sample.correct],
        "paper": WORDS[sample.paper_correct],
        "rule": sample.rule,
        "reason": sample.reason,
        "tokens": sample.tokens,
        "truncated": sample.truncated,
    }


def render_page(sets: Sequence[SampleSet], models: Sequence[str], title: str, key: str = "") -> str:
    """Return an HTML page with the samples of one model, or of two side by side.

    The page holds at most `SHOWN` samples, an equal number of each set, and says so if it omits
    some.

    There must be at least one set.
    """
    shown = SHOWN // len(sets)
    problems = list(chain.from_iterable(sample_set.problems(shown) for sample_set in sets))
    sides = list(chain.from_iterable(row["sides"] for row in problems))
    all_samples = list(chain.from_iterable(side for s in sets for side in s.samples))
    page = Page(
        title=title,
        key=key,
        models=models,
        asked=[sample_set.name for sample_set in sets],
        levels=distinct(row["level"] for row in problems),
        subjects=distinct(row["subject"] or None for row in problems),
        several=max(map(len, sides), default=0) > 1,
        differ=any(sample.paper_correct is not None for sample in all_samples),
        shown=sum(map(len, sides)),
        total=len(all_samples),
        data=page_data(problems, models),
        script=load_script("samples.js"),
    )
    return environment("html").get_template("samples.html.j2").render(page=page)


def distinct(values: Iterable[Label | None]) -> list[Label]:
    """Return the distinct values in ascending order, without None."""
    return sorted({value for value in values if value is not None})


def page_data(problems: Sequence[ProblemRow], models: Sequence[str]) -> str:
    """Return the problems and the MathML of their formulas as JSON for the page's script."""
    texts = [text for row in problems for text in (row["prompt"], row["answer"])]
    sides = [side for row in problems for side in row["sides"]]
    outputs = [sample["output"] for side in sides for sample in side]
    data = {
        "models": list(models),
        "problems": problems,
        "formula": FORMULA.pattern,
        "formulas": formulas(texts + outputs),
    }
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
