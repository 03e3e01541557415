"""Base of the settings of trainers of preference pairs."""

from core.configs.answer_config import AnswerConfig
from eval.errors import BadValue


class PairConfig(AnswerConfig):
    """Settings that a trainer of preference pairs reads; a subclass declares the fields."""

    @property
    def kept_tokens(self) -> str:
        """The row of `TRUNCATIONS` that says which tokens of a long sequence are kept."""
        return getattr(self, "truncation_mode", "keep_start")

    @property
    def alignment(self) -> str:
        """The row of `ALIGNMENTS` that weights of pairs need; "none" also without weights."""
        weighs = getattr(self, "use_weighting", False)
        return getattr(self, "weighting_alignment", "none") if weighs else "none"

    @property
    def shares(self) -> tuple[str, ...]:
        """Columns of numbers from 0 to 1 that the loss reads."""
        return ()

    def check_beta_and_smoothing(self) -> None:
        """Refuse a `beta` or a `label_smoothing` that is out of range.

        Raises:
            BadValue: one of them is.
        """
        name, smoothing = type(self).__name__, getattr(self, "label_smoothing", 0.0)
        if not self.beta > 0:
            raise BadValue(f"{name}.beta={self.beta!r}: expected a number above 0")
        if smoothing >= 0.5:
            raise BadValue(
                f"{name}.label_smoothing={smoothing!r}: expected less than 0.5, the chance at "
                "which labels say nothing"
            )
