"""The known reward of an answer: whether it is right, else how many of its steps are."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from eval.grading import grade_many
from eval.pocket.steps import step_verdicts
from eval.sets.problem import Answers


def known_rewards(
    prompts: Sequence[str],
    completions: Sequence[str],
    answers: Sequence[str],
    columns: Mapping[str, object],
) -> list[float]:
    """Return 1 for each right completion, else half the share of its steps that are right.

    Args:
        prompts: The questions.
        completions: An answer to each.
        answers: The right answers.
        columns: Further columns of the data. Read are `language`, `solution` and `answers`, which
            says how a benchmark judges that does so in its own way.
    """
    gold = [str(answer) for answer in answers]
    languages = cast(Sequence[str], columns.get("language") or ["en"] * len(gold))
    solutions = cast(Sequence[str | None], columns.get("solution") or [None] * len(gold))
    ways = cast(Sequence[Mapping[str, Any] | None], columns.get("answers") or [None] * len(gold))
    asked = [reference(text, way or {}) for text, way in zip(gold, ways, strict=True)]
    verdicts = grade_many(completions, asked, languages)
    rows = zip(verdicts, prompts, gold, completions, solutions, strict=True)
    return [
        1.0 if verdict.correct else 0.5 * right_steps_share(prompt, answer, completion, solution)
        for verdict, prompt, answer, completion, solution in rows
    ]


def right_steps_share(prompt: str, answer: str, completion: str, solution: str | None) -> float:
    """Return the share of the steps of a completion that are right; 0 without steps."""
    steps = [is_right for _, is_right in step_verdicts(prompt, answer, completion, solution)]
    return sum(steps) / len(steps) if steps else 0.0


def reference(text: str, way: Mapping[str, Any]) -> Answers:
    """Return a right answer, compared as the fields of `Answers` in `way` say.

    Of `counts` only `whole` acts: `text` is the only answer.
    """
    own = {name: way[name] for name in ("pattern", "verbatim") if way.get(name)}
    return Answers((text,), counts="whole" if way.get("counts") == "whole" else "last", **own)
