"""Data classes of a paper's report page at one scale, and its rendering."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eval.errors import BadValue, UnknownName
from eval.tables.arm_statistics import ArmStatistics
from eval.tables.interval_bar import IntervalBar, interval_bar
from eval.tables.render import environment
from eval.tables.table import Table
from eval.tables.verdict_words import VERDICTS

REPORT_FORMATS = ("md", "html")


@dataclass(frozen=True, kw_only=True)
class ClaimResult:
    """A claim with its measured effect (left minus right) in `unit` and its verdict.

    `verdict` is one of `VERDICTS`; `detail` gives the reason. `compare` prints both sides and their
    relation, which is `relation`. `holm` is the p value adjusted over all claims of the paper, and
    `seen` the smallest true effect that a test with these seeds detects with 80 % power. `equal` is
    the size below which the effect counts as none. `kind` says what decides the claim: `runs`, a
    `law` without runs, or `none`. `world` is the name of the world of the runs; `arms` and `gates`
    are sentences about the compared arms and about the mechanism.
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
    kind: str = "runs"
    relation: str = ""
    equal: float = 0.0
    mechanism: str = ""
    world: str = ""
    arms: str = ""
    gates: tuple[str, ...] = ()

    @property
    def bar(self) -> IntervalBar | None:
        """The interval as a bar whose right side is the claim's; None without an interval."""
        if self.effect is None or self.low is None or self.high is None:
            return None
        if self.relation in ("<", "<="):
            return interval_bar(-self.effect, -self.high, -self.low, self.equal)
        return interval_bar(self.effect, self.low, self.high, self.equal)

    @property
    def is_decided(self) -> bool:
        """True if the verdict is one that an interval decides."""
        return VERDICTS[self.verdict].decided

    @property
    def explains(self) -> bool:
        """True if `detail` says why there is no decision, and not only how it was computed."""
        blocked = self.verdict in ("no room", "inert", "unhealthy")
        return blocked or (self.bar is None and self.kind != "law")

    def __post_init__(self) -> None:
        numbers = (self.effect, self.low, self.high, self.p)
        if self.effect is not None and (None in numbers or self.seeds < 1):
            raise BadValue(
                f"claim {self.slug}: effect {self.effect} with interval [{self.low}, {self.high}], "
                f"p {self.p}, {self.seeds} seeds: a comparison needs all of them"
            )


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure: its bytes, its path from the page, and its description."""

    name: str
    caption: str
    alt: str
    svg: bytes
    path: str


@dataclass(frozen=True, kw_only=True)
class Field:
    """A setting with the value that was used and the source of that value."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Departure:
    """A setting whose value differs from TRL's: both values, their sources, and the reason."""

    field: str
    ours: str
    passage: str
    theirs: str
    source: str
    because: str


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link to another page: its name, its path without a suffix, and a short description."""

    name: str
    path: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A titled block of preformatted text, such as a batch plan or a table of phases."""

    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class File:
    """A source file of a page: its name in results/, its path from the page, its description."""

    name: str
    path: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The beginning of a model's answer, its verdict and who gave it, and the answer's file.

    `more` is the number of characters that are not shown.
    """

    by: str
    verdict: str
    text: str
    more: int
    path: str


@dataclass(frozen=True, kw_only=True)
class Example:
    """Two answers to one problem, and the reason why they are shown.

    `question` is empty if the text of the problem is not stored here.
    """

    because: str
    problem: str
    question: str
    answers: tuple[Answer, Answer]


@dataclass(frozen=True, kw_only=True)
class Examples:
    """The examples of one suite, and notes on examples that are missing."""

    suite: str
    rows: tuple[Example, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """The fields of a report page; the template computes none of them.

    `address` is the URL of the paper, `place` its name there; `scales` link to the pages of other
    scales. `summary` is one paragraph, and `rules` say how claims are judged. `worlds` say what a
    world cannot show, and `statistics` what the mechanisms of each arm did. `tables` are
    measured, `printed` are the paper's own, and `seeds` has the scores of every seed. `chosen` is
    the rule by which `examples` were chosen. `specified` are the settings of the paper's own scale,
    `settings` those of this scale. The page leaves out empty parts.
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
    worlds: Mapping[str, str] = field(default_factory=dict)
    statistics: ArmStatistics | None = None
    tables: tuple[Table, ...] = ()
    chosen: str = ""
    examples: tuple[Examples, ...] = ()
    pictures: tuple[Picture, ...] = ()
    seeds: Table | None = None
    printed: tuple[Table, ...] = ()
    specified: tuple[Field, ...] = ()
    settings: tuple[Field, ...] = ()
    departures: tuple[Departure, ...] = ()
    remarks: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    records: tuple[File, ...] = ()


def render_report(context: Report, fmt: str) -> str:
    """Render the report as `md` or `html`; its figures are separate files beside it.

    Raises:
        UnknownName: `fmt` is not one of these formats.
    """
    if fmt not in REPORT_FORMATS:
        raise UnknownName("report format", fmt, REPORT_FORMATS)
    template = environment(fmt).get_template(f"report.{fmt}.j2")
    return template.render(report=context, verdicts=VERDICTS)
