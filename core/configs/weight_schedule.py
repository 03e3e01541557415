"""Steps of a training at which its weights are averaged, and the coefficients, arXiv 2508.00180."""

from dataclasses import dataclass, fields
from math import inf

from eval.errors import BadValue

COUNTS = {"update_freq": 1, "update_after": 0}  # whole numbers, with the least allowed


@dataclass(frozen=True)
class BEMASchedule:
    """Optimizer steps at which weights are averaged, and the coefficients at each of them.

    The coefficients of step t, counted from the start of training, are powers of `lag` +
    `multiplier` t. `ema_power` = 0 leaves out the average, a large `bias_power` the correction.

    Attributes:
        update_freq: Steps between two updates (phi).
        ema_power: Negative exponent of the weight of new weights in the average (kappa).
        bias_power: Negative exponent of the weight of the displacement (eta).
        lag: Number added to the steps (rho).
        update_after: Step after which averaging starts (tau).
        multiplier: Factor of the steps (gamma).
        min_ema_multiplier: Smallest weight of new weights in the average.

    Raises:
        BadValue: a value is out of range, or new weights would have a weight above 1.
    """

    update_freq: int = 400
    ema_power: float = 0.5
    bias_power: float = 0.2
    lag: float = 10
    update_after: int = 0
    multiplier: float = 1.0
    min_ema_multiplier: float = 0.0

    def __post_init__(self):
        for name in (field.name for field in fields(self)):
            value, least = getattr(self, name), COUNTS.get(name, 0)
            is_number = isinstance(value, int | float) and least <= value < inf
            if not is_number or (name in COUNTS and int(value) != value):
                kind = "a whole number" if name in COUNTS else "a number"
                raise BadValue(f"BEMA: {name}={value!r}: expected {kind} of {least} or more")
        if self.min_ema_multiplier > 1:
            raise BadValue(
                f"BEMA: min_ema_multiplier={self.min_ema_multiplier!r}: expected a number of at "
                "most 1"
            )
        first = self.update_after + self.update_freq
        if self.age(first) == 0 or self.ema_weight(first) > 1:
            raise BadValue(
                f"BEMA: lag + multiplier x step = {self.age(first):g} at the first update, step "
                f"{first}: expected 1 or more; raise lag or multiplier"
            )

    def age(self, step: int) -> float:
        """Return rho + gamma t, of which both coefficients are powers."""
        return self.lag + self.multiplier * step

    def ema_weight(self, step: int) -> float:
        """Return beta_t = max((rho + gamma t)^-kappa, `min_ema_multiplier`)."""
        return max(self.age(step) ** -self.ema_power, self.min_ema_multiplier)

    def bias_weight(self, step: int) -> float:
        """Return alpha_t = (rho + gamma t)^-eta."""
        return self.age(step) ** -self.bias_power

    def updates_at(self, step: int) -> bool:
        """Return whether the weights after an optimizer step go into the average."""
        since = step - self.update_after
        return since > 0 and since % self.update_freq == 0

    def updates_until(self, step: int) -> int:
        """Return the number of updates in the first `step` optimizer steps."""
        return max(step - self.update_after, 0) // self.update_freq

    def check_steps(self, steps: int) -> None:
        """Check that a training of some optimizer steps has an update.

        Raises:
            BadValue: it has none.
        """
        if not self.updates_until(steps):
            raise BadValue(
                f"no weights are averaged in {steps} optimizer steps: the first update is at step "
                f"{self.update_after + self.update_freq} (update_after={self.update_after} + "
                f"update_freq={self.update_freq}): lower one of them, or save the live weights"
            )
