"""The page to browse samples: one self-contained file that finds, filters and shows them."""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from eval.samples.prompted_samples import PromptedSample
from eval.tables.render import TEMPLATES, environment

SHOWN = 5000  # samples that a page holds; a browser stays quick with these

WORDS = {True: "right", False: "wrong", None: "none"}


@dataclass(frozen=True, kw_only=True)
class Page:
    """What the template shows; `data` is JSON in which no text can end the script element.

    `graders` is 2 where the samples carry the paper's verdicts too. `script_hash` is all that the
    page's policy lets run, so no text of a model ever does.
    """

    title: str
    shown: int
    total: int
    graders: int
    data: str
    script: str
    script_hash: str


def render_page(samples: Sequence[PromptedSample], title: str) -> str:
    """An HTML page over samples; it says so when it holds the first `SHOWN` of more."""
    script = (TEMPLATES / "samples.js").read_text(encoding="utf-8")
    page = Page(
        title=title,
        shown=min(len(samples), SHOWN),
        total=len(samples),
        graders=1 + any(s.paper_correct is not None for s in samples),
        data=page_data(samples[:SHOWN]),
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
    )
    return environment("html").get_template("samples.html.j2").render(page=page)


def page_data(samples: Sequence[PromptedSample]) -> str:
    """The samples as ASCII JSON without `<`; what a problem's samples share is there once."""
    problems = {s.id: {"prompt": s.prompt, "answer": s.answer} for s in samples}
    rows = [
        {
            "id": s.id,
            "sample": s.sample,
            "output": s.output,
            "extracted": s.extracted,
            "verdict": WORDS[s.correct],
            "paper": WORDS[s.paper_correct],
            "rule": s.rule,
            "reason": s.reason,
            "tokens": s.tokens,
            "promptTokens": s.prompt_tokens,
            "truncated": s.truncated,
        }
        for s in samples
    ]
    return json.dumps({"problems": problems, "samples": rows}).replace("<", "\\u003c")
