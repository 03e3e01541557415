"""Family of papers that train nothing; their models are scored as they are."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from core.families.family import Cost, Family, Training
from core.families.profiles import CPU, GPU
from eval.errors import BadValue

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.configs.evaluation import EvaluationConfig


class Untrained(Family):
    """Family of papers about benchmarks, votes and graders."""

    name = "evaluation"
    columns = ()
    trained_by = "nothing"
    unused = (
        *("data", "rewards", "rate_factors", "heldout_every", "heldout_problems"),
        *("heldout_benchmarks", "heldout_limit", "heldout_mode"),
        *("heldout_temperature", "heldout_target", "heldout_kl", "heldout_nll"),
        *("launch", "processes", "trainer", *Family.unused),
        *("use_peft", "lora_r", "lora_alpha", "lora_dropout", "lora_target_modules"),
        *("lora_target_parameters", "lora_modules_to_save", "use_rslora", "use_dora"),
    )
    profiles: Mapping[str, Mapping[str, object]] = {"cpu": CPU, "gpu": GPU, "paper": {}}

    def config_class(self) -> "type[EvaluationConfig]":
        """Import the config class."""
        from core.configs.evaluation import EvaluationConfig

        return EvaluationConfig

    def trainer(self, training: Training) -> NoReturn:
        """Raise, as nothing is trained.

        Raises:
            BadValue: always.
        """
        raise BadValue(f"{training.model}: papers of the family {self.name} train nothing")

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """State that nothing is trained."""
        del config, rows, processes, share
        return "Nothing is trained: the model is scored as it is."

    def cost(self, config: "BaseConfig", rows: int | None = None) -> Cost:
        """Return a cost without updates or samples, and with the weights in memory."""
        del config, rows
        return Cost(updates=0, samples=0, unit="samples", copies=("weights",))

    def work(self, config: "BaseConfig", processes: int, share: Mapping[str, int]) -> None:
        """Return None, as nothing is trained."""
        del config, processes, share
