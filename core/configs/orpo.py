"""Settings of odds ratio preference optimisation, with TRL 1.16's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.reference_free_config import DECODERS, NOT_TAKEN, ReferenceFreeConfig
from core.losses.reference_free import ORPO_LOSS, Coefficients, ReferenceFree
from core.option import option


@dataclass
class ORPOConfig(ReferenceFreeConfig):
    """Settings of `ORPOTrainer`: pairs, and the weight of their odds ratio.

    Raises:
        BadValue: see `ReferenceFreeConfig`.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **NOT_TAKEN,
        "padding_value": "padding is masked, so that its token has no effect",
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = DECODERS
    AT_LEAST: ClassVar[Mapping[str, float]] = {"max_length": 2}

    beta: float = option(0.1, "Weight of the loss of the odds ratio, lambda of the paper.")
    max_completion_length: int | None = option(None, "Not supported.")
    padding_value: int | None = option(None, "Not supported.")
    generate_during_eval: bool = option(False, "Not supported.")
    is_encoder_decoder: bool | None = option(None, "Only models that are decoders are supported.")

    @property
    def loss(self) -> ReferenceFree:
        """The loss of a pair."""
        return ORPO_LOSS

    @property
    def coefficients(self) -> Coefficients:
        """The numbers of the loss."""
        return Coefficients(beta=self.beta)

    @property
    def likelihood_weight(self) -> float:
        """Weight of the negative log-likelihood of chosen texts."""
        return 1.0
