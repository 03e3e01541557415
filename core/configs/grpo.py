"""Settings of group relative policy optimisation, with TRL 1.16's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.releases import PAPER, SEMANTICS, TRL, later_changes
from core.configs.rollout import RolloutConfig
from core.losses.advantages import AGGREGATIONS, SCALES
from core.losses.aggregate import AGGREGATES, TOKEN_NORMALIZERS, Aggregate
from core.losses.batch import PolicyConfig
from core.losses.entropy import ENDS, NORMALIZERS, EntropyConfig
from core.losses.estimators import ESTIMATORS
from core.losses.kl import ESTIMATORS as KL_ESTIMATORS
from core.losses.policy import LOSS_TYPES
from core.losses.ratio import RATIOS
from core.losses.sampling import MODES, Correction
from core.option import choice, option
from eval.errors import BadValue

NO_TOOLS = "no tools are called"


@dataclass
class GRPOConfig(PolicyConfig, EntropyConfig, RolloutConfig):
    """Settings of `GRPOTrainer`: those of every rollout, of advantages and of the policy loss.

    `semantics`, `advantage_estimator`, `kl_coef`, `kl_estimator`, `token_normalizer`,
    `loss_aggregate`, `top_entropy_tokens` and `top_entropy_normalizer` are not settings of TRL.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **RolloutConfig.UNSUPPORTED,
        "max_tool_calling_iterations": NO_TOOLS,
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **RolloutConfig.CHOICES,
        "loss_type": tuple(LOSS_TYPES),
        "importance_sampling_level": tuple(RATIOS),
        "scale_rewards": tuple(SCALES),
        "multi_objective_aggregation": tuple(AGGREGATIONS),
        "advantage_estimator": tuple(ESTIMATORS),
        "kl_estimator": tuple(KL_ESTIMATORS),
        "token_normalizer": tuple(TOKEN_NORMALIZERS),
        "semantics": tuple(SEMANTICS),
        "loss_aggregate": (None, *AGGREGATES),
        "top_entropy_tokens": tuple(ENDS),
        "top_entropy_normalizer": tuple(NORMALIZERS),
        "vllm_importance_sampling_mode": tuple(MODES),
    }
    ALIASES: ClassVar[Mapping[str, Mapping[object, object]]] = {
        "scale_rewards": {True: "group", False: "none", "true": "group", "false": "none"},
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **RolloutConfig.AT_LEAST,
        **PolicyConfig.AT_LEAST,
        **EntropyConfig.AT_LEAST,
        "kl_coef": 0.0,
        "vllm_importance_sampling_clip_max": 0.0,
        "vllm_importance_sampling_clip_min": 0.0,
    }

    SEMANTICS: ClassVar[Mapping[str, Mapping[str, object]]] = SEMANTICS
    PAPERS_HAVE: ClassVar[Mapping[str, object]] = {"semantics": PAPER}

    importance_sampling_level: str = choice("token", RATIOS, "Which ratios there are")
    multi_objective_aggregation: str = choice(
        "sum_then_normalize", AGGREGATIONS, "What several rewards become"
    )
    scale_rewards: str = choice("group", SCALES, "Standard deviation that a reward is divided by")
    loss_type: str = choice("dapo", LOSS_TYPES, "The loss of tokens, and how they become one")

    max_tool_calling_iterations: int | None = option(None, "Rounds of tool calls.")

    vllm_importance_sampling_correction: bool = option(
        True,
        "Weigh losses by the trainer's probabilities over the engine's where they differ: with "
        "vLLM, `rollout_lag`, `rollout_bits` or `compare_sampler`.",
    )
    vllm_importance_sampling_mode: str = choice("sequence_mask", MODES, "Ratio of a correction")
    vllm_importance_sampling_clip_max: float | None = option(3.0, "Upper limit of that ratio.")
    vllm_importance_sampling_clip_min: float | None = option(None, "Lower limit of that ratio.")

    use_transformers_paged: bool = option(
        False, "Earlier name of `use_transformers_continuous_batching`."
    )
    vllm_importance_sampling_cap: float | None = option(
        None, "Earlier name of vllm_importance_sampling_clip_max."
    )

    advantage_estimator: str = choice("group", ESTIMATORS, "How rewards become advantages")
    kl_coef: float = option(
        0.0, "Weight of the KL to the reference in the reward; 0 leaves it out of it."
    )
    kl_estimator: str = choice("k3", KL_ESTIMATORS, "The KL to the reference in the loss")
    token_normalizer: str = choice(
        "rollout",
        TOKEN_NORMALIZERS,
        "Tokens that a loss divides by where a step takes several rollouts "
        "(gradient_accumulation_steps above steps_per_generation)",
    )
    semantics: str = option(
        "trl==1.16",
        "Whose numbers are computed and whose defaults are had: 'paper', or those of a release of "
        "TRL, 'trl==0.17' to 'trl==1.16'.",
    )
    loss_aggregate: str | None = choice(
        None, AGGREGATES, "How the losses of tokens become one, unset as `loss_type` says"
    )
    top_entropy_normalizer: str = choice(
        "all", NORMALIZERS, "Tokens that a loss divides by where `top_entropy_quantile` drops some"
    )

    def resolve(self) -> None:
        """Resolve the settings as of every method with rollouts, and check loss and estimator.

        Raises:
            BadValue: a setting or a combination is refused.
        """
        self.check_semantics()
        self.take_earlier_names()
        super().resolve()
        self.check_advantages()
        self.loss_aggregate = self.loss_aggregate or LOSS_TYPES[self.loss_type].aggregate
        self.check_loss()
        self.check_entropy()
        self.check_correction()

    @property
    def penalises_kl(self) -> bool:
        """True if the loss has a KL to the reference."""
        return self.beta != 0.0

    @property
    def least_group(self) -> int:
        """Smallest number of completions of a prompt that the estimator can compare."""
        return ESTIMATORS[self.advantage_estimator].least_group

    @property
    def reward_kl(self) -> float:
        """Weight of the KL in the reward."""
        return self.kl_coef

    @property
    def reads_reference(self) -> bool:
        """True if the loss or the reward has a KL to the reference."""
        return self.penalises_kl or self.reward_kl != 0.0

    @property
    def reward_bounds(self) -> tuple[float, float] | None:
        """Range to which the sum of a completion's rewards is clamped; None for no limits."""
        return None

    @property
    def rollout_moves(self) -> bool:
        """True if the policy moves before all updates of a rollout are done."""
        return self.gradient_accumulation_steps % self.rollout_uses != 0

    @property
    def aggregate(self) -> Aggregate:
        """The reduction of token losses to one number."""
        return AGGREGATES[self.loss_aggregate or LOSS_TYPES[self.loss_type].aggregate]

    @property
    def has_other_aggregate(self) -> bool:
        """True if the aggregate is not that of `loss_type`."""
        return self.loss_aggregate != LOSS_TYPES[self.loss_type].aggregate

    @property
    def counts_kept(self) -> bool:
        """True if the loss divides by the tokens that are selected by their entropy."""
        return self.chooses_tokens and NORMALIZERS[self.top_entropy_normalizer].only_selected

    @property
    def counts_tokens(self) -> bool:
        """True if `token_normalizer` changes the number of tokens that the loss divides by.

        This holds if a step has several rollouts, or divides by all tokens of a rollout but has
        only a part of them.
        """
        shares = TOKEN_NORMALIZERS[self.token_normalizer].shares
        has_other_share = not shares and self.rollout_parts != self.gradient_accumulation_steps
        counts = self.aggregate.counts_tokens and not self.counts_kept
        return (self.mixes_rollouts or has_other_share) and counts

    @property
    def counts_groups(self) -> bool:
        """True if the loss divides by the tokens of each prompt."""
        return self.aggregate.counts_groups

    @property
    def scales_rewards(self) -> bool:
        """True if `scale_rewards` has an effect on advantages."""
        return AGGREGATIONS[self.multi_objective_aggregation].scales

    @property
    def corrects_sampling(self) -> bool:
        """True if losses are weighted by the ratio to the engine's probabilities."""
        return self.compares_sampler and self.vllm_importance_sampling_correction

    @property
    def reads_sampler(self) -> bool:
        """True if the engine's log-probabilities are read."""
        masks = self.off_policy_mask_threshold is not None
        return self.watches_sampler or (self.compares_sampler and masks)

    @property
    def watches_sampler(self) -> bool:
        """True if differences to the engine are logged; vLLM needs a correction, as in TRL."""
        return self.corrects_sampling or (self.compares_sampler and not self.use_vllm)

    @property
    def moves_off_policy(self) -> float | None:
        """The threshold of off-policy completions, None if policy and sampler are the same."""
        moves = self.compares_sampler or self.rollout_moves
        return self.off_policy_mask_threshold if moves else None

    @property
    def correction(self) -> Correction:
        """The importance weights for an engine with a slightly different policy."""
        return Correction(
            mode=self.vllm_importance_sampling_mode,
            clip_min=self.vllm_importance_sampling_clip_min,
            clip_max=self.vllm_importance_sampling_clip_max,
        )

    @property
    def loss_warning(self) -> str | None:
        """Warning about settings of the loss that make no sense together, or None."""
        return LOSS_TYPES[self.loss_type].warning(self)

    @property
    def length_weighting(self) -> str | None:
        """Warning that a ratio per completion weights by length in a loss that sums tokens.

        None without such a combination, and for `luspo`, whose own ratio is per completion.
        """
        level, paper_level = self.importance_sampling_level, LOSS_TYPES[self.loss_type].levels[0]
        means = self.aggregate is AGGREGATES["sequence_mean"]
        if level == paper_level or not RATIOS[level].per_completion or means:
            return None
        return (
            f"importance_sampling_level={level!r} with loss_type={self.loss_type!r}, which sums "
            "per-token contributions, weights each sequence by its completion length: set "
            "loss_type='grpo', as arXiv 2507.18071 does"
        )

    def check_advantages(self) -> None:
        """Refuse groups that are too small to compare, and a KL in both loss and reward.

        Raises:
            BadValue: there are such settings.
        """
        self.refuse_idle("advantage_estimator", ESTIMATORS)
        if self.num_generations < self.least_group:
            raise BadValue(
                f"num_generations={self.num_generations}: advantage_estimator="
                f"{self.advantage_estimator!r} compares completions of a prompt, expected at least "
                f"{self.least_group}"
            )
        if self.penalises_kl and self.reward_kl:
            raise BadValue(
                f"beta={self.beta} and kl_coef={self.kl_coef}: a KL in the loss and one in the "
                "reward: leave one of them out"
            )

    def check_semantics(self) -> None:
        """Refuse settings that the release named by `semantics` lacks, or defines differently.

        Raises:
            BadValue: there is such a setting.
        """
        for release, change in later_changes(self.semantics).items():
            names = [name for name in change.fields if self.is_set(name)]
            names += ["loss_type"] if self.loss_type in change.losses else []
            for name in names:
                raise BadValue(
                    f"{name}={getattr(self, name)!r}: semantics={self.semantics!r} lacks it, or "
                    f"defines it differently: set semantics='{TRL}{release}' or a later one, or "
                    "leave it out"
                )

    def take_earlier_names(self) -> None:
        """Give fields the values that are set under their earlier names.

        Raises:
            BadValue: the names are given with different values.
        """
        if self.use_transformers_paged:
            self.use_transformers_continuous_batching = True
        cap, name = self.vllm_importance_sampling_cap, "vllm_importance_sampling_clip_max"
        if cap is None:
            return
        if name in self.given_fields and getattr(self, name) != cap:
            raise BadValue(
                f"vllm_importance_sampling_cap={cap!r} is the earlier name of {name}, which is "
                f"{getattr(self, name)!r}: leave one of them out"
            )
        self.vllm_importance_sampling_clip_max = cap

    def check_loss(self) -> None:
        """Refuse a ratio that the loss is not defined for, and settings without effect.

        Raises:
            BadValue: there are such settings.
        """
        row = LOSS_TYPES[self.loss_type]
        if self.importance_sampling_level not in row.levels:
            raise BadValue(
                f"importance_sampling_level={self.importance_sampling_level!r}: loss_type="
                f"{self.loss_type!r} takes {', '.join(map(repr, row.levels))}"
            )
        self.refuse_idle("loss_type", LOSS_TYPES)
        self.refuse_idle("loss_aggregate", AGGREGATES)
        for name in ("sapo_temperature_neg", "sapo_temperature_pos"):
            if not getattr(self, name) > 0:
                raise BadValue(f"{name}={getattr(self, name)}: expected above 0")

    def check_entropy(self) -> None:
        """Check the settings of entropy.

        Raises:
            BadValue: `top_entropy_quantile` is not in (0, 1], a setting has no effect, or
                `entropy_coef_min` is above `entropy_coef_max`.
        """
        if not 0 < self.top_entropy_quantile <= 1:
            raise BadValue(
                f"top_entropy_quantile={self.top_entropy_quantile}: expected above 0, at most 1"
            )
        if self.counts_kept and not self.aggregate.counts_mask:
            raise BadValue(
                f"top_entropy_normalizer={self.top_entropy_normalizer!r}: loss_aggregate="
                f"{self.loss_aggregate!r} divides by no tokens that could be fewer: leave it out"
            )
        idle = [] if self.use_adaptive_entropy else [n for n in self.STEERING if self.is_set(n)]
        if idle:
            raise BadValue(
                f"{idle[0]}={getattr(self, idle[0])!r} steers nothing: set "
                "use_adaptive_entropy=True, or leave it out"
            )
        if self.entropy_coef_min > self.entropy_coef_max:
            raise BadValue(
                f"entropy_coef_min={self.entropy_coef_min} is above "
                f"entropy_coef_max={self.entropy_coef_max}"
            )

    def check_correction(self) -> None:
        """Refuse limits that leave no weight, and modes that lack limits or do not fit the loss.

        Raises:
            BadValue: there are such settings.
        """
        low, high = self.vllm_importance_sampling_clip_min, self.vllm_importance_sampling_clip_max
        if low is not None and high is not None and low >= high:
            raise BadValue(
                f"vllm_importance_sampling_clip_min={low} is not below "
                f"vllm_importance_sampling_clip_max={high}"
            )
        self.check_mode(is_bounded=low is not None or high is not None)

    def check_mode(self, *, is_bounded: bool) -> None:
        """Refuse a mode of the correction that lacks limits or does not fit the loss.

        Raises:
            BadValue: the mode is refused.
        """
        mode = MODES[self.vllm_importance_sampling_mode]
        if self.vllm_importance_sampling_correction and mode.needs_limits and not is_bounded:
            raise BadValue(
                f"vllm_importance_sampling_mode={self.vllm_importance_sampling_mode!r} without "
                "limits: set vllm_importance_sampling_clip_max or vllm_importance_sampling_clip_min"
            )
        if (
            self.corrects_sampling
            and LOSS_TYPES[self.loss_type].multiplies_engine_ratios
            and not mode.by_token
        ):
            tokens = ", ".join(repr(name) for name, row in MODES.items() if row.by_token)
            raise BadValue(
                f"vllm_importance_sampling_mode={self.vllm_importance_sampling_mode!r}: loss_type="
                f"{self.loss_type!r} multiplies the ratios of tokens itself, expected {tokens}"
            )
