"""Settings of how what samples may differ from what is trained, none of them TRL's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from core.configs.engines import ENGINES, ROLLOUT_POLICIES
from core.configs.generation_keywords import sampling_settings
from core.option import option
from eval.errors import BadValue


@dataclass
class SamplerConfig:
    """Weights that are old or rounded, and what of a draw is kept; of every method with rollouts.

    They act in training; an evaluation samples from the policy as it is.
    """

    AT_LEAST: ClassVar[Mapping[str, float]] = {"rollout_lag": 0, "rollout_bits": 2}
    # Settings that only act on an engine of this process, and when they ask for it.
    INSIDE: ClassVar[tuple[str, ...]] = ("rollout_lag", "rollout_bits", "keep_sampling_mask")

    rollout_lag: int = option(
        0, "Sample from the weights of so many optimizer steps ago, the first ones before that."
    )
    rollout_bits: int | None = option(
        None,
        "Sample from linear layers rounded to so many bits: symmetrically, the weights of each "
        "output to multiples of their largest / (2^(bits - 1) - 1). Embeddings, head, norms and "
        "biases are not; unset, nothing is.",
    )
    compare_sampler: bool = option(
        False, "Read the engine's log-probabilities where it samples from the trained weights too."
    )
    keep_sampling_mask: bool = option(
        False,
        "Normalise over the tokens that top_p, top_k and min_p left where a token was drawn.",
    )

    @property
    def alters_weights(self) -> bool:
        """Whether an engine of this process samples from other weights than the trained ones."""
        return self.rollout_lag > 0 or self.rollout_bits is not None

    def check_sampler(self, c: Any) -> None:  # Any: the config that these are settings of
        """Refuse settings that cannot act on what samples.

        Raises:
            BadValue: the engine has weights of its own or does not say what it kept, the frozen
                reference samples, or nothing is cut off that could be kept.
        """
        name = next((name for name in self.INSIDE if getattr(self, name)), None)
        if name is None:
            return
        said, row = f"{name}={getattr(self, name)!r}", ENGINES[c.rollout_engine]
        if row.is_vllm or (self.keep_sampling_mask and not row.keeps_support):
            takers = [key for key, other in ENGINES.items() if other.keeps_support]
            raise BadValue(
                f"{said} cannot act with rollout_engine={c.rollout_engine!r}: expected one of "
                f"{', '.join(map(repr, takers))}"
            )
        if self.alters_weights and not ROLLOUT_POLICIES[c.rollout_policy].moves:
            raise BadValue(
                f"{said} is of the policy that is trained, and rollout_policy="
                f"{c.rollout_policy!r} samples from another: leave one of them out"
            )
        drawn = sampling_settings(c)
        cuts = drawn["top_p"] < 1 or drawn["top_k"] > 0 or drawn["min_p"] is not None
        if self.keep_sampling_mask and not cuts:
            raise BadValue(
                "keep_sampling_mask=True keeps all tokens: set top_p, top_k or min_p, or leave it "
                "out"
            )
