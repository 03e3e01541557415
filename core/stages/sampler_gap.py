"""The stage of the gap between the probabilities that a policy samples with and trains with."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.stages.data import read_rows, split_rows
from core.stages.quantities import QuantityStage
from eval.terminal import say

if TYPE_CHECKING:  # torch, see `core.stages.loading`
    from core.forward.sampler_gap import AnswerLogps, Arithmetic


@dataclass(frozen=True, kw_only=True)
class SamplerGap(QuantityStage):
    """Quantities over one answer at temperature 1 to each of `rows` held-out problems.

    The native engine draws the answers, whatever engine a training samples with. `bits` is the
    run's `rollout_bits`. Quantities of the same arithmetic are computed from the same answers.
    """

    name = "sampler-gap"
    tokens: int
    bits: int | None

    @property
    def inputs(self) -> Mapping[str, object]:
        """The inputs of all such stages, the length of answers and the bits of the sampler."""
        return {**super().inputs, "tokens": self.tokens, "bits": self.bits}

    def work(self, folder: Path) -> Mapping[str, object]:  # noqa: ARG002 - it leaves no files
        """Draw the answers, and return every quantity by its name.

        Raises:
            MissingFile, DamagedFile: the rows or the model cannot be read.
        """
        from core.forward.sampler_gap import SAMPLER_GAPS

        _, held_out = split_rows(read_rows(self.data.folder), self.rows)
        questions = [row["prompt"] for row in held_out]
        quantities = {name: SAMPLER_GAPS[name] for name in self.quantities}
        arithmetics = dict.fromkeys(arithmetic for arithmetic, _ in quantities.values())
        logps = {how: self.log_probabilities(how, questions) for how in arithmetics}
        say(f"sampler gap: {self.subject} of {len(questions)} answers")
        return {name: asdict(compute(logps[how])) for name, (how, compute) in quantities.items()}

    def log_probabilities(self, how: "Arithmetic", questions: Sequence[str]) -> "list[AnswerLogps]":
        """Draw answers in one arithmetic; return their log-probabilities on both sides."""
        import torch

        from core.forward.sampler_gap import AnswerLogps, trained_logps
        from core.rollout.engine import Sampling, in_order
        from core.rollout.native.native import NativeEngine
        from core.rollout.seeds import seed_of

        loading = self.answering.loading
        sampler = self.answering.load(replace(loading, dtype="float32"))  # as in training
        model = sampler.model.eval()
        prompts = [sampler.encode(question) for question in questions]
        sampling = Sampling(max_tokens=self.tokens, ends=sampler.ends)
        seeds = [seed_of(0, ids) for ids in prompts]
        with how.around(model, getattr(torch, loading.dtype)):
            with how.sampling(model, self.bits):
                completions = in_order(
                    NativeEngine(model).sample(prompts, sampling, seeds), len(prompts)
                )
            answers = [completion.tokens for completion in completions]
            trained = trained_logps(model, prompts, answers, sampler.tokenizer.pad_token_id or 0)
        sampled = [
            torch.tensor(completion.logps, dtype=torch.float64) for completion in completions
        ]
        return [AnswerLogps(*pair) for pair in zip(sampled, trained, strict=True)]
