"""Base of the stages of quantities that are computed of a policy after its training."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.stages.answering import Answering
from core.stages.data import Data
from core.stages.stage import Stage


@dataclass(frozen=True, kw_only=True)
class QuantityStage(Stage):
    """A stage of named quantities over `rows` held-out rows; it leaves no files."""

    answering: Answering
    data: Data
    rows: int
    quantities: tuple[str, ...]

    @property
    def inputs(self) -> Mapping[str, object]:
        """The policy, the rows, the quantities and how they are computed."""
        return {
            "policy": self.answering.policy.key,
            "data": self.data.key,
            "rows": self.rows,
            "quantities": self.quantities,
            "dtype": self.answering.loading.dtype,
            "threads": self.answering.threads,
        }

    @property
    def subject(self) -> str:
        """The names of the quantities."""
        return ", ".join(self.quantities)
