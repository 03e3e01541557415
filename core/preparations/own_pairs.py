"""Settings of pairs of a model's own answers: what is sampled, and which two make a pair."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from core.option import choice, option
from core.preparations.sampled_answers import AnswersConfig
from eval.errors import BadValue


class Answer(NamedTuple):
    """An answer, its length in tokens, and the sum of its rewards."""

    text: str
    tokens: int
    reward: float


@dataclass(frozen=True)
class Pairing:
    """A row of `PAIRINGS`: how two answers of a prompt are chosen, the better one first.

    Attributes:
        doc: Its description.
        choose: Returns the two answers, or None if no two can be told apart.
    """

    doc: str
    choose: Callable[[Sequence[Answer]], tuple[Answer, Answer] | None]


def by_reward(answers: Sequence[Answer]) -> tuple[Answer, Answer] | None:
    """Return the answers of highest and of lowest reward; None if all rewards are equal."""
    best = max(answers, key=lambda answer: answer.reward)
    worst = min(answers, key=lambda answer: answer.reward)
    return (best, worst) if best.reward > worst.reward else None


def by_length(answers: Sequence[Answer]) -> tuple[Answer, Answer] | None:
    """Return the longest and the shortest answer among those of the highest reward.

    None if these are equally long, or if the highest reward is not above 0.
    """
    highest = max(answer.reward for answer in answers)
    best = [answer for answer in answers if answer.reward == highest]
    longest = max(best, key=lambda answer: answer.tokens)
    shortest = min(best, key=lambda answer: answer.tokens)
    return (longest, shortest) if highest > 0 and longest.tokens > shortest.tokens else None


def by_order(answers: Sequence[Answer]) -> tuple[Answer, Answer] | None:
    """Return the first answer and the first one of another reward, the better one first."""
    first = answers[0]
    other = next((answer for answer in answers if answer.reward != first.reward), None)
    if other is None:
        return None
    return (first, other) if first.reward > other.reward else (other, first)


PAIRINGS = {
    "reward": Pairing("that of the highest reward is chosen, of the lowest rejected", by_reward),
    "length": Pairing("the longest of the best is chosen, the shortest rejected", by_length),
    "order": Pairing("of the first two of different rewards the better is chosen", by_order),
}


@dataclass
class OwnPairsConfig(AnswersConfig):
    """Settings of sampling, and of which two answers of a prompt become a pair."""

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {}
    ACTS: ClassVar[frozenset[str]] = AnswersConfig.ACTS | {
        *("pair_by", "flipped_share", "win_rates", "shuffles_rejected"),
        *("rejection_beta", "num_accepted"),
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {"pair_by": tuple(PAIRINGS)}
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **AnswersConfig.AT_LEAST,
        "num_generations": 2,
        "flipped_share": 0.0,
        "num_accepted": 2,
        "rejection_beta": 0.0,
    }

    pair_by: str = choice("reward", PAIRINGS, "Which answers of a prompt make a pair")
    flipped_share: float = option(0.0, "Share of pairs whose two answers change places.")
    win_rates: bool = option(False, "Add the chance of each answer to win against another sample.")
    shuffles_rejected: bool = option(
        False, "Pair each chosen answer with a rejected one of another prompt."
    )

    rejection_beta: float | None = option(
        None, "Temperature, in units of reward, of rejection sampling among the completions."
    )
    num_accepted: int = option(8, "Completions of a prompt that rejection sampling accepts.")

    def check_fields(self) -> None:
        """Check the fields as of all preparations that sample answers, the share and rejection.

        Raises:
            BadValue: more than all pairs would be flipped, or rejection would have no effect.
        """
        super().check_fields()
        if self.flipped_share > 1:
            raise BadValue(f"flipped_share={self.flipped_share}: expected a share, at most 1")
        if self.rejection_beta is None and self.is_set("num_accepted"):
            raise BadValue(
                f"num_accepted={self.num_accepted} has no effect without rejection_beta: set it, "
                "or leave it out"
            )
        if self.rejection_beta is not None and self.num_accepted >= self.num_generations:
            raise BadValue(
                f"rejection_beta={self.rejection_beta} has no effect with num_accepted="
                f"{self.num_accepted} of num_generations={self.num_generations}: sample more"
            )
