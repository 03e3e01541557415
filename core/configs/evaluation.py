"""Settings of a run without training: device and precision of its models."""

from dataclasses import dataclass, fields
from typing import ClassVar

from core.configs.base import BaseConfig
from eval.errors import BadValue


@dataclass
class EvaluationConfig(BaseConfig):
    """Settings of a trainer that have an effect without training; others are refused."""

    ACTS: ClassVar[frozenset[str]] = frozenset({"bf16", "fp16", "use_cpu"})
    # Fields of every run's output and logging.
    SAID: ClassVar[frozenset[str]] = frozenset(
        {"disable_tqdm", "output_dir", "report_to", "run_name", "save_total_limit", "seed"}
    )

    @classmethod
    def settable(cls) -> frozenset[str]:
        """Return the names of `ACTS` and `SAID`."""
        return cls.ACTS | cls.SAID

    def check_fields(self) -> None:
        """Check the fields as of every trainer, and refuse those that only a training uses.

        Raises:
            BadValue: such a field is set.
        """
        super().check_fields()
        from_factories = {
            f.name: f.default_factory() for f in fields(self) if callable(f.default_factory)
        }
        unset = {f.name: from_factories.get(f.name, f.default) for f in fields(self)}
        for name in self._given.keys() - self.ACTS - self.SAID:
            if self._given[name] != unset[name]:
                raise BadValue(
                    f"{name}={self._given[name]!r}: nothing is trained here, leave it out; what "
                    f"acts is {', '.join(sorted(self.ACTS))}"
                )
