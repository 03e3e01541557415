"""The share of held-out pairs that a reward model orders rightly, during its training."""

from collections.abc import Sequence

from core.data.sources import Row
from core.forward.logps import evaluating
from core.scoring.reward_quantities import pair_rewards
from core.settings.run_settings import HELD_OUT
from core.shards.sharding import gather_weights
from core.stages.watch.heldout import HeldOutCallback


class PairOrderCallback(HeldOutCallback):
    """Callback that logs the percentage of held-out pairs in order, see `HeldOutCallback`.

    Args:
        rows: Pairs with a chosen and a rejected text; each process scores all of them.
        every: Number of optimizer steps between two measurements.
        target: Percentage at which the training stops; None for no stop.
    """

    def __init__(self, rows: Sequence[Row], *, every: int, target: float | None = None):
        super().__init__((), every=every, target=target)
        self.rows = rows

    def measured(self, step: int) -> dict[str, float]:
        """Return the percentage of pairs in order, half of those with equal rewards, by metric."""
        del step
        frame = getattr(self.trainer, "frame", None)
        with (
            self.trainer.accelerator.autocast(),
            gather_weights(self.trainer.model, frame) as model,
            evaluating(model),
        ):
            chosen, rejected = pair_rewards(model, self.trainer.processing_class, self.rows)
        return {HELD_OUT: 50 * ((chosen - rejected).sign() + 1).mean().item()}
