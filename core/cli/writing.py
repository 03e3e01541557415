"""`repro new`: writes the module of a paper, or of unpublished work, to fill in."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from core.cli.output import print_text
from core.families.family import Family
from core.paper.registry import entries
from eval.errors import BadValue
from eval.names import check_slug
from eval.terminal import say

MODULE = '''"""TODO: what the paper does, in one sentence.

- Where paper, code and TRL disagree: one item each.
"""

from core.paper import {names}
{imports}
PAPER = Paper(
    slug="{slug}",
    title="TODO",
    {place},
    family="{family}",{base}
{settings}    model="TODO/owner-and-name",
    arms={{"{slug}": {{}}}},
)
'''


# What makes the rows that no data set has, and their place in the paper.
PREPARED_ROWS = """data="prepared:rows",
    preparations={{
        "rows": {{"family": "{maker}", "data": "{data}", "at": {{"cpu": {{"data": "pocket"}}}}}}
    }},
    profiles={{"cpu": {{"data": "prepared:rows"}}}}"""


def family_fields(family: Family) -> dict[str, str]:
    """Return the fields of `MODULE` that depend on the family, such as imports and data."""
    has_rewards = "rewards" not in family.unused
    lines = {
        'config=(cite("unstated", learning_rate=1e-6),)': family.trains,
        "rewards=(Accuracy(),)": has_rewards,
        data_field(family): family.trains,
        'benchmarks=("gsm8k", "math")': not (family.gives_rewards or family.gives_texts),
    }
    return {
        "names": "Paper, cite" if family.trains else "Paper",
        "imports": "from core.rewards import Accuracy\n" if has_rewards else "",
        "settings": "".join(f"    {line},\n" for line, needed in lines.items() if needed),
    }


def data_field(family: Family) -> str:
    """Return the field `data` for a family, with the preparation of columns no data set has."""
    from core.data.sets import find_sets
    from core.families.table import FAMILIES

    wanted = family.other_columns or family.columns
    data = "pocket-worked" if "completion" in wanted else "gsm8k+math"
    available = {name for dataset in find_sets(data) for name in dataset.columns or ()}
    missing = {*wanted} - available
    for maker in FAMILIES.values():
        if missing and missing <= {*maker.gives}:
            return PREPARED_ROWS.format(maker=maker.name, data=data)
    return f'data="{data}"'


def new(
    slug: Annotated[str, typer.Argument(help="Lower case, words joined by hyphens.")],
    arxiv: Annotated[
        str | None, typer.Option(help="E.g. 2501.01234; unpublished work has none.")
    ] = None,
    family: Annotated[str, typer.Option(help="Whose trainer it uses.")] = "grpo",
    base: Annotated[str | None, typer.Option(help="The paper it differs from.")] = None,
    folder: Annotated[Path, typer.Option(help="Where the module goes.")] = Path("papers"),
) -> None:
    """Write the module of a new paper, or of unpublished work, to fill in."""
    from core.families.table import find_family
    from core.paper.registry import find_entry

    check_slug(slug)
    if arxiv is not None and not re.fullmatch(r"\d{4}\.\d{4,5}", arxiv):
        raise BadValue(f"--arxiv {arxiv}: expected a number such as 2501.01234")
    chosen = find_family(family)
    if chosen.gives:
        raise BadValue(f"--family {family} makes rows: name it in a paper's `preparations`")
    if base is not None:
        find_entry(base)
    path = folder / f"{slug.replace('-', '_')}.py"
    if slug in entries() or path.exists():
        raise BadValue(f"{slug} exists already ({path}): choose another slug")
    line = f'\n    base="{base}",' if base else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    place = f'arxiv="{arxiv}"' if arxiv else 'url="TODO: where it can be read, or empty"'
    filled = MODULE.format(
        slug=slug, place=place, family=family, base=line, **family_fields(chosen)
    )
    path.write_text(filled, encoding="utf-8")
    print_text(path)
    report_registration(path, slug)


def report_registration(path: Path, slug: str) -> None:
    """Say how `repro list` finds a module that is outside of our package of papers."""
    ours = find_spec("papers")
    if path.parent.resolve() not in map(
        Path, ours.submodule_search_locations or () if ours else ()
    ):
        say(
            f"`repro run {path}` runs it; for `repro list` to name it, make it part of a "
            f'distribution with {slug} = "your_package.module" under '
            '[project.entry-points."repro.papers"]'
        )
