"""Settings of judged solutions of a model: what is sampled, and what labels their steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from core.option import choice
from core.preparations.sampled_answers import AnswersConfig
from eval.nano.running_sums import JudgedSums


class StepLabels(NamedTuple):
    """A row of `LABELS`: what the label of a step says, and the labels of a judged solution."""

    doc: str
    of: Callable[[JudgedSums], Sequence[bool]]


LABELS = {
    "steps": StepLabels("no step up to it is wrong", lambda solution: solution.is_right),
    "outcome": StepLabels(
        "the answer of its solution is right",
        lambda solution: [solution.is_answered] * len(solution.steps),
    ),
}


@dataclass
class OwnSolutionsConfig(AnswersConfig):
    """Settings of sampling, and of the labels of steps."""

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {}
    ACTS: ClassVar[frozenset[str]] = AnswersConfig.ACTS - {"step_separator"} | {"labels_by"}
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {"labels_by": tuple(LABELS)}

    labels_by: str = choice("steps", LABELS, "What the label of a step says")
