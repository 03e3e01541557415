"""The stage of quantities of preference pairs under a policy and its start."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from core.families.family import SEEN
from core.rewards.verifiers import spread
from core.stages.data import read_rows, split_rows
from core.stages.evaluate import Answering
from core.stages.quantities import QuantityStage
from eval.terminal import say


@dataclass(frozen=True, kw_only=True)
class PairQuantities(QuantityStage):
    """Quantities over `rows` held-out pairs, and over as many pairs of the training.

    A quantity of training pairs has the suffix `/training`.
    """

    name = "pairs"
    begun: Answering

    @property
    def inputs(self) -> Mapping[str, object]:
        """The inputs of all such stages, and the starting policy."""
        return {**super().inputs, "start": self.begun.policy.key}

    def work(self, folder: Path) -> Mapping[str, object]:  # noqa: ARG002 - it leaves no files
        """Compute the log-probabilities of the pairs, and return every quantity by its name."""
        import torch

        from core.preference.pair_quantities import MovedPairs, pair_quantity, pair_sums

        train, held_out = split_rows(read_rows(self.data.folder), self.rows)
        samplers = [answering.sampler for answering in (self.answering, self.begun)]
        values: dict[str, object] = {}
        for suffix, rows in (("", held_out), (SEEN, spread(train, self.rows))):
            names = [name for name in self.quantities if name.endswith(SEEN) == bool(suffix)]
            if not names:
                continue
            sums = [pair_sums(s.model.eval(), s.tokenizer, rows) for s in samplers]
            flipped = torch.tensor([float(bool(row.get("flipped"))) for row in rows]).double()
            pairs = MovedPairs(*sums, flipped=flipped)
            for name in names:
                values[name] = asdict(pair_quantity(name.removesuffix(suffix), pairs))
        say(f"pairs: {self.subject} of {len(held_out)} held-out pairs")
        return values
