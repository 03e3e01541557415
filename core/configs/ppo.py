"""Settings of proximal policy optimisation with a value model."""

from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from typing import ClassVar

from core.configs.grpo import GRPOConfig
from core.option import option
from eval.errors import BadValue


@dataclass
class PPOConfig(GRPOConfig):
    """Settings of `PPOTrainer`: those of GRPO with PPO's defaults, and those of values.

    `cliprange` and `num_ppo_epochs` are the names of `epsilon` and `num_iterations` in TRL's last
    PPO. Its num_mini_batches times `gradient_accumulation_steps` is `steps_per_generation`.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **GRPOConfig.UNSUPPORTED,
        "advantage_estimator": "advantages are those against the value model",
        "fp16": "the value model is trained without a gradient scaler; set bf16",
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **GRPOConfig.AT_LEAST,
        "vf_coef": 0.0,
        "cliprange_value": 0.0,
        "value_learning_rate": 0.0,
        "old_kl_coef": 0.0,
    }

    learning_rate: float = option(3e-6, "Initial learning rate of AdamW.")
    num_generations: int = option(1, "Completions of one prompt: the group.")
    num_iterations: int = option(4, "Passes over one rollout.")
    kl_coef: float = option(
        0.05, "Weight of the KL to the reference in the reward; 0 leaves it out of it."
    )
    advantage_estimator: str = option("gae", "Against the value model, whitened over a rollout.")

    gamma: float = option(1.0, "Discount of the reward of a completion, for each token.")
    penalty_gamma: float | None = option(
        None, "Discount of rewards of tokens, such as DenseRepetition; unset, `gamma`."
    )
    lam: float = option(0.95, "Lambda of the advantages: 1 sums all that follows a token.")
    vf_coef: float = option(
        0.1,
        "Weight of the loss of values. The value model has an optimizer of its own, so that it "
        "acts by the limit of the gradient's norm and by Adam's epsilon.",
    )
    cliprange_value: float = option(0.2, "How far values may move from those at rollout.")
    value_learning_rate: float | None = option(
        None, "Learning rate of the value model; unset, `learning_rate`."
    )
    old_kl_coef: float = option(
        0.0, "Weight of the KL from the policy at rollout in the loss, arXiv 1707.06347 eq. 8."
    )
    old_kl_target: float | None = option(
        None,
        "KL that the weight is steered to, from rollout to rollout, by that of the last pass; "
        "unset, it stays.",
    )

    cliprange: InitVar[float | None] = None
    num_ppo_epochs: InitVar[int | None] = None

    def __post_init__(self, cliprange: float | None, num_ppo_epochs: int | None):
        for name, value in (("epsilon", cliprange), ("num_iterations", num_ppo_epochs)):
            if value is not None:
                self.given_fields.add(name)
                setattr(self, name, value)
        super().__post_init__()

    @property
    def scales_rewards(self) -> bool:
        """Always False: advantages are whitened over whole batches."""
        return False

    @property
    def penalty_discount(self) -> float:
        """Discount of the rewards of tokens."""
        return self.gamma if self.penalty_gamma is None else self.penalty_gamma

    def resolve(self) -> None:
        """Resolve the settings as of GRPO, and check discounts and the KL target.

        Raises:
            BadValue: a discount is outside 0 to 1, or the target has no positive weight.
        """
        super().resolve()
        for name in ("gamma", "penalty_gamma", "lam"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise BadValue(f"{name}={value}: expected 0 to 1")
        target = self.old_kl_target
        if target is not None and not (target > 0 and self.old_kl_coef > 0):
            raise BadValue(
                f"old_kl_target={target} with old_kl_coef={self.old_kl_coef}: expected both above "
                "0, the target of the KL and its initial weight"
            )
