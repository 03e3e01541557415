"""Settings of binary classifier optimisation, with the names and defaults of TRL 1.13."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.unpaired_config import UnpairedConfig
from core.option import option
from eval.errors import BadValue

OF_ENCODERS = "models with an encoder are not supported"
DENSITY_RATIO = ("prompt_sample_size", "min_density_ratio", "max_density_ratio")


@dataclass
class BCOConfig(UnpairedConfig):
    """Settings of `BCOTrainer`: the weights of prompts, with the settings of a reference.

    Raises:
        BadValue: see `UnpairedConfig`, or `min_density_ratio` is above `max_density_ratio`.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **UnpairedConfig.UNSUPPORTED,
        "max_completion_length": OF_ENCODERS,
        "is_encoder_decoder": OF_ENCODERS,
        "generate_during_eval": "an evaluation samples no answers",
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **UnpairedConfig.AT_LEAST,
        "prompt_sample_size": 1,
        "min_density_ratio": 0.0,
        "max_density_ratio": 0.0,
    }

    learning_rate: float = option(5e-7, "Initial learning rate of AdamW.")
    max_completion_length: int | None = option(None, "Not supported.")
    generate_during_eval: bool = option(False, "Not supported.")
    is_encoder_decoder: bool | None = option(None, "Not supported.")
    prompt_sample_size: int = option(
        1024, "Largest number of prompts of each label that the classifier is fitted on."
    )
    min_density_ratio: float = option(0.5, "Least weight of an undesirable answer.")
    max_density_ratio: float = option(10.0, "Largest weight of an undesirable answer.")

    @property
    def loss_name(self) -> str:
        """The name of the loss, a row of `UNPAIRED`."""
        return "bco"

    def resolve(self) -> None:
        """Resolve the settings as of every trainer, and check the bounds of the weights."""
        super().resolve()
        if self.min_density_ratio > self.max_density_ratio:
            raise BadValue(
                f"min_density_ratio={self.min_density_ratio!r} is above max_density_ratio="
                f"{self.max_density_ratio!r}: exchange them"
            )

    def check_matching(self, *, has_embeddings: bool) -> None:
        """Refuse settings of the weights of prompts without embeddings of prompts.

        Raises:
            BadValue: one of them is set.
        """
        name = next(filter(self.is_set, DENSITY_RATIO), None)
        if name and not has_embeddings:
            raise BadValue(
                f"{name}={getattr(self, name)!r}: prompts are weighed by their embeddings; pass "
                "embedding_func and embedding_tokenizer to BCOTrainer, or leave it out"
            )
