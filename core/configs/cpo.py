"""Settings of contrastive preference optimisation, with TRL 1.16's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.reference_free_config import DECODERS, NOT_TAKEN, ReferenceFreeConfig
from core.losses.reference_free import CPO_LOSSES, Coefficients, ReferenceFree
from core.option import choice, option
from eval.errors import BadValue

ALPHAPO = "alphapo"  # TRL's name for SimPO with `alpha` and without likelihood
LIKELIHOOD = float("1")  # the default, an object of its own: a weight of 1.0 that is set is another


@dataclass
class CPOConfig(ReferenceFreeConfig):
    """Settings of `CPOTrainer`: pairs, their loss and the likelihood beside it.

    `loss_type="alphapo"` stands for "simpo" with `cpo_alpha=0`, as in TRL, which overrides any
    other weight.

    Raises:
        BadValue: see `ReferenceFreeConfig`; the loss does not read a setting; or "alphapo" is given
            with a `cpo_alpha` other than 0.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = NOT_TAKEN
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **DECODERS,
        "loss_type": (*CPO_LOSSES, ALPHAPO),
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        "max_length": 2,
        "label_smoothing": 0.0,
        "cpo_alpha": 0.0,
    }

    loss_type: str = choice("sigmoid", CPO_LOSSES, "Loss of a pair; also 'alphapo', for 'simpo'")
    label_smoothing: float = option(0.0, "Chance that a pair is labelled the wrong way round.")
    cpo_alpha: float = option(
        LIKELIHOOD, "Weight of the negative log-likelihood of chosen answers."
    )
    simpo_gamma: float = option(0.5, "Margin of rewards that 'simpo' asks for.")
    alpha: float = option(
        0.0, "Shape of the score of an answer, of losses that read means; 0 leaves it as it is."
    )
    max_completion_length: int | None = option(None, "Not supported.")
    generate_during_eval: bool = option(False, "Not supported.")
    is_encoder_decoder: bool | None = option(None, "Only models that are decoders are supported.")

    def resolve(self) -> None:
        """Resolve the settings, and refuse those that the loss does not read."""
        super().resolve()
        if self.loss_type == ALPHAPO:
            self.take_alphapo()
        self.refuse_idle("loss_type", CPO_LOSSES)

    def take_alphapo(self) -> None:
        """Set what "alphapo" stands for.

        Raises:
            BadValue: a weight of the likelihood is set.
        """
        if self.cpo_alpha is not LIKELIHOOD and self.cpo_alpha != 0:
            raise BadValue(
                f"cpo_alpha={self.cpo_alpha!r} with loss_type={ALPHAPO!r}, which has no "
                "likelihood: leave it out, or set loss_type='simpo'"
            )
        self.loss_type, self.cpo_alpha = "simpo", 0.0

    @property
    def loss(self) -> ReferenceFree:
        """The loss of a pair."""
        return CPO_LOSSES[self.loss_type]

    @property
    def coefficients(self) -> Coefficients:
        """The numbers of the loss."""
        return Coefficients(
            beta=self.beta,
            label_smoothing=self.label_smoothing,
            margin=self.simpo_gamma,
            alpha=self.alpha,
        )

    @property
    def likelihood_weight(self) -> float:
        """Weight of the negative log-likelihood of chosen answers."""
        return self.cpo_alpha
