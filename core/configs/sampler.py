"""Settings of a sampler whose policy differs from the trained one; none of them are TRL's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from core.configs.engines import ENGINES, ROLLOUT_POLICIES
from core.configs.generation_keywords import SamplingSettings, sampling_settings
from core.option import option
from eval.errors import BadValue


class RolloutSettings(SamplingSettings, Protocol):
    """The config that the settings belong to."""

    rollout_engine: str
    rollout_policy: str


@dataclass
class SamplerConfig:
    """Settings of old or rounded weights, and of what is recorded of sampling.

    They apply in training; an evaluation samples from the policy itself.
    """

    AT_LEAST: ClassVar[Mapping[str, float]] = {"rollout_lag": 0, "rollout_bits": 2}
    # Settings that have an effect only on an engine of this process.
    INSIDE: ClassVar[tuple[str, ...]] = ("rollout_lag", "rollout_bits", "keep_sampling_mask")

    rollout_lag: int = option(
        0,
        "Sample from the weights of this many optimizer steps ago, at first from the initial ones.",
    )
    rollout_bits: int | None = option(
        None,
        "Sample from linear layers rounded to this many bits: the weights of each output become "
        "multiples of their largest / (2^(bits - 1) - 1). Embeddings, head, norms and biases are "
        "not rounded; unset, nothing is.",
    )
    compare_sampler: bool = option(
        False, "Read the engine's log-probabilities where it samples from the trained weights too."
    )
    keep_sampling_mask: bool = option(
        False,
        "Normalise log-probabilities over the tokens that top_p, top_k and min_p left in sampling.",
    )

    @property
    def alters_weights(self) -> bool:
        """True if an engine of this process samples from other weights than the trained ones."""
        return self.rollout_lag > 0 or self.rollout_bits is not None

    def check_sampler(self, c: RolloutSettings) -> None:
        """Refuse settings that have no effect on the sampler.

        Raises:
            BadValue: the engine has weights of its own or does not report its support, the frozen
                reference samples, or sampling is not truncated.
        """
        name = next((name for name in self.INSIDE if getattr(self, name)), None)
        if name is None:
            return
        self.check_engine(c, f"{name}={getattr(self, name)!r}")
        settings = sampling_settings(c)
        cuts = settings["top_p"] < 1 or settings["top_k"] > 0 or settings["min_p"] is not None
        if self.keep_sampling_mask and not cuts:
            raise BadValue(
                "keep_sampling_mask=True keeps all tokens: set top_p, top_k or min_p, or leave it "
                "out"
            )

    def check_engine(self, c: RolloutSettings, setting: str) -> None:
        """Refuse an engine or a policy on which a setting has no effect.

        Raises:
            BadValue: the message begins with `setting`, its name and value.
        """
        row = ENGINES[c.rollout_engine]
        if row.is_vllm or (self.keep_sampling_mask and not row.keeps_support):
            takers = [key for key, engine in ENGINES.items() if engine.keeps_support]
            raise BadValue(
                f"{setting} cannot act with rollout_engine={c.rollout_engine!r}: expected one of "
                f"{', '.join(map(repr, takers))}"
            )
        if self.alters_weights and not ROLLOUT_POLICIES[c.rollout_policy].moves:
            raise BadValue(
                f"{setting} is of the policy that is trained, and rollout_policy="
                f"{c.rollout_policy!r} samples from another: leave one of them out"
            )
