"""Tries verifiers on demand, and before a training run uses one as its reward."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.rewards import Accuracy
from core.rewards.completions import question_text
from eval.errors import BadValue
from eval.grading.stress import Trial, Verifier, stress
from eval.json_lines import answer_text
from eval.sets.benchmarks import find_benchmark
from eval.sets.problem import Answers, Problem

BEFORE_TRAINING = 5  # problems; a dozen answers to each
ON_DEMAND = 50
UNASKED = (
    "no prompt tried asks for a boxed answer, as the benchmarks do; where the model expects that, "
    "set prompt_template='{{ COLUMN | with_request }}'"
)


def try_verifier(name: str, data: Path | None = None) -> list[Trial]:
    """The trials of the accuracy reward on problems spread over a benchmark."""
    problems = find_benchmark(name).load(data)
    return stress(verifier_of(Accuracy()), spread(problems, ON_DEMAND))


def check_rewards(rewards: Sequence[object], rows: Sequence[Mapping[str, Any]]) -> str:
    """Try each accuracy reward on a few training rows; a line to say that it holds.

    The line also says if none of these rows asks for a boxed answer, as the benchmarks do.

    Raises:
        BadValue: it refuses a right answer or pays for one that is none.
    """
    lines: list[str] = []
    for reward in rewards:
        if not isinstance(reward, Accuracy):
            continue
        few = spread(rows, BEFORE_TRAINING)
        found = stress(verifier_of(reward), [problem_of(row) for row in few])
        failed = [f"{t.name} ({t.accepted} of {t.tried} accepted)" for t in found if not t.passed]
        if failed:
            raise BadValue(
                f"the reward {reward} fails its stress test: {', '.join(failed)}; training would "
                "find this, so correct the reward or the answers in the data"
            )
        tried, undecided = sum(t.tried for t in found), sum(t.undecided for t in found)
        lines.append(f"{reward}: {tried} answers tried as they must be, {undecided} undecided")
        if not any("boxed" in str(row["prompt"]) for row in few):
            lines.append(UNASKED)
    return "; ".join(lines)


def verifier_of(reward: Accuracy) -> Verifier:
    """A reward's values as verdicts; None, which is no reward, stays None."""

    def verdicts(outputs: list[str], answers: list[str], languages: list[str]) -> list[bool | None]:
        values = reward(completions=outputs, answer=answers, language=languages)
        return [None if value is None else value == reward.right for value in values]

    return verdicts


def problem_of(row: Mapping[str, Any]) -> Problem:
    """A training row as the problem of its benchmark."""
    several: Mapping[str, Any] | None = row.get("answers")
    return Problem(
        id=str(row.get("id")),
        question=row.get("question") or question_text(row["prompt"]),
        answer=answer_text(row["answer"], f"row {row.get('id')}"),
        language=row.get("language") or "en",
        answers=Answers(**{**several, "texts": tuple(several["texts"])}) if several else None,
        exact_form=bool(row.get("exact_form")),
    )


def spread(rows: Sequence[Any], n: int) -> Sequence[Any]:  # Any: rows or problems
    """About n of the rows, from all parts of them."""
    return rows[:: max(1, len(rows) // n)][:n]
