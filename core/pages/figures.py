"""The figures of a paper's page."""

from collections.abc import Sequence

from core.families.family import Figure
from core.families.table import find_family
from core.pages.runs import title_of
from core.paper import Paper
from core.records.schema import RunRecord
from eval.tables.palette import to_bytes
from eval.tables.plots import sampling_curves, training_curves
from eval.tables.report import Picture


def make_pictures(paper: Paper, runs: Sequence[RunRecord]) -> tuple[Picture, ...]:
    """Draw the figures of a report."""
    seeds = len({run["seed"] for run in runs})
    subject = f"{paper.slug}, {seeds} seed{'s' if seeds > 1 else ''}"
    bands = " A band reaches from the lowest to the highest seed." if seeds > 1 else ""
    family = find_family(paper.family)
    figures = [
        (
            template.name,
            f"{template.caption}, {subject}.{bands}",
            template.alt,
            training_curves(runs, logged),
        )
        for template in (*family.figures, *claimed_curves(paper))
        if (logged := {n: label for n, label in template.metrics.items() if is_logged(n, runs)})
    ]
    sampled = [run for run in runs if run["sampling"] and run["main"]]
    if sampled:
        titles = {suite: title_of(suite) for suite in sampled[0]["sampling"]}
        figure = sampling_curves(sampled, titles)
        caption = f"Maj@K and Pass@K before and after {family.trained_by}, {subject}."
        figures.append(("at-k", caption, "Maj@K and Pass@K against K.", figure))
    return tuple(
        Picture(name=n, caption=c, alt=a, svg=to_bytes(f, "svg"), path=f"{n}.svg")
        for n, c, a, f in figures
    )


def claimed_curves(paper: Paper) -> tuple[Figure, ...]:
    """Return the figure of the metrics that claims read and no figure of the family shows."""
    family_metrics = {
        name for figure in find_family(paper.family).figures for name in figure.metrics
    }
    curves = [need for claim in paper.claims for _, need in claim.needs if need.kind == "curve"]
    metrics = {need.name: need.name for need in curves if need.name not in family_metrics}
    return (
        Figure(
            name="claimed",
            caption="What else the claims read while training, by the name it is logged with",
            alt="Logged metrics that claims read, by step for every arm.",
            metrics=metrics,
        ),
    )


def is_logged(metric: str, runs: Sequence[RunRecord]) -> bool:
    """Return whether any run has logged the metric."""
    return any(run["curves"].get(metric) for run in runs)
