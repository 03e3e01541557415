"""Families that learn from their own samples: completions of prompts, paid for by rewards."""

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

PROBLEM = ("prompt", "answer")  # the columns of what is asked and judged


class OnPolicy(Family, Protocol):
    """What such a training reads, and what it makes of it; its config is a `RolloutConfig`."""

    columns = PROBLEM
    trained_by = "RL"
    micro_batches = ("steps_per_generation",)
    own_answers = ("kl_to_start", "entropy/share_of_top_fifth", "entropy/overlap_of_top_fifth")
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
        """Refuse another number of weights than of rewards, of which a model may be the last.

        Raises:
            BadValue: with both numbers; or `selection_reward` names none of them.
        """
        from core.collect.reward_calls import RewardFunction, named_apart, place_of

        c = cast("RolloutConfig", config)
        weights, judge = c.reward_weights, c.selection_reward
        if judge is not None and "reward" not in roles:  # of which the trainer knows the name
            place_of(judge, named_apart([RewardFunction.of(reward) for reward in rewards]))
        count = len(rewards) + ("reward" in roles)
        if weights and len(weights) != count:
            raise BadValue(f"reward_weights has {len(weights)} entries for {count} rewards")

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """Say how prompts become rollouts, and rollouts updates."""
        return str(self.plan(config, rows, processes, share))

    def plan(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> "BatchPlan":
        """The batch plan behind it, in numbers."""
        from core.explain.batch_plan import batch_plan

        shared: Any = SimpleNamespace(**vars(config))  # Any: a config's fields
        vars(shared).update(share)
        return batch_plan(shared, rows, processes)

    def cost(self, config: "BaseConfig", rows: int | None = None) -> Cost:
        """Work out the completions of all updates."""
        c = cast("RolloutConfig", config)
        updates = c.max_steps if c.max_steps > 0 else None
        if rows is not None:
            updates = self.plan(c, rows, 1, {}).updates
        each = c.per_device_train_batch_size * c.gradient_accumulation_steps * c.world_size
        samples = int(each * updates / c.num_iterations) if updates else None
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
        """Work out what one of the processes computes at a time."""
        from core.rollout.native.room import ROWS

        c = cast("RolloutConfig", config)
        rollout = c.rollout_size // processes
        batch = share.get("per_device_train_batch_size") or c.per_device_train_batch_size
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
        """A prompt, and what its answers are judged by."""
        return PROBLEM

    def reads(self, rewards: Sequence[Reward], held_out: int) -> tuple[str, ...]:
        """Its columns, less an answer that nothing judges by, and those that rewards must have."""
        from core.collect.reward_calls import RewardFunction

        asked = {name for reward in rewards for name in RewardFunction.of(reward).columns}
        judged = held_out > 0 or "answer" in asked
        own = [name for name in self.columns if name != "answer" or judged]
        return (*own, *sorted(asked.difference(own)))

    def answer_tokens(self, config: "BaseConfig") -> int | None:
        """The longest completion."""
        return cast("RolloutConfig", config).max_completion_length

    def sampler_bits(self, config: "BaseConfig") -> int | None:
        """Those of its rollouts."""
        return cast("RolloutConfig", config).rollout_bits
