"""The page to browse samples of one model or of two: one self-contained file that finds them."""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from eval.samples.prompted_samples import PromptedSample
from eval.tables.formulas import FORMULA, formulas
from eval.tables.render import TEMPLATES, environment

SHOWN = 10_000  # samples that a page holds; a browser stays quick with these

WORDS = {True: "right", False: "wrong", None: "none"}


@dataclass(frozen=True)
class Asked:
    """What was asked under a name, such as a benchmark's, and the samples of each model."""

    name: str
    samples: tuple[Sequence[PromptedSample], ...]

    def problems(self, limit: int) -> list[dict[str, Any]]:  # Any: texts, numbers and lists
        """Each problem with the samples of every model, as long as there are at most `limit`."""
        found: dict[str, list[list[PromptedSample]]] = {}
        for place, samples in enumerate(self.samples):
            for sample in samples:
                sides = found.setdefault(sample.id, [[] for _ in self.samples])
                sides[place].append(sample)
        made: list[dict[str, Any]] = []
        for sides in found.values():
            limit -= sum(map(len, sides))
            if limit < 0:
                break
            made.append(self.problem(sides))
        return made

    def problem(self, sides: list[list[PromptedSample]]) -> dict[str, Any]:
        """A problem's own texts, and what each model answers to it."""
        first = next(sample for side in sides for sample in side)
        return {
            "asked": self.name,
            "id": first.id,
            "level": first.level,
            "subject": first.subject,
            "prompt": first.prompt,
            "promptTokens": first.prompt_tokens,
            "answer": first.answer,
            "sides": [[shown(sample) for sample in side] for side in sides],
        }


@dataclass(frozen=True, kw_only=True)
class Page:
    """What the template shows; `data` is JSON in which no text can end the script element.

    `several` says whether some problem has several samples, `differ` whether the samples carry the
    paper's verdicts too. `script_hash` is all that the page's policy lets run, so no text of a
    model ever does. `key` is of the one who makes the page, to know it again.
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
    script: str
    script_hash: str


def shown(sample: PromptedSample) -> dict[str, Any]:
    """A sample as the page's script reads it."""
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


def render_page(asked: Sequence[Asked], models: Sequence[str], title: str, key: str = "") -> str:
    """An HTML page over the samples of one model, or of two that stand side by side.

    It says so when it holds the first `SHOWN` of more, of each thing asked as many.
    """
    script = (TEMPLATES / "samples.js").read_text(encoding="utf-8")
    problems = [row for one in asked for row in one.problems(SHOWN // len(asked))]
    samples = [sample for row in problems for side in row["sides"] for sample in side]
    everything = [sample for one in asked for side in one.samples for sample in side]
    texts = [row[name] for row in problems for name in ("prompt", "answer")]
    data = {
        "models": list(models),
        "problems": problems,
        "formula": FORMULA.pattern,
        "formulas": formulas(texts + [sample["output"] for sample in samples]),
    }
    page = Page(
        title=title,
        key=key,
        models=models,
        asked=[one.name for one in asked],
        levels=sorted({row["level"] for row in problems if row["level"] is not None}),
        subjects=sorted({row["subject"] for row in problems if row["subject"]}),
        several=any(len(side) > 1 for row in problems for side in row["sides"]),
        differ=any(sample.paper_correct is not None for sample in everything),
        shown=len(samples),
        total=len(everything),
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
    )
    return environment("html").get_template("samples.html.j2").render(page=page)
