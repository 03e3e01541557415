"""Base of the families that train on their own samples, scored by rewards."""

from collections.abc import Collection, Mapping, Sequence
from math import ceil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, cast

from core.families.family import Cost, Family, Work
from core.paper import Reward
from eval.errors import BadValue

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.configs.rollout import RolloutConfig
    from core.explain.batch_plan import BatchPlan

PROBLEM = ("prompt", "answer")  # the columns of a problem


class OnPolicy(Family, Protocol):
    """Base of a family whose trainer samples; its config is a `RolloutConfig`."""

    columns = PROBLEM
    trained_by = "RL"
    micro_batches = ("steps_per_generation",)
    own_answers = ("kl_to_start", "entropy/share_of_top_fifth", "entropy/overlap_of_top_fifth")
    kept_tokens = ("kept/outside", "kept/entropy", "kept/tempered_entropy")
    sampler_gaps = (
        "sampler_correlation/head_float32",
        "sampler_correlation/head_bfloat16",
        "sampler_difference/head_float32",
        "sampler_difference/head_bfloat16",
        "sampler_difference/unlikely_tokens",
        "sampler_difference/likely_tokens",
        "largest_sampler_difference/long_answers",
        "largest_sampler_difference/short_answers",
    )
    has_regimes = True
    listed_with = "grpo"

    def check(
        self, config: "BaseConfig", rewards: Sequence[Reward], roles: Collection[str]
    ) -> None:
        """Raise if the number of reward weights differs from that of rewards and reward models.

        Raises:
            BadValue: it does, or `selection_reward` names no reward.
        """
        from core.collect.reward_calls import RewardFunction, reward_index, with_unique_names

        c = cast("RolloutConfig", config)
        weights, judge = c.reward_weights, c.selection_reward
        if judge is not None and "reward" not in roles:  # only the trainer knows a model's name
            reward_index(
                judge, with_unique_names([RewardFunction.of(reward) for reward in rewards])
            )
        count = len(rewards) + ("reward" in roles)
        if weights and len(weights) != count:
            raise BadValue(f"reward_weights has {len(weights)} entries for {count} rewards")

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """Describe how prompts become rollouts, and rollouts become updates."""
        return str(self.plan(config, rows, processes, share))

    def plan(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> "BatchPlan":
        """Return the batch plan.

        Raises:
            BadValue: the rows do not fill a rollout, or a rollout does not split evenly.
        """
        from core.explain.batch_plan import batch_plan

        shared: Any = SimpleNamespace(**vars(config))  # Any: a config's fields
        c = cast("RolloutConfig", config)
        names = ("rollout_draws", "completions_per_row", "has_ratio")
        derived = {name: getattr(c, name) for name in names}
        vars(shared).update(share, **derived)
        return batch_plan(shared, rows, processes)

    def cost(self, config: "BaseConfig", rows: int | None = None) -> Cost:
        """Return the number of updates and of completions they need."""
        c = cast("RolloutConfig", config)
        updates = c.max_steps if c.max_steps > 0 else None
        if rows is not None:
            updates = self.plan(c, rows, 1, {}).updates
        completions_per_update = (
            c.per_device_train_batch_size
            * c.completions_per_row
            * c.gradient_accumulation_steps
            * c.world_size
        )
        samples = int(completions_per_update * updates / c.num_iterations) if updates else None
        tokens = (c.max_completion_length or 0) * c.rollout_draws
        compares = ("reference",) if c.keeps_reference else ()
        return Cost(
            updates=updates,
            samples=samples,
            unit="completions",
            sampled_tokens=samples * tokens if samples else None,
            copies=(*Cost.copies, *compares),
        )

    def work(self, config: "BaseConfig", processes: int, share: Mapping[str, int]) -> Work:
        """Return what one process computes at a time."""
        from core.rollout.engine import ROWS

        c = cast("RolloutConfig", config)
        rollout = c.rollout_size // processes
        rows = share.get("per_device_train_batch_size") or c.per_device_train_batch_size
        batch = rows * c.completions_per_row
        return Work(
            micro_batch=batch,
            prompts=min(batch, ceil(rollout / c.num_generations)),
            rows=min(rollout, ROWS),
            completion=c.max_completion_length or 0,
            checkpointing=bool(c.activation_checkpointing),
            reference=c.keeps_reference,
        )

    @property
    def held_out_columns(self) -> tuple[str, ...]:
        """The prompt and the reference answer."""
        return PROBLEM

    def reads(self, rewards: Sequence[Reward], held_out: int) -> tuple[str, ...]:
        """Return the family's columns and those of the rewards.

        The column `answer` is left out if neither held-out problems nor a reward need it.
        """
        from core.collect.reward_calls import RewardFunction

        reward_columns = {name for reward in rewards for name in RewardFunction.of(reward).columns}
        needs_answer = held_out > 0 or "answer" in reward_columns
        columns = [name for name in self.columns if name != "answer" or needs_answer]
        return (*columns, *sorted(reward_columns.difference(columns)))

    def answer_tokens(self, config: "BaseConfig") -> int | None:
        """Return the largest length of a completion, in tokens."""
        return cast("RolloutConfig", config).max_completion_length

    def truncation(self, config: "BaseConfig") -> Mapping[str, float | None]:
        """Return temperature, `top_k`, `top_p` and `min_p` of rollouts."""
        from core.configs.generation_keywords import sampling_settings

        settings = sampling_settings(cast("RolloutConfig", config))
        return {name: settings[name] for name in ("temperature", "top_k", "top_p", "min_p")}

    def sampler_bits(self, config: "BaseConfig") -> int | None:
        """Return the bits of the weights in rollouts; None if they are not quantised."""
        return cast("RolloutConfig", config).rollout_bits
