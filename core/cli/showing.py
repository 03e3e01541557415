"""`repro list`, `repro show` and `repro diff`: lists papers, prints one, and compares two."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import typer

from core.cli.loading import load_configs
from core.cli.options import AsJson, At, Slug
from core.cli.output import print_columns, print_json, print_markdown, print_text, tell
from core.families.profiles import SCALES
from core.families.table import FAMILIES, listed_families
from core.paper import Paper
from core.paper.page import TRL
from core.paper.registry import entries, find_entry, find_paper
from core.records.index import Index, kinds_and_scales
from core.settings.canonical import as_text
from eval.errors import ReproError
from eval.json_lines import JsonObject

# A line of `repro list` for a paper that cannot be read.
UNREAD = {"family": "(error)", "claims": "-", "numbers": "-", "runs": dict.fromkeys(SCALES, "-")}


def list_papers(
    family: Annotated[str | None, typer.Option(help="Only papers of this family.")] = None,
    as_json: AsJson = False,
) -> int:
    """List the papers: family, claims, reported numbers, runs and state at each scale.

    A paper that cannot be read is in the list too, and the exit code says so.
    """
    families = listed_families(family) if family is not None else frozenset(FAMILIES)
    rows, errors = list[JsonObject](), list[ReproError]()
    with kinds_and_scales() as index:
        for entry in entries().values():
            try:
                rows.append(summary(entry.load(), entry.distribution, index))
            except ReproError as error:
                rows.append({"paper": entry.slug, "from": entry.distribution, "error": str(error)})
                errors.append(error)
    chosen = [row for row in rows if "error" in row or row["family"] in families]
    if as_json:
        print_json(chosen)
    else:
        head = ("paper", "family", "claims", "numbers", *SCALES, "from")
        columns = [
            (r["paper"], r["family"], r["claims"], r["numbers"], *states(r), r["from"])
            for r in (UNREAD | row for row in chosen)
        ]
        print_columns(head, columns)
    return tell(errors)


def states(row: JsonObject) -> list[str]:
    """Return the cell of each scale: the number of runs, and whether claims are judged there."""
    if row.get("not_run"):
        return ["not run"] * len(SCALES)
    judged_scales = row.get("judged", ())
    return [
        f"{runs}, judged" if scale in judged_scales else f"{runs}"
        for scale, runs in row["runs"].items()
    ]


def show(paper: Slug, as_json: AsJson = False) -> None:
    """Show one paper: settings with passages, rewards, reported numbers, claims, caveats."""
    entry = find_entry(paper)
    loaded = entry.load()
    if as_json:
        return print_json(as_data(loaded, entry.text()))
    return print_paper(loaded, entry.text())


def print_paper(paper: Paper, text: str) -> None:
    """Print a paper with its module's docstring, section by section."""
    from core.pages.printed import passages, printed_table
    from eval.tables import render_all

    print_text(f"{paper.title}\n{paper.place}, family {paper.family}\n\n{text}\n")
    print_text(f"model    {paper.model}\ndata     {paper.data}")
    print_text(f"rewards  {', '.join(map(as_text, paper.rewards))}")
    print_text(f"scores   {', '.join(paper.benchmarks)}")
    for evaluation in paper.evaluations:
        print_text(f"asked    {evaluation}")
    if paper.not_run:
        print_text(f"not run  {paper.not_run}")
    print_text("\nsettings")
    print_columns(
        ("  name", "value", "passage"),
        [(f"  {s.name}", repr(s.value), s.passage) for s in paper.settings],
    )
    print_trainings("preparations", paper.preparations)
    print_trainings("arms", paper.arms)
    print_text("\nclaims")
    for claim in paper.claims:
        print_text(f"  {claim.slug}: {claim.statement}\n    {claim.test}")
    print_text(f"\nreported ({len(paper.reported)} numbers)\n")
    tables = [printed_table(paper, passage) for passage in passages(paper)]
    return print_markdown(render_all(tables, "md").rstrip("\n"))


def print_trainings(title: str, trainings: Mapping[str, Mapping[str, object]]) -> None:
    """Print the settings that each training of a paper changes, under a title if there are any."""
    if trainings:
        print_text(f"\n{title}")
    for name, changes in trainings.items():
        changed = ", ".join(f"{field}={as_text(value)}" for field, value in changes.items())
        print_text(f"  {name}: {changed or 'as above'}")


def diff(
    paper: Slug,
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="Another paper, or trl: TRL's paper index.")
    ],
    at: At = "paper",
    as_json: AsJson = False,
) -> None:
    """Show the settings in which two papers differ, or a paper and what TRL gives for it, and why.

    What a paper says of its entry in TRL's index as a whole stands below.
    """
    load_configs(find_paper(slug) for slug in (paper, other) if slug != TRL)
    from core.settings.differences import differences, remarks

    rows_of_differences = differences(paper, other, at)
    if as_json:
        return print_json([asdict(row_data) for row_data in rows_of_differences])
    rows = [
        (d.field, as_text(d.left.value), d.left.source, as_text(d.right.value), d.right.source)
        for d in rows_of_differences
    ]
    head = ("setting", paper, "from", other, "from")
    if other != TRL:
        return print_columns(head, rows)
    whys = [
        (*row, row_data.because) for row, row_data in zip(rows, rows_of_differences, strict=True)
    ]
    print_columns((*head, "because"), whys)
    return print_text("".join(f"\n{line}\n" for line in remarks(find_entry(paper).load())), end="")


def summary(paper: Paper, distribution: str, index: Index[tuple[str, str]]) -> JsonObject:
    """Return the row of a paper in `repro list`.

    Raises:
        DamagedFile: a record is not a JSON object.
    """
    kinds = Counter((kind, scale) for kind, scale in index.entries(paper.slug))
    return {
        "paper": paper.slug,
        "title": paper.title,
        "family": paper.family,
        "claims": len(paper.claims),
        "numbers": len(paper.reported),
        "runs": {scale: kinds["run", scale] for scale in SCALES},
        "judged": [scale for scale in SCALES if kinds["claims", scale]],
        "not_run": paper.not_run,
        "from": distribution,
    }


def as_data(paper: Paper, text: str) -> JsonObject:
    """Return a paper as JSON."""
    return {
        "slug": paper.slug,
        "title": paper.title,
        "arxiv": paper.arxiv,
        "url": paper.url,
        "family": paper.family,
        "base": paper.base,
        "text": text,
        "model": paper.model,
        "data": paper.data,
        "rewards": [as_text(reward) for reward in paper.rewards],
        "benchmarks": paper.benchmarks,
        "settings": [asdict(setting) for setting in paper.settings],
        "evaluations": [asdict(evaluation) for evaluation in paper.evaluations],
        "preparations": {name: dict(changes) for name, changes in paper.preparations.items()},
        "arms": {arm: dict(changes) for arm, changes in paper.arms.items()},
        "claims": [
            {"id": c.slug, "statement": c.statement, "compare": str(c.test)} for c in paper.claims
        ],
        "reported": [asdict(number) for number in paper.reported],
    }
