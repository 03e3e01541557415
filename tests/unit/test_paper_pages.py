"""The page of a paper without runs says what the paper says, and the verdicts that need none."""

from pathlib import Path

import pytest

from core.pages.report import report_files
from core.paper.registry import entries
from core.settings.differences import from_trl
from core.settings.resolve import resolve

PAPERS = [entry.load() for entry in entries().values()]


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.slug)
def test_a_page_without_runs_has_settings_differences_and_verdicts(paper):
    page = str(report_files(paper, (), "cpu", Path())["report.md"])
    parts = {part.splitlines()[0]: part for part in page.split("\n## ")}
    for title, scale in (("Settings at paper scale", "paper"), ("Settings at cpu scale", "cpu")):
        for name, value in resolve(paper, scale=scale).values.items():
            assert f"| {name} " in parts[title]
            assert value.source.split("*")[0].split("_")[0] in parts[title]
    for found in from_trl(paper):
        assert f"| {found.field} " in parts["Differences to TRL"]
    counts = {"held": 0, "refuted": 0, "untested": 0, "untestable": 0}
    for line in parts.get("Claims", "").splitlines():
        word = line.split("|")[1].strip() if line.startswith("|") else ""
        counts |= {word: counts[word] + 1} if word in counts else {}
    kinds = [getattr(claim.test, "kind", "untestable") for claim in paper.claims]
    assert counts["untested"] == kinds.count("runs") + kinds.count("simulated")
    assert counts["untestable"] == kinds.count("untestable")
    assert counts["held"] + counts["refuted"] >= kinds.count("exact")
