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
class File:
    """A file that a page is made of: its name in results/, its path from the page, what it is."""

    name: str
    path: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A text as a model gave it, at least its beginning, whose the verdict is, and its file.

    `more` is how many characters of it are not shown.
    """

    by: str
    verdict: str
    text: str
    more: int
    path: str


@dataclass(frozen=True, kw_only=True)
class Example:
    """Two answers to one problem, and why it is shown; `question` is empty where it is not here."""

    because: str
    problem: str
    question: str
    answers: tuple[Answer, Answer]


@dataclass(frozen=True, kw_only=True)
class Examples:
    """The examples of one suite, and what there is to say of those that are missing."""

    suite: str
    rows: tuple[Example, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything a report page shows; no field is computed by the template.

    `address` is where the paper is read, `place` its name there; `scales` are the pages of its
    other scales. `summary` is one paragraph, `rules` say how claims were judged; `versions` are
    shown as given. `tables` are ours and `printed` those of the paper; `seeds` has the scores of
    every seed. `chosen` says by which rule `examples` are. `specified` are the settings of the
    paper's own scale, `settings` those of the page's. An empty part is left out of the page.
    """

    title: str
    paper: str
    scale: str
    address: str = ""
    place: str = ""
    scales: tuple[Link, ...] = ()
    summary: str = ""
    claims: tuple[ClaimResult, ...] = ()
    rules: str = ""
    tables: tuple[Table, ...] = ()
    chosen: str = ""
    examples: tuple[Examples, ...] = ()
    pictures: tuple[Picture, ...] = ()
    seeds: Table | None = None
    printed: tuple[Table, ...] = ()
    links: tuple[Link, ...] = ()
    specified: tuple[Field, ...] = ()
    settings: tuple[Field, ...] = ()
    departures: tuple[Departure, ...] = ()
    remarks: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    records: tuple[File, ...] = ()


def render_report(context: Report, fmt: str) -> str:
    """Write the report as `md` or `html`; its figures lie beside it.

    Raises:
        UnknownName: no such format.

    """
    if fmt not in REPORT_FORMATS:
        raise UnknownName("report format", fmt, REPORT_FORMATS)
    return environment(fmt).get_template(f"report.{fmt}.j2").render(report=context)
