"""Settings of a run that trains nothing: where its models are loaded, and in which precision."""

from dataclasses import dataclass, fields
from typing import ClassVar

from core.configs.base import BaseConfig
from eval.errors import BadValue


@dataclass
class EvaluationConfig(BaseConfig):
    """The fields of a trainer's settings that act without a training; others are refused."""

    ACTS: ClassVar[frozenset[str]] = frozenset({"bf16", "fp16", "use_cpu"})
    # What says of every run where it lies and how it is watched.
    SAID: ClassVar[frozenset[str]] = frozenset(
        {"disable_tqdm", "output_dir", "report_to", "run_name", "save_total_limit", "seed"}
    )

    def check_fields(self) -> None:
        """As of every trainer's settings; then refuse what only a training would use.

        Raises:
            BadValue: such a field is set.
        """
        super().check_fields()
        made = {f.name: f.default_factory() for f in fields(self) if callable(f.default_factory)}
        unset = {f.name: made.get(f.name, f.default) for f in fields(self)}
        for name in self._given.keys() - self.ACTS - self.SAID:
            if self._given[name] != unset[name]:
                raise BadValue(
                    f"{name}={self._given[name]!r}: nothing is trained here, leave it out; what "
                    f"acts is {', '.join(sorted(self.ACTS))}"
                )
