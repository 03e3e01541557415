"""What a policy loss is computed from: one micro-batch of scored completions and the settings."""

from dataclasses import dataclass

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


@dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    """The settings of a policy loss; the trainer's fields of the same names."""

    loss_type: str = "grpo"
    importance_sampling_level: str = "token"
    epsilon: float = 0.2
    epsilon_high: float = 0.2
    delta: float | None = None
    beta: float = 0.0
    use_bias_correction_kl: bool = True
