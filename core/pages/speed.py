"""The page of speed: the newest measures of each workload, their targets, and a chart."""

from collections.abc import Sequence

from core.pages.speed_chart import chart, curves_by_axis
from core.records.record import Record
from eval.tables.render import environment


def speed_files(records: Sequence[Record]) -> dict[str, str | bytes]:
    """Return the files of the page by name; empty without records.

    Each workload shows the measures of its newest record.

    Args:
        records: of benchmark runs, the oldest first.
    """
    newest: dict[str, Record] = {}
    for record in records:
        newest |= {row["bench"]: record for row in record["measures"]}
    if not newest:
        return {}
    rows = [
        row for name, record in newest.items() for row in record["measures"] if row["bench"] == name
    ]
    curves = curves_by_axis(rows)
    template = environment("md").get_template("speed.md.j2")
    flat = [row for row in rows if row.get("at") is None]
    page = template.render(rows=flat, curves=curves, records=newest)
    return {"speed.md": page, "speed.svg": chart(rows)}
