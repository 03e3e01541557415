"""Changes of numbers and defaults in the GRPO of TRL 0.17 to 1.16, by release.

Not reproduced: completions that end with padding counted as truncated (until 0.23, without end
token); truncation of prompts by `max_prompt_length` (0.17 to 0.27); the router weight 0.001 of a
mixture of experts (1.7 to 1.13; here the model's own); division of an evaluation loss by the
accumulation (until 0.27). Metrics are those of 1.16.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

PAPER, TRL = "paper", "trl=="
RELEASES = (*(f"1.{n}" for n in range(16, -1, -1)), *(f"0.{n}" for n in range(29, 16, -1)))


@dataclass(frozen=True, kw_only=True)
class Change:
    """Changes of one release.

    Attributes:
        before: Defaults of older releases.
        fields: Fields that older releases lacked, or gave another meaning.
        losses: Losses that older releases lacked, or computed differently.
    """

    before: Mapping[str, object] = field(default_factory=dict[str, object])
    fields: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()


CHANGES: Mapping[str, Change] = {
    "1.16": Change(before={"pad_to_multiple_of": None}),
    "1.10": Change(
        before={
            "max_completion_length": 256,
            "use_bias_correction_kl": False,
            "token_normalizer": "whole_rollout",
        },
        fields=("entropy_coef", "use_adaptive_entropy"),  # by the loss's divisor, not by its tokens
        losses=("luspo",),  # with a KL or by token it was a mean over padding too
    ),
    "1.7": Change(before={"router_aux_loss_coef": 0.0}),
    "1.6": Change(fields=("vllm_importance_sampling_clip_min",)),
    "1.0": Change(before={"vllm_mode": "server"}, losses=("vespo",)),
    "0.27": Change(fields=("multi_objective_aggregation", "off_policy_mask_threshold")),
    "0.26": Change(
        before={
            "vllm_importance_sampling_clip_max": 2.0,
            "vllm_importance_sampling_mode": "token_truncate",
        },
        fields=("use_bias_correction_kl", "vllm_importance_sampling_mode"),
        losses=("cispo", "sapo"),
    ),
    "0.23": Change(
        before={"vllm_importance_sampling_correction": False},
        fields=("vllm_importance_sampling_correction", "vllm_importance_sampling_cap"),
    ),
    "0.22": Change(before={"loss_type": "bnpo", "gradient_checkpointing": False}, losses=("dapo",)),
    "0.20": Change(fields=("importance_sampling_level", "top_entropy_quantile")),
    "0.19": Change(before={"beta": 0.04, "bf16": False, "logging_steps": 500}),
    "0.18": Change(
        before={"temperature": 0.9, "top_k": 50},
        fields=("delta", "generation_batch_size", "steps_per_generation"),
    ),
}


def defaults_by_semantics() -> dict[str, Mapping[str, object]]:
    """Return the defaults of each semantics that differ from those of the newest release."""
    defaults: dict[str, Mapping[str, object]] = {PAPER: {"token_normalizer": "step"}}
    older_defaults: dict[str, object] = {}
    for release in RELEASES:
        defaults[f"{TRL}{release}"] = older_defaults
        older_defaults = {
            **older_defaults,
            **(CHANGES[release].before if release in CHANGES else {}),
        }
    return defaults


def later_changes(semantics: str) -> dict[str, Change]:
    """Return the changes of releases after that of a semantics, newest first."""
    release = semantics.removeprefix(TRL)
    position = RELEASES.index(release) if release in RELEASES else 0
    return {name: CHANGES[name] for name in RELEASES[:position] if name in CHANGES}


SEMANTICS = defaults_by_semantics()
