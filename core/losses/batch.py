"""What a policy loss is computed from: one micro-batch of scored completions and the settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.option import option
from core.shapes import BT, BT1, Mask


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """Log-probabilities and advantages of B completions of at most T tokens.

    `logps` carries the gradient; `old_logps` is pi at rollout, `ref_logps` the reference. One
    advantage per completion or per token. `mask` is 1 on trained tokens. `sampling_ratio` is
    pi_old over the policy of the engine that sampled, where the two differ.
    """

    logps: BT
    old_logps: BT
    advantages: BT1
    mask: Mask
    ref_logps: BT | None = None
    sampling_ratio: BT1 | None = None

    @property
    def log_ratio(self) -> BT:
        """log(pi / pi_old), per token."""
        return self.logps - self.old_logps


@dataclass
class PolicyConfig:
    """The settings of a policy loss; the config of a trainer inherits them."""

    AT_LEAST: ClassVar[Mapping[str, float]] = {
        "beta": 0.0,
        "epsilon": 0.0,
        "epsilon_high": 0.0,
        "delta": 0.0,
    }

    loss_type: str = "grpo"
    importance_sampling_level: str = "token"
    epsilon: float = option(0.2, "Lower clip width of the ratio.")
    epsilon_high: float | None = option(None, "Upper clip width; unset, `epsilon`.")
    delta: float | None = option(None, "Cap of the ratio before the clip; unset, none.")
    beta: float = option(0.0, "Weight of the KL to the reference; 0 loads no reference.")
    use_bias_correction_kl: bool = option(True, "Multiply the KL estimate by the ratio.")

    @property
    def upper_epsilon(self) -> float:
        """The upper clip width, which unset is the lower one."""
        return self.epsilon if self.epsilon_high is None else self.epsilon_high
