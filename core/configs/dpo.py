"""Settings of direct preference optimisation, with TRL 1.16's names and defaults."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from core.configs.pair_config import PairConfig
from core.configs.reference_config import ReferenceConfig
from core.configs.sft import TRUNCATIONS
from core.losses.divergence_scores import DIVERGENCES
from core.losses.pair_weights import ALIGNMENTS, SIDES
from core.losses.preference import PREFERENCES, WIN_COLUMNS, Preference
from core.option import choice, option
from eval.errors import BadValue

# Settings that some losses or divergences read, each with what to do instead.
READ_BY_SOME: Mapping[str, str] = {
    "label_smoothing": ", or set loss_type='cdpo'",
    "discopop_tau": "",
    "f_alpha_divergence_coef": "",
}
LOSSES = "; ".join(f"'{name}', {row.doc}" for name, row in PREFERENCES.items())


@dataclass
class DPOConfig(ReferenceConfig, PairConfig):
    """Settings of `DPOTrainer`: pairs and their loss, with those of a reference.

    Raises:
        BadValue: see `ReferenceConfig`, or two settings of the loss do not go together.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **ReferenceConfig.UNSUPPORTED,
        "padding_free": "pairs are packed without padding wherever the model allows it",
        "label_smoothing_factor": "it is of the labels of tokens; set label_smoothing",
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **ReferenceConfig.CHOICES,
        "truncation_mode": tuple(TRUNCATIONS),
        "f_divergence_type": tuple(DIVERGENCES),
        "weighting_alignment": tuple(ALIGNMENTS),
        "weighting_side": tuple(SIDES),
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **ReferenceConfig.AT_LEAST,
        "ld_alpha": 0.0,
        "label_smoothing": 0.0,
    }

    truncation_mode: str = choice("keep_start", TRUNCATIONS, "What is kept of a long sequence")
    padding_free: bool = option(False, "Not supported: pairs are packed where that is possible.")
    loss_type: list[str] | str = field(
        default_factory=lambda: ["sigmoid"],
        metadata={"help": f"One or several losses of a pair: {LOSSES}."},
    )
    loss_weights: list[float] | None = option(None, "Weights of the losses; unset, 1 for each.")
    label_smoothing: float = option(0.0, "Chance that a pair is labelled the wrong way round.")
    ld_alpha: float | None = option(
        None, "Weight of tokens beyond the shorter answer of a pair; unset, 1."
    )
    f_divergence_type: str = choice(
        "reverse_kl", DIVERGENCES, "Divergence whose derivative scores an answer"
    )
    f_alpha_divergence_coef: float = option(0.5, "Order of the alpha divergence.")
    use_weighting: bool = option(
        False, "Weigh pairs by how likely the policy is to sample them, arXiv 2406.11827."
    )
    weighting_alignment: str = choice(
        "sampled", ALIGNMENTS, "What log-probabilities of tokens are compared with in a weight"
    )
    weighting_side: str = choice("both", SIDES, "Answers whose weights multiply the loss of a pair")
    weighting_clamp: float | None = option(None, "Largest weight of a pair; unset, none.")
    discopop_tau: float = option(0.05, "Temperature of the mixture of 'discopop'.")
    pad_token: str | None = option(None, "Token that pads; unset, the tokenizer's.")

    def resolve(self) -> None:
        """Resolve the settings as of every trainer, and check those of the loss together."""
        self.loss_type = [self.loss_type] if isinstance(self.loss_type, str) else [*self.loss_type]
        self.check_losses()
        super().resolve()
        self.check_numbers()
        self.check_unread()
        self.check_weighting()
        self.check_together()

    @property
    def shares(self) -> tuple[str, ...]:
        """Columns of numbers from 0 to 1 that a loss reads."""
        return WIN_COLUMNS if self.first_loss(lambda row: row.needs_wins) else ()

    @property
    def reads_others(self) -> bool:
        """True if a loss reads other pairs."""
        return self.first_loss(lambda row: not row.splits) is not None

    def check_losses(self) -> None:
        """Refuse losses that are unknown, and weights of another number.

        Raises:
            BadValue: there is one, or there is no loss.
        """
        known = ", ".join(map(repr, PREFERENCES))
        for name in self.loss_type:
            if name not in PREFERENCES:
                raise BadValue(f"DPOConfig.loss_type={name!r}: expected one of {known}")
        if not self.loss_type:
            raise BadValue(f"DPOConfig.loss_type=[]: expected at least one loss of {known}")
        if self.loss_weights is not None and len(self.loss_weights) != len(self.loss_type):
            raise BadValue(
                f"`loss_weights` must have the same length as `loss_type`: found "
                f"{len(self.loss_weights)} weights for {len(self.loss_type)} losses"
            )

    def check_numbers(self) -> None:
        """Refuse numbers that are out of the range of the losses.

        Raises:
            BadValue: there is one.
        """
        self.check_beta_and_smoothing()
        name = self.first_loss(lambda row: row.needs_smoothing)
        if name and self.label_smoothing == 0:
            raise BadValue(
                f"label_smoothing=0.0 with loss_type={name!r}: Label smoothing must be greater "
                "than 0.0, such as 1e-3"
            )

    def first_loss(self, holds: Callable[[Preference], bool]) -> str | None:
        """Return the first of the losses of which something holds; None if of none."""
        return next((name for name in self.loss_type if holds(PREFERENCES[name])), None)

    def check_unread(self) -> None:
        """Refuse settings that neither a loss nor the divergence reads.

        Raises:
            BadValue: there is one.
        """
        read = {name for loss in self.loss_type for name in PREFERENCES[loss].parameters}
        read.update(DIVERGENCES[self.f_divergence_type].parameters)
        losses = ", ".join(map(repr, self.loss_type))
        for name, instead in READ_BY_SOME.items():
            if name not in read and self.is_set(name):
                raise BadValue(
                    f"{name}={getattr(self, name)!r} has no effect with loss_type={losses} and "
                    f"f_divergence_type={self.f_divergence_type!r}: leave it out{instead}"
                )

    def check_weighting(self) -> None:
        """Refuse settings of weights that have no effect, and a limit that is not above 0.

        Raises:
            BadValue: there is one.
        """
        for name in ("weighting_alignment", "weighting_side", "weighting_clamp"):
            if self.is_set(name) and not self.use_weighting:
                raise BadValue(
                    f"{name}={getattr(self, name)!r} has no effect without use_weighting=True: "
                    "set it, or leave it out"
                )
        limit = self.weighting_clamp
        if limit is None:
            return
        if not limit > 0:
            raise BadValue(f"weighting_clamp={limit!r}: expected a number above 0")
        if limit >= 1 and self.weighting_alignment != "sampled":
            raise BadValue(
                f"weighting_clamp={limit!r} has no effect with weighting_alignment="
                f"{self.weighting_alignment!r}, whose weights are at most 1: leave it out"
            )

    def check_together(self) -> None:
        """Refuse a divergence and weights that a loss has no form for.

        Raises:
            BadValue: there is such a loss.
        """
        name = self.first_loss(lambda row: not row.takes_divergences)
        if name and self.f_divergence_type != "reverse_kl":
            raise BadValue(
                f"f_divergence_type={self.f_divergence_type!r} with loss_type={name!r}, "
                "whose partition function does not cancel: leave one of them out"
            )
        name = self.first_loss(lambda row: not row.splits)
        if name and self.use_weighting:
            raise BadValue(
                f"use_weighting=True with loss_type={name!r}, which is no loss of single "
                "pairs: leave one of them out"
            )
