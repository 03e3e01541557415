"""The stage of quantities of a policy's own answers, by its probabilities and its start's."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.data.sources import Row
from core.stages.data import read_rows, split_rows
from core.stages.evaluate import Answering
from core.stages.quantities import QuantityStage
from eval.samples.evaluation import Decoding
from eval.terminal import say

if TYPE_CHECKING:  # torch and transformers
    from transformers import PreTrainedModel

    from core.forward.own_answers import StatisticsOfBoth
    from core.samplers.policy import PolicySampler


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
        from core.forward.own_answers import OWN_ANSWERS

        _, held_out = split_rows(read_rows(self.data.folder), self.rows)
        start = self.begun.sampler.model.eval()
        statistics = answers_of_both(self.answering.sampler, start, held_out, self.tokens)
        say(f"own answers: {self.subject} of {len(statistics.policy)} answers")
        return {name: asdict(OWN_ANSWERS[name](*statistics)) for name in self.quantities}


def answers_of_both(
    sampler: "PolicySampler", start: "PreTrainedModel", rows: Sequence[Row], tokens: int
) -> "StatisticsOfBoth":
    """Draw one answer of a policy at temperature 1 to each row; return what both models find.

    Args:
        sampler: The policy.
        start: The starting model, in evaluation mode.
        rows: Rows with prompts, or pairs that begin with them.
        tokens: Largest length of an answer.
    """
    from core.data.pairs import prompt_of
    from core.forward.own_answers import StatisticsOfBoth, answer_statistics
    from core.rollout.seeds import seed_of

    texts = [prompt_of(row) for row in rows]
    prompts = [sampler.encode(text, chat=not isinstance(text, str)) for text in texts]
    decoding = Decoding(max_tokens=tokens, temperature=1.0)
    answers = sampler.draw(prompts, decoding, [seed_of(0, ids) for ids in prompts])
    pad = sampler.tokenizer.pad_token_id or 0
    return StatisticsOfBoth(
        *(answer_statistics(m, prompts, answers, pad) for m in (sampler.model.eval(), start))
    )
