"""Stress tests of verifiers, on demand and before a training uses one as its reward."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from core.rewards import Accuracy
from core.rewards.accuracy import WHOLE
from core.rewards.completions import question_text
from eval.errors import BadValue
from eval.grading.stress import Trial, Verifier, stress
from eval.json_lines import answer_text
from eval.sets.benchmarks import find_benchmark
from eval.sets.loading import Row
from eval.sets.problem import Answers, Problem

T = TypeVar("T")
BEFORE_TRAINING = 5  # problems; a dozen answers to each
ON_DEMAND = 50
UNASKED = (
    "no prompt tried asks for a boxed answer, as the benchmarks do; where the model expects that, "
    "set prompt_template='{{ COLUMN | with_request }}'"
)


def try_verifier(name: str, data: Path | None = None) -> list[Trial]:
    """Return the trials of the accuracy reward on problems from all parts of a benchmark."""
    problems = find_benchmark(name).load(data)
    return stress(verifier_of(Accuracy()), spread(problems, ON_DEMAND))


def check_rewards(rewards: Sequence[object], rows: Sequence[Row]) -> str:
    """Try each accuracy reward on a few training rows; return a report on one line.

    The report also says if none of these rows asks for a boxed answer, as the benchmarks do. It is
    empty for rows whose answers are patterns of the whole output.

    Raises:
        BadValue: a reward refuses a correct answer or accepts a wrong one.
    """
    lines: list[str] = []
    sample = spread(rows, BEFORE_TRAINING)
    if any((row.get("answers") or {}).get("counts") == WHOLE for row in sample):
        return ""  # the trials are boxed answers, which a pattern of the whole output refuses
    for reward in rewards:
        if not isinstance(reward, Accuracy):
            continue
        lines.append(check_reward(reward, sample))
        if not any("boxed" in str(row["prompt"]) for row in sample):
            lines.append(UNASKED)
    return "; ".join(lines)


def check_reward(reward: Accuracy, rows: Sequence[Row]) -> str:
    """Try an accuracy reward on all rows; return a report on one line.

    Raises:
        BadValue: the reward refuses a correct answer or accepts a wrong one.
    """
    trials = stress(verifier_of(reward), [problem_of(row) for row in rows])
    failed = [f"{t.name} ({t.accepted} of {t.tried} accepted)" for t in trials if not t.passed]
    if failed:
        raise BadValue(
            f"the reward {reward} fails its stress test: {', '.join(failed)}; training would "
            "find this, so correct the reward or the answers in the data"
        )
    tried, undecided = sum(t.tried for t in trials), sum(t.undecided for t in trials)
    return f"{reward}: {tried} answers tried as they must be, {undecided} undecided"


def verifier_of(reward: Accuracy) -> Verifier:
    """Return a verifier that is True where the reward is that of a correct answer.

    It is None where the reward is None.
    """

    def verdicts(outputs: list[str], answers: list[str], languages: list[str]) -> list[bool | None]:
        values = reward(completions=outputs, answer=answers, language=languages)
        return [None if value is None else value == reward.right for value in values]

    return verdicts


def problem_of(row: Row) -> Problem:
    """Convert a training row to a problem."""
    several: Row | None = row.get("answers")
    return Problem(
        id=str(row.get("id")),
        question=row.get("question") or question_text(row["prompt"]),
        answer=answer_text(row["answer"], f"row {row.get('id')}"),
        language=row.get("language") or "en",
        answers=Answers(**{**several, "texts": tuple(several["texts"])}) if several else None,
        exact_form=bool(row.get("exact_form")),
    )


def spread(rows: Sequence[T], n: int) -> Sequence[T]:
    """Return about n of the rows, evenly spaced."""
    return rows[:: max(1, len(rows) // n)][:n]
