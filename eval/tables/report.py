"""The report of one paper at one scale: data in, a Markdown or an HTML page out."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eval.errors import BadValue, UnknownName
from eval.tables.render import environment
from eval.tables.table import Table

REPORT_FORMATS = ("md", "html")


@dataclass(frozen=True, kw_only=True)
class ClaimResult:
    """One claim with what was measured: effect (left minus right) in `unit`, and its verdict.

    `verdict` is `held`, `refuted`, `tie`, `undecided`, `no room`, or without numbers `untested` and
    `untestable`; `detail` says why. `compare` names both sides and the relation. `holm` is the p
    among all of the paper, and `seen` the smallest true effect that four of five such runs decide.
    """

    slug: str
    statement: str
    compare: str
    verdict: str
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    holm: float | None = None
    seen: float | None = None
    seeds: int = 0
    unit: str = ""
    detail: str = ""

    def __post_init__(self) -> None:
        numbers = (self.effect, self.low, self.high, self.p)
        if self.effect is not None and (None in numbers or self.seeds < 1):
            raise BadValue(
                f"claim {self.slug}: effect {self.effect} with interval [{self.low}, {self.high}], "
                f"p {self.p}, {self.seeds} seeds: a comparison needs all of them"
            )


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure: its bytes, the path beside the page at which they lie, what it shows in words."""

    name: str
    caption: str
    alt: str
    svg: bytes
    path: str


@dataclass(frozen=True, kw_only=True)
class Field:
    """A setting as it was used, and where its value came from."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Departure:
    """A setting that TRL gives another value: both values, where each comes from, and why."""

    field: str
    ours: str
    passage: str
    theirs: str
    source: str
    because: str


@dataclass(frozen=True, kw_only=True)
class Link:
    """Another page: its name, its path without a suffix, and what stands there in a few words."""

    name: str
    path: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A titled block of plain text, kept as it is: a batch plan, a phase table."""

    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything a report page shows; no field is computed by the template.

    `summary` is one paragraph, `rules` say how claims were judged; `versions` are shown as given;
    `specified` are the settings of the paper's own scale, `settings` those of the page's.
    `records` map a record's path to its digest. An empty part is left out of the page.
    """

    title: str
    paper: str
    scale: str
    summary: str = ""
    claims: tuple[ClaimResult, ...] = ()
    rules: str = ""
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    links: tuple[Link, ...] = ()
    specified: tuple[Field, ...] = ()
    settings: tuple[Field, ...] = ()
    departures: tuple[Departure, ...] = ()
    remarks: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    records: Mapping[str, str] = field(default_factory=dict)


def render_report(context: Report, fmt: str) -> str:
    """Write the report as `md` or `html`; its figures lie beside it.

    Raises:
        UnknownName: no such format.

    """
    if fmt not in REPORT_FORMATS:
        raise UnknownName("report format", fmt, REPORT_FORMATS)
    return environment(fmt).get_template(f"report.{fmt}.j2").render(report=context)
