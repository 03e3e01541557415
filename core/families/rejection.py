"""Rejection sampling: rows with a model's answers that the rewards accept, for fine-tuning."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from core.families.evaluation import Untrained
from core.families.family import Cost, Making, Row
from core.families.profiles import CPU, GPU
from core.paper import Reward
from eval.errors import BadValue

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.preparations.rejection import RejectionConfig
    from core.preparations.sampled_answers import AnswersConfig


class RejectionSampling(Untrained):
    """Family of preparations that sample answers and keep the accepted ones.

    The rating of an answer by the model in the role `scorer` is one of its rewards.
    """

    name = "rejection-sampling"
    columns = ("prompt", "answer")
    gives = ("completion",)
    trained_by = "rejection sampling"
    roles = ("scorer",)
    unused = tuple(name for name in Untrained.unused if name not in ("data", "rewards"))
    profiles: Mapping[str, Mapping[str, object]] = {
        "cpu": {**CPU, "data": "pocket", "num_prompts": 256, "max_completion_length": 96},
        "gpu": {**GPU, "num_prompts": 4096},
        "paper": {},
    }

    def config_class(self) -> "type[AnswersConfig]":
        """Import the config class."""
        from core.preparations.rejection import RejectionConfig

        return RejectionConfig

    def check(
        self, config: "BaseConfig", rewards: Sequence[Reward], roles: Collection[str]
    ) -> None:
        """Raise if the end of steps is set and no scorer reads them.

        Raises:
            BadValue: there is none.
        """
        del rewards
        separator = cast("AnswersConfig", config).step_separator
        if separator is not None and not roles:
            raise BadValue(
                f"step_separator={separator!r} is for a scorer of steps, and no model has the role "
                "`scorer`: give one in roles, or leave it out"
            )

    def rows(self, making: Making) -> list[Row]:
        """Sample answers to the prompts; return rows with those that the rewards accept.

        Raises:
            BadValue: no answer is accepted, and what `accepted_rows` refuses.
        """
        from core.collect.rejection import accepted_rows

        config = cast("RejectionConfig", making.config)
        return accepted_rows(making.sampler, config, making.rewards, making.rows, making.answerer)

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """Describe how many answers are sampled."""
        del processes, share
        c = cast("RejectionConfig", config)
        prompts = min(rows, c.num_prompts or rows)
        return (
            f"Sampling\n  {prompts:,} prompts x {c.num_generations} answers, of which those "
            f"with a reward of at least {c.least_reward:g} are kept"
        )

    def cost(self, config: "BaseConfig", rows: int | None = None) -> Cost:
        """Return the number of answers to all prompts."""
        c = cast("RejectionConfig", config)
        prompts = c.num_prompts if rows is None else min(rows, c.num_prompts or rows)
        samples = prompts and prompts * c.num_generations
        tokens = samples and samples * c.max_completion_length
        return Cost(
            updates=0,
            samples=samples,
            unit="completions",
            sampled_tokens=tokens,
            copies=("weights",),
        )
