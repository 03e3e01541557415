"""Win rates of one arm against another, by a judge of their answers, as sides of claims."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from core.claims.comparison import Side
from core.claims.measures import missing, record_of
from core.claims.needs import BadClaim, Need, Runs
from core.claims.outcomes import Score, score

WINS = "wins"  # field of a record: chances to win of each problem, by side and benchmark


@dataclass(frozen=True, eq=False)
class WinRate(Side):
    """Mean chance, in percent, that a judge prefers an arm's answers to another arm's.

    Ties count half. It is the mean over the benchmarks of the mean over their problems, which both
    arms have answered as `score` says. The chances of each problem are in the field `WINS` of the
    records, which `core.verdicts.compared_answers` computes from the stored answers.

    Raises:
        BadClaim: there is no such judge, or the score is that of a part of the problems.
    """

    score: Score
    judge: str
    arm: str
    over: str

    def __post_init__(self) -> None:
        from eval.judging.judges import JUDGES  # with the grader, which other claims do not need

        if self.judge not in JUDGES:
            raise BadClaim(f"{self}: expected one of the judges {', '.join(JUDGES)}")
        if self.score.part is not None:
            raise BadClaim(f"{self}: compares the answers to all problems; leave the field out")

    def __str__(self) -> str:
        return f"win_rate({self.score}, by {self.judge}) of {self.arm} over {self.over}"

    @property
    def label(self) -> tuple[str, str | None]:
        """The metric with the arm it is compared with, and the arm of the side."""
        return f"win_rate({self.score}, by {self.judge}) over {self.over}", self.arm

    @property
    def parts(self) -> tuple[Side, ...]:
        """The scores of both arms, whose answers are compared."""
        return self.score.of(self.arm), self.score.of(self.over)

    @property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """The scores of both arms, and the texts of their answers."""
        arms, names = (self.arm, self.over), self.score.benchmarks
        texts = [(arm, Need("texts", name)) for arm in arms for name in names]
        return tuple(dict.fromkeys((*super().needs, *texts)))

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return the win rate of each seed.

        Raises:
            MissingMeasure: the answers of a seed have not been compared.
        """
        return [self._value(runs) for runs in cases]

    def _value(self, runs: Runs) -> float:
        record = record_of(runs, next(iter(runs)))
        chances = record.get(WINS, {}).get(str(self))
        if chances is None:
            raise missing(record, self.arm, f"comparison of answers for {self}")
        return 100 * fmean(fmean(of_problems) for of_problems in chances.values())


@dataclass(frozen=True)
class Judged:
    """Answers to benchmarks that a judge compares between arms."""

    score: Score
    judge: str

    def of(self, arm: str, *, over: str) -> WinRate:
        """Return how often the answers of an arm are preferred to those of another, in percent."""
        return WinRate(self.score, self.judge, arm, over)


def win_rate(
    *benchmarks: str,
    judge: str = "truth",
    metric: str = "top1",
    mode: str = "cot",
    temperature: float = 0.0,
) -> Judged:
    """Return the comparison of answers to benchmarks, as in `win_rate("math").of(a, over=b) > 50`.

    Args:
        benchmarks: by the names that the paper uses.
        judge: a name of `eval.judging.judges.JUDGES`.
        metric: of the evaluation whose answers are compared, such as `top1` or `avg@8`.
        mode: of answering.
        temperature: of sampling; 0 is greedy.
    """
    return Judged(score(*benchmarks, metric=metric, mode=mode, temperature=temperature), judge)
