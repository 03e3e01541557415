"""The page of choosing among solutions: what votes and scorers pick from the same samples."""

from core.families.table import find_family
from core.pages.families import members_of
from core.paper import Paper
from core.paper.registry import whole_papers
from core.records.places import Shelf
from eval.tables.render import environment
from eval.tables.report import REPORT_FORMATS

PAGE = "selection"


def selection_files(scale: str, shelf: Shelf) -> dict[str, str | bytes]:
    """Return the page by file name, and a figure for each policy; empty without stored scores."""
    papers = [paper for paper in whole_papers() if has_scorers(paper)]
    members = [one for one in members_of(papers, scale, shelf) if one.runs]
    if not members:
        return {}
    from core.pages.scored_policies import policies_of  # imports torch
    from core.pages.selection_chart import picture

    policies = policies_of(members)
    pictures = {f"{PAGE}-{i}.svg": picture(policy) for i, policy in enumerate(policies)}
    pages = {
        f"{PAGE}.{fmt}": environment(fmt)
        .get_template(f"{PAGE}.{fmt}.j2")
        .render(policies=policies, files=[*pictures])
        for fmt in REPORT_FORMATS
        if policies
    }
    return pages | pictures


def has_scorers(paper: Paper) -> bool:
    """Return whether an arm of a paper trains a model that scores solutions."""
    families = {paper.family_of(arm) for arm in (paper.main_arm, *paper.arms)}
    return any(find_family(name).solution_quantities for name in families)
