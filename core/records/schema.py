"""Schema of records: the fields of each kind with their types."""

from collections.abc import Iterable
from typing import Any, NotRequired, TypeAlias, TypedDict, cast

from core.records.verdict_row import VerdictRow
from eval.json_lines import JsonObject

# One more when a field changes its meaning; a new field is `NotRequired`. The name of a record of
# version 1 is a digest of all that it says, later of its answers (core.records.answers).
VERSION = 2

Record: TypeAlias = JsonObject  # a record of any kind


class ScoreRow(TypedDict):
    """A score of a run in percent, with its 95 % interval and the digest of its samples."""

    benchmark: str
    mirrors: str
    mode: str
    metric: str
    value: float
    low: float
    high: float
    n: int
    samples: int
    limited: bool
    digest: str
    texts: NotRequired[str]  # the digest of the samples with their texts, where these are not kept
    draw: NotRequired[int]  # of the test problems of a generated suite
    temperature: NotRequired[float]  # where answers were sampled
    by: NotRequired[dict[str, dict[str, dict[str, float]]]]  # by field and value, where asked


class AtKCurves(TypedDict):
    """Maj@K and Pass@K of one policy, a value and an interval for every `k`."""

    k: list[int]
    digest: str
    distinct: NotRequired[list[float]]  # different right answers among K; older records lack it
    texts: NotRequired[str]  # as of a score
    draw: NotRequired[int]


class AtKChange(TypedDict):
    """The curves of the starting model and of the trained one on one suite."""

    mirrors: str
    before: AtKCurves
    after: AtKCurves


class QuantityChange(TypedDict):
    """A quantity of text probabilities before and after, with 95 % intervals over rows."""

    before: float
    after: float
    before_interval: list[float]
    after_interval: list[float]
    n: int


class FormPart(TypedDict):
    """Counts of answers of one kind: all, those that became right, those that became wrong."""

    n: int
    won: int
    lost: int


class FormSplit(TypedDict):
    """Counts of greedy answers to a suite, by whether the form differs from the start's."""

    changed: FormPart
    unchanged: FormPart


class Timings(TypedDict, total=False):
    """Circumstances of a run, from which nothing is computed."""

    phases: dict[str, float]  # seconds
    wall_s: float
    machine: str


class AnyRecord(TypedDict):
    """The fields of every record; `digest` is the record's name and is not in its file."""

    kind: str
    schema: int
    paper: str
    scale: str
    versions: dict[str, str]
    supersedes: str | None
    created: str
    timings: Timings
    content: NotRequired[str]  # a digest of all that the record says
    digest: str


class SettingValue(TypedDict):
    """The value of a setting and its source."""

    value: Any  # of any type that JSON has
    source: str


class RunRecord(AnyRecord):
    """A run: one arm and seed of a paper at one scale."""

    arm: str
    main: bool
    seed: int
    config: dict[str, SettingValue]
    overrides: dict[str, object]
    start_model: str
    size: str | None
    model: JsonObject  # what the stage `start` put out
    data: JsonObject  # what the stage `data` put out
    train: JsonObject  # what the stage `train` put out
    start_scores: list[ScoreRow]
    scores: list[ScoreRow]
    curves: dict[str, list[list[float]]]
    sampling: dict[str, AtKChange]
    probabilities: NotRequired[dict[str, QuantityChange]]
    pairs: NotRequired[str]  # the digest of the pairs that quantities of pairs follow from
    forms: NotRequired[dict[str, FormSplit]]  # by suite, and mode if not step by step


class TrialRow(TypedDict):
    """A trial: the held-out accuracy at the arm's learning rate times a factor."""

    factor: float
    learning_rate: float
    steps: int
    curve: list[list[float]]


class TuningRecord(AnyRecord):
    """The trials of an arm, with a seed that no verdict uses, and the factor of the best trial.

    `config` is that of the arm with its own learning rate.
    """

    arm: str
    seed: int
    config: dict[str, SettingValue]
    overrides: dict[str, object]
    model: JsonObject  # what the stage `start` put out
    data: JsonObject  # what the stage `data` put out
    trials: list[TrialRow]
    best: float


class ClaimsRecord(AnyRecord):
    """The verdicts on a paper's claims over several seeds.

    `looks` are the numbers of seeds at which the claims were judged, each with its level;
    none if they were judged once. Where trials chose the arms' learning rates, `tunings` are the
    records of the trials, and `own_rates` the verdicts at the arms' own rates, if these differ.
    `missed` are the claims that were not run, each with the gate that it misses on the trial seed.
    """

    seeds: list[int]
    looks: NotRequired[list[list[float]]]
    overrides: dict[str, object]
    specified: NotRequired[dict[str, str]]  # a digest of each claim as it was when it was judged
    planned: NotRequired[dict[str, str]]  # a digest of the plan of each claim that has one
    runs: NotRequired[list[str]]  # that were judged
    tunings: NotRequired[list[str]]
    missed: NotRequired[dict[str, str]]
    verdicts: list[VerdictRow]
    own_rates: NotRequired[list[VerdictRow]]


class SuiteControls(TypedDict):
    """Accuracy in percent under every intervention on the valid split, by its name.

    `start` and `helped` are the accuracy on `n` test problems, without an intervention and under
    the `best` one.
    """

    valid: dict[str, float]
    best: str
    start: float
    helped: float
    n: int


class ControlsRecord(AnyRecord):
    """The effects of fixed interventions on a build of the start policy.

    `data` is the version of the pocket world, `chosen_on` the number of problems of the choice.
    """

    model: dict[str, str]
    data: str
    chosen_on: int
    suites: dict[str, SuiteControls]


class ReportedRecord(AnyRecord):
    """The printed numbers of a paper; a cell holds the fields of `core.paper.Reported`."""

    title: str
    cells: list[dict[str, object]]


class SimulationRow(TypedDict):
    """A simulation: a function, its arguments, and its value for each seed from 0 to `seeds` - 1.

    `code` is a digest of the function's module and of all that it imports from the project; empty
    for a measurement of time.
    """

    function: str
    positional: list[object]
    keywords: dict[str, object]
    seeds: int
    code: str
    values: list[float]


class SimulationsRecord(AnyRecord):
    """The simulations that the claims of a paper read."""

    simulations: list[SimulationRow]


class MeasureRow(TypedDict):
    """A measure of the benchmark `bench`; the other fields are of `core.bench.measure.Measure`."""

    bench: str
    name: str
    unit: str
    ours: float
    theirs: float | None
    peer: str | None
    at: NotRequired[int | None]
    at_least: NotRequired[float | None]
    at_most: NotRequired[float | None]
    ratio: float | None
    met: NotRequired[bool | None]


class BenchRecord(AnyRecord):
    """The measurements of `repro bench`."""

    machine: str
    measures: list[MeasureRow]


# Other kinds are those of other rooms and distributions, which read only what they wrote.
KINDS: dict[str, type] = {
    "run": RunRecord,
    "tuning": TuningRecord,
    "claims": ClaimsRecord,
    "controls": ControlsRecord,
    "reported": ReportedRecord,
    "simulations": SimulationsRecord,
    "bench": BenchRecord,
}


def place_of(record: AnyRecord | Record) -> str:
    """Return the path of a record in results/."""
    return f"{record['paper']}/{record['digest']}.json"


def runs_of(records: Iterable[Record], scale: str | None = None) -> list[RunRecord]:
    """Return the runs among records, at one scale or at all."""
    runs = cast(list[RunRecord], [r for r in records if r["kind"] == "run"])
    return [run for run in runs if scale in (None, run["scale"])]


def tunings_of(records: Iterable[Record], scale: str | None = None) -> list[TuningRecord]:
    """Return the learning rate trials among records, at one scale or at all."""
    tunings = cast(list[TuningRecord], [r for r in records if r["kind"] == "tuning"])
    return [tuning for tuning in tunings if scale in (None, tuning["scale"])]


def claims_of(records: Iterable[Record], scale: str) -> list[ClaimsRecord]:
    """Return the records of verdicts among records, at one scale."""
    claims = [r for r in records if r["kind"] == "claims" and r["scale"] == scale]
    return cast(list[ClaimsRecord], claims)
