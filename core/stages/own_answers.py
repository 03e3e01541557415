"""The stage of quantities of a policy's own answers, by its probabilities and its start's."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from core.stages.answering import Answering
from core.stages.data import read_rows, split_rows
from core.stages.quantities import QuantityStage
from eval.terminal import say


@dataclass(frozen=True, kw_only=True)
class OwnAnswers(QuantityStage):
    """Quantities over one answer at temperature 1 to each of `rows` held-out problems."""

    name = "own-answers"
    begun: Answering
    tokens: int

    @property
    def inputs(self) -> Mapping[str, object]:
        """The inputs of all such stages, the starting policy and the length of answers."""
        return {**super().inputs, "start": self.begun.policy.key, "tokens": self.tokens}

    def work(self, folder: Path) -> Mapping[str, object]:  # noqa: ARG002 - it leaves no files
        """Draw the answers, and return every quantity by its name."""
        from core.forward.own_answers import OWN_ANSWERS, answers_of_both

        _, held_out = split_rows(read_rows(self.data.folder), self.rows)
        start = self.begun.sampler.model.eval()
        statistics = answers_of_both(self.answering.sampler, start, held_out, self.tokens)
        say(f"own answers: {self.subject} of {len(statistics.policy)} answers")
        return {name: asdict(OWN_ANSWERS[name](*statistics)) for name in self.quantities}
