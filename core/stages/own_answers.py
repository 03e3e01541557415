"""The stage of quantities of a policy's own answers, by its probabilities and its start's."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from core.stages.data import read_rows, split_rows
from core.stages.evaluate import Answering
from core.stages.quantities import QuantityStage
from eval.samples.evaluation import Decoding
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
        from core.data.pairs import prompt_of
        from core.forward.own_answers import OWN_ANSWERS, answer_statistics
        from core.rollout.seeds import seed_of

        _, held_out = split_rows(read_rows(self.data.folder), self.rows)
        sampler = self.answering.sampler
        texts = [prompt_of(row) for row in held_out]
        prompts = [sampler.encode(text, chat=not isinstance(text, str)) for text in texts]
        decoding = Decoding(max_tokens=self.tokens, temperature=1.0)
        answers = sampler.draw(prompts, decoding, [seed_of(0, ids) for ids in prompts])
        pad = sampler.tokenizer.pad_token_id or 0
        models = [answering.sampler.model.eval() for answering in (self.answering, self.begun)]
        own_logps, start_logps = (
            answer_statistics(model, prompts, answers, pad) for model in models
        )
        say(f"own answers: {self.subject} of {len(answers)} answers")
        return {name: asdict(OWN_ANSWERS[name](own_logps, start_logps)) for name in self.quantities}
