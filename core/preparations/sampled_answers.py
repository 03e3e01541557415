"""Settings of preparations that sample answers of a model to the prompts of a data set."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.evaluation import EvaluationConfig
from core.option import option
from eval.errors import BadValue


@dataclass
class AnswersConfig(EvaluationConfig):
    """Settings of which prompts are answered, how often, and how answers are sampled."""

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {}
    ACTS: ClassVar[frozenset[str]] = EvaluationConfig.ACTS | {
        "num_prompts",
        "num_generations",
        "temperature",
        "top_p",
        "max_completion_length",
        "step_separator",
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        "num_prompts": 1,
        "num_generations": 1,
        "max_completion_length": 1,
    }

    num_prompts: int | None = option(None, "Prompts, spread over the data; all if unset.")
    num_generations: int = option(4, "Completions sampled of each prompt.")
    temperature: float = option(1.0, "Temperature of sampling.")
    top_p: float = option(1.0, "Nucleus of sampling.")
    max_completion_length: int = option(256, "Most tokens of a completion.")
    step_separator: str | None = option(
        None, "Text that ends each step of an answer, for a scorer of steps; a line break if unset."
    )
    answer_mode: str = option("cot", "Mode of answering; in `tir` the programs of an answer run.")

    def check_fields(self) -> None:
        """Check the fields as of every run without training, and the options of sampling.

        Raises:
            BadValue: all completions of a prompt would be equal, or `top_p` is out of range.
        """
        super().check_fields()
        if self.temperature <= 0 or not 0 < self.top_p <= 1:
            raise BadValue(
                f"temperature={self.temperature}, top_p={self.top_p}: expected a temperature "
                "above 0 and a top_p in (0, 1], or all completions of a prompt are the same"
            )
