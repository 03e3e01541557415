"""The page of losses of preference pairs: arms with the same pairs, seeds and start, and claims.

Its numbers are read from stored runs. Arms of several papers that ended at the same weights are one
row, and a number that only one of the papers measured stands in it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from statistics import fmean

from core.claims import MissingMeasure
from core.families.nano import REGIMES
from core.pages.families import PaperAtScale, members_of, stem, verdicts_of
from core.pages.mechanisms import STATISTICS, Statistic, read_statistic, start_and_end
from core.pages.runs import by_arm
from core.pages.verdicts import summary, verdict_word
from core.paper import Paper
from core.records.places import Shelf, page_of
from core.records.run_samples import sample_set
from core.records.schema import RunRecord
from core.records.verdict_row import GateRow
from core.settings.canonical import as_text
from eval.samples.parquet import read_columns
from eval.tables.arm_statistics import Measured
from eval.tables.render import environment
from eval.tables.report import REPORT_FORMATS
from eval.tables.verdict_words import VERDICTS

REGIME = "choice-pairs"
SHARED = ("regime", "model", "data")  # settings that all arms of the table have from the regime


@dataclass(frozen=True)
class ArmOfPaper:
    """An arm with its paper, the path of the paper's page, its family and its runs."""

    paper: str
    path: str
    arm: str
    family: str
    runs: tuple[RunRecord, ...]

    @property
    def weights(self) -> tuple[object, ...]:
        """The digests of the weights at the end, by seed."""
        return tuple(run["train"]["weights"] for run in self.runs)


@dataclass(frozen=True)
class PairArm:
    """A row of the table: arms that are one training, its settings and its numbers."""

    arms: tuple[ArmOfPaper, ...]
    loss: str
    beta: float
    updates: int
    rate: str
    cells: tuple[Measured | None, ...]


@dataclass(frozen=True)
class PairClaim:
    """A claim with its verdict and the statistics that show whether its mechanism acts."""

    paper: str
    path: str
    slug: str
    statement: str
    verdict: str
    mechanisms: tuple[tuple[str, str, float], ...]  # statistic, its bound, its mean over the seeds


def pair_losses_files(
    name: str, papers: Sequence[Paper], scale: str, shelf: Shelf
) -> dict[str, str]:
    """Return the page by file name; the same records give the same bytes."""
    members = members_of(papers, scale, shelf)
    arms = arms_at_common_seeds([arm for member in members for arm in arms_of(member)])
    length = Statistic("Length, tokens", 2, LengthReader().ends)
    statistics = (*OF_ALL, length, *IN_TRAINING, *WHERE_ASKED)
    rows = sorted(
        (pair_arm(group, statistics) for group in same_trainings(arms)),
        key=lambda row: (row.loss, row.beta, row.updates, row.arms[0].paper, row.arms[0].arm),
    )
    shown = [i for i in range(len(statistics)) if any(row.cells[i] for row in rows)]
    context = {
        "name": name,
        "scale": scale,
        "summary": summary([*(v for m in members for v in m.verdicts)]),
        "regime": REGIME,
        "seeds": [run["seed"] for run in arms[0].runs] if arms else [],
        "titles": [statistics[i].title for i in shown],
        "rows": rows,
        "shown": shown,
        "claims": [claim for member in members for claim in claims_of_paper(member)],
        "verdicts": VERDICTS,
    }
    return {
        f"{stem(name, scale)}.{fmt}": environment(fmt)
        .get_template(f"pair-losses.{fmt}.j2")
        .render(context)
        for fmt in REPORT_FORMATS
    }


def arms_of(member: PaperAtScale) -> Iterable[ArmOfPaper]:
    """Yield the arms of a paper that were trained in the regime, with its start and its pairs."""
    path = f"../{page_of(member.paper.slug, member.scale)}"
    runs = [run for run in member.runs if is_in_regime(run)]
    for arm, arm_runs in by_arm(member.paper, runs).items():
        family = member.paper.family_of(arm)
        yield ArmOfPaper(member.paper.slug, path, arm, family, tuple(arm_runs))


def is_in_regime(run: RunRecord) -> bool:
    """Return whether a run has the start and the pairs of the regime."""
    settings = {"regime": REGIME, **REGIMES["choice"][REGIME]}
    return all(run["config"].get(n, {"value": None})["value"] == settings[n] for n in SHARED)


def arms_at_common_seeds(arms: Sequence[ArmOfPaper]) -> list[ArmOfPaper]:
    """Return the arms that have the most common seeds, each with its runs of those seeds."""
    counts = Counter(run["seed"] for arm in arms for run in arm.runs)
    seeds = sorted(seed for seed, count in counts.items() if count == max(counts.values()))
    common = [
        replace(arm, runs=tuple(run for run in arm.runs if run["seed"] in seeds)) for arm in arms
    ]
    return [arm for arm in common if len(arm.runs) == len(seeds)]


def same_trainings(arms: Sequence[ArmOfPaper]) -> list[tuple[ArmOfPaper, ...]]:
    """Return the arms, those that ended at the same weights together."""
    ordered = sorted(arms, key=lambda arm: as_text(arm.weights))
    return [tuple(group) for _, group in groupby(ordered, key=lambda arm: arm.weights)]


def pair_arm(arms: tuple[ArmOfPaper, ...], statistics: Sequence[Statistic]) -> PairArm:
    """Return the row of arms that are one training, each number from the first that measured it."""
    config = arms[0].runs[0]["config"]
    cells = (
        next(filter(None, (read_statistic(s, arm.runs, arm.arm) for arm in arms)), None)
        for s in statistics
    )
    ordered = sorted(arms, key=lambda arm: (arm.paper != arm.arm, arm.paper))
    return PairArm(
        arms=tuple(ordered),
        loss=loss_of(ordered[0]),
        beta=config["beta"]["value"],
        updates=config["max_steps"]["value"],
        rate=as_text(config["learning_rate"]["value"]),
        cells=tuple(cells),
    )


def loss_of(arm: ArmOfPaper) -> str:
    """Return the family of an arm and its loss, the terms with their weights."""
    config = arm.runs[0]["config"]
    if "loss_type" not in config:
        return arm.family
    losses = config["loss_type"]["value"]
    weights = config.get("loss_weights", {"value": None})["value"]
    names = [losses] if isinstance(losses, str) else losses
    if weights is not None and len(names) > 1:
        names = [f"{weight:g} {name}" for weight, name in zip(weights, names, strict=True)]
    return f"{arm.family}: {' + '.join(names)}"


def quantity(
    name: str, run: RunRecord, arm: str, *, from_start: bool
) -> tuple[float | None, float]:
    """Return a quantity of held-out rows before, if `from_start`, and after the training.

    Raises:
        MissingMeasure: the run did not measure it.
    """
    try:
        change = run.get("probabilities", {})[name]
    except KeyError:
        raise MissingMeasure(f"{arm} did not measure {name}") from None
    return (change["before"] if from_start else None), change["after"]


def score(run: RunRecord, arm: str) -> tuple[float | None, float]:
    """Return the score of the first benchmark before and after the training.

    Raises:
        MissingMeasure: the run has no score.
    """
    if not (run["start_scores"] and run["scores"]):
        raise MissingMeasure(f"{arm} has no score")
    return run["start_scores"][0]["value"], run["scores"][0]["value"]


OF_ALL = (
    STATISTICS[0],  # of held-out problems
    Statistic("Score, %", 1, score),
)
IN_TRAINING = (
    Statistic("Chosen in training, nats", 2, start_and_end("logps/chosen")),
    Statistic("Rejected in training, nats", 2, start_and_end("logps/rejected")),
    Statistic("Margin of rewards", 2, start_and_end("rewards/margins")),
)
WHERE_ASKED = (
    *(
        Statistic(title, 2, partial(quantity, name, from_start=False))
        for title, name in (
            ("Chosen, nats", "log_ratio/chosen"),
            ("Rejected, nats", "log_ratio/rejected"),
            ("Margin, nats", "pair_margin"),
            ("KL to the start, nats", "kl_to_start"),
        )
    ),
    Statistic("Pairs in order", 2, partial(quantity, "pair_accuracy", from_start=True)),
)


class LengthReader:
    """Reads the mean length of the stored answers to the first benchmark, each file once."""

    def __init__(self) -> None:
        self._lengths: dict[str, float] = {}

    def ends(self, run: RunRecord, arm: str) -> tuple[float | None, float]:
        """Return the mean length in tokens of a run before and after the training.

        Raises:
            MissingMeasure: the run has no score.
            MissingFile, DamagedFile: its samples cannot be read.
        """
        if not (run["start_scores"] and run["scores"]):
            raise MissingMeasure(f"{arm} has no score")
        before, after = (
            self.length(run, run[side][0]["digest"]) for side in ("start_scores", "scores")
        )
        return before, after

    def length(self, run: RunRecord, digest: str) -> float:
        """Return the mean length of a set of samples of a run."""
        if digest not in self._lengths:
            samples = sample_set(run, digest)
            self._lengths[digest] = fmean(read_columns(samples.path).rows(samples.name)["tokens"])
        return self._lengths[digest]


def claims_of_paper(member: PaperAtScale) -> list[PairClaim]:
    """Return the claims of a paper with their mechanisms."""
    path = f"../{page_of(member.paper.slug, member.scale)}"
    return [
        PairClaim(
            paper=member.paper.slug,
            path=path,
            slug=verdict["id"],
            statement=verdict["statement"],
            verdict=verdict_word(verdict),
            mechanisms=tuple(
                mechanism(gate) for gate in verdict.get("gates", ()) if gate["below"] == "inert"
            ),
        )
        for verdict in verdicts_of(member.paper, member.records, member.scale)
    ]


def mechanism(gate: GateRow) -> tuple[str, str, float]:
    """Return the statistic of a gate with its arm, its bound, and its mean over the seeds."""
    arm_text = f" of {gate['arm']}" if gate["arm"] else ""
    bound = f"{gate['relation']} {gate['bound']:g}"
    return f"{gate['measure']}{arm_text}", bound, fmean(gate["values"])
