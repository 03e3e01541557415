"""The stage of quantities of a policy at answers of its start, which truncates its own sampling."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core.stages.answering import Answering
from core.stages.data import read_rows, split_rows
from core.stages.quantities import QuantityStage
from eval.terminal import say


@dataclass(frozen=True, kw_only=True)
class KeptTokens(QuantityStage):
    """Quantities over one answer of the start at temperature 1 to each of `rows` held-out problems.

    `sampling` are the temperature and truncation of the run's sampling, which decide the tokens
    that the start keeps.
    """

    name = "kept-tokens"
    begun: Answering
    tokens: int
    sampling: Mapping[str, float | None]

    @property
    def inputs(self) -> Mapping[str, object]:
        """The inputs of all such stages, the starting policy, and the options of sampling."""
        own = {"start": self.begun.policy.key, "tokens": self.tokens}
        return {**super().inputs, **own, "sampling": dict(self.sampling)}

    def work(self, folder: Path) -> Mapping[str, object]:  # noqa: ARG002 - it leaves no files
        """Draw the answers, and return every quantity by its name."""
        from core.forward.kept_tokens import kept_quantity, kept_statistics
        from core.forward.own_answers import draw_answers, labelled_rows
        from core.rollout.engine import Sampling

        _, held_out = split_rows(read_rows(self.data.folder), self.rows)
        start = self.begun.sampler
        answers = labelled_rows(*draw_answers(start, held_out, self.tokens))
        options: dict[str, Any] = dict(self.sampling)  # Any: numbers of a config
        sampling = Sampling(max_tokens=self.tokens, ends=start.ends, **options)
        policy, begun = self.answering.sampler.model.eval(), start.model.eval()
        pad = start.tokenizer.pad_token_id or 0
        rows = kept_statistics(policy, begun, answers, sampling, pad)
        say(f"kept tokens: {self.subject} of {len(rows)} answers of the start")
        return {name: asdict(kept_quantity(name, rows)) for name in self.quantities}
