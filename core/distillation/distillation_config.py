"""Settings of on-policy distillation, with TRL's names and defaults."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from torch import Tensor

from core.configs.idle import ratio_is_one
from core.distillation.distilling_config import DistillingConfig
from core.losses.divergence import divergence, sampled_reverse_kl
from core.option import choice, option
from core.shapes import NV, N
from eval.errors import BadValue


class Estimator(NamedTuple):
    """A row of `ESTIMATORS`: a divergence of each token from log-probabilities of both models."""

    of: Callable[[NV, NV, Tensor, float], N]
    doc: str


def full(logps: NV, teacher_logps: NV, tokens: Tensor, beta: float) -> N:  # noqa: ARG001 - a table row
    """Return D_beta over the vocabulary."""
    return divergence(logps, teacher_logps, beta)


def sampled(logps: NV, teacher_logps: NV, tokens: Tensor, beta: float) -> N:  # noqa: ARG001 - as above
    """Return `sampled_reverse_kl` of the sampled tokens."""
    own, other = (x.gather(-1, tokens[:, None])[:, 0] for x in (logps, teacher_logps))
    return sampled_reverse_kl(own, other)


ESTIMATORS = {
    "full": Estimator(full, "the divergence over the vocabulary"),
    "sampled": Estimator(sampled, "the reverse KL by the sampled token alone"),
}


@dataclass
class DistillationConfig(DistillingConfig):
    """Settings of `DistillationTrainer`, with the names and defaults of TRL 1.16, and of rollouts.

    `estimator` is no setting of TRL 1.16, and `lmbda` one of earlier releases.

    Raises:
        BadValue: see `DistillingConfig`; or sampled tokens have no divergence but the reverse KL.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **DistillingConfig.UNSUPPORTED,
        "max_tool_calling_iterations": "tools are not supported",
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **DistillingConfig.CHOICES,
        "estimator": tuple(ESTIMATORS),
    }

    max_tool_calling_iterations: int | None = option(None, "Largest number of tool-calling turns.")
    estimator: str = choice("full", ESTIMATORS, "The loss of a token")
    lmbda: float = option(1.0, "Share of rollouts that the student samples: all.")

    def resolve(self) -> None:
        """Resolve the settings, and refuse those that no loss has."""
        super().resolve()
        if self.lmbda != 1:
            raise BadValue(
                f"DistillationConfig.lmbda={self.lmbda!r}: the student samples every completion; "
                "GKDConfig has lmbda"
            )
        if self.estimator == "sampled" and self.beta != 1:
            raise BadValue(
                f"estimator='sampled' with beta={self.beta!r}: sampled tokens give the reverse KL; "
                "leave beta out"
            )
        if self.estimator == "sampled" and not ratio_is_one(self):
            raise BadValue(
                "estimator='sampled' with several updates for each rollout: its gradient is the "
                "reverse KL's before the student moves alone; set num_iterations=1 and leave "
                "steps_per_generation out"
            )
