"""The stage of quantities of the probabilities that a policy assigns to rows of the data.

A quantity of held-out rows has its own name; one of training rows has the suffix `/training`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from core.families.family import SEEN
from core.records.schema import QuantityChange
from core.rewards.verifiers import spread
from core.stages.data import read_rows, split_rows
from core.stages.quantities import QuantityStage
from core.stages.stage import Outputs
from eval.terminal import say


@dataclass(frozen=True, kw_only=True)
class Probabilities(QuantityStage):
    """Quantities over `rows` held-out rows and as many rows of the training."""

    name = "probabilities"

    def work(self, folder: Path) -> Mapping[str, object]:  # noqa: ARG002 - it leaves no files
        """Compute all quantities, and return them by name."""
        from core.forward.quantities import completion_logps, quantities

        train, held_out = split_rows(read_rows(self.data.folder), self.rows)
        trained = spread(train, self.rows)
        sampler = self.answering.sampler
        model = sampler.model.eval()
        values: dict[str, object] = {}
        for suffix, rows in (("", held_out), (SEEN, trained)):
            logps = completion_logps(model, sampler.tokenizer, rows)
            for name, quantity in quantities(self.quantities, logps):
                values[name + suffix] = asdict(quantity)
        counts = f"{len(held_out)} held-out rows and {len(trained)} others"
        say(f"probabilities: {self.subject} of {counts}")
        return values


def compare_quantities(before: Outputs, after: Outputs) -> dict[str, QuantityChange]:
    """Return each quantity of the starting model and of the trained one, with their intervals.

    One that is not measured of both is left out.
    """
    return {
        name: {
            "before": before[name]["value"],
            "after": quantity["value"],
            "before_interval": [before[name]["low"], before[name]["high"]],
            "after_interval": [quantity["low"], quantity["high"]],
            "n": quantity["n"],
        }
        for name, quantity in after.items()
        if name in before
    }
