"""Settings of triple preference optimisation, with TRL 1.16's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.reference_free_config import SMOOTHED_TOKENS, ReferenceFreeConfig
from core.configs.sft import TRUNCATIONS
from core.losses.reference_free import TPO_LOSSES, Coefficients, ReferenceFree
from core.option import choice, option


@dataclass
class TPOConfig(ReferenceFreeConfig):
    """Settings of `TPOTrainer`: pairs, their loss and the likelihood of gold answers.

    Raises:
        BadValue: see `ReferenceFreeConfig`, or the loss does not read a setting.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = SMOOTHED_TOKENS
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "loss_type": tuple(TPO_LOSSES),
        "truncation_mode": tuple(TRUNCATIONS),
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        "max_length": 2,
        "label_smoothing": 0.0,
        "tpo_alpha": 0.0,
        "pad_to_multiple_of": 1,
    }

    learning_rate: float = option(5e-7, "Initial learning rate of AdamW.")
    truncation_mode: str = choice("keep_start", TRUNCATIONS, "What is kept of a long sequence")
    pad_to_multiple_of: int | None = option(None, "Pad lengths to a multiple of this.")
    loss_type: str = choice("sigmoid", TPO_LOSSES, "Loss of a pair")
    beta: float = option(0.01, "Factor of the gap of scores; 1/(2 beta) is the target of IPO.")
    label_smoothing: float = option(0.0, "Chance that a pair is labelled the wrong way round.")
    tpo_alpha: float = option(
        1.0, "Weight of the negative log-likelihood of gold answers, which 0 leaves unread."
    )
    tpo_l_gamma: float = option(0.5, "Margin of rewards that 'tpo-l' asks for.")

    def resolve(self) -> None:
        """Resolve the settings, and refuse those that the loss does not read."""
        super().resolve()
        self.refuse_idle("loss_type", TPO_LOSSES)

    @property
    def loss(self) -> ReferenceFree:
        """The loss of a pair."""
        return TPO_LOSSES[self.loss_type]

    @property
    def coefficients(self) -> Coefficients:
        """The numbers of the loss."""
        return Coefficients(
            beta=self.beta, label_smoothing=self.label_smoothing, margin=self.tpo_l_gamma
        )

    @property
    def likelihood_weight(self) -> float:
        """Weight of the negative log-likelihood of gold answers."""
        return self.tpo_alpha
