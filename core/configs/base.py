"""What all trainer settings share: TRL's common defaults, and the refusal of fields we lack."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from transformers import TrainingArguments
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

from core.configs.processes import asks_for_shards, join_on_cpu
from eval.errors import BadValue


def option(default: Any, doc: str) -> Any:  # Any: the declared type of a field is its annotation
    """Declare a dataclass field with its one-sentence help."""
    return field(default=default, metadata={"help": doc})


@dataclass
class BaseConfig(TrainingArguments):
    """`TrainingArguments` with TRL's defaults; unsupported fields are refused, never ignored.

    Raises:
        BadValue: a field of `UNSUPPORTED` is not at its default, a value is not among its
            `CHOICES`, or it is below its bound in `AT_LEAST`.

    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {}
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {}
    AT_LEAST: ClassVar[Mapping[str, float]] = {}

    logging_steps: float = option(10, "Optimizer steps between two logs; below 1, a share of all.")
    gradient_checkpointing: bool | None = option(True, "Recompute activations going backward.")
    # TRL's third value, unset; TrainingArguments knows two.
    bf16: bool | None = option(None, "bfloat16 autocast; unset means on unless fp16 is on.")
    model_init_kwargs: dict[str, Any] | str | None = option(
        None, "Keywords of `from_pretrained` when the model is given by name."
    )
    trust_remote_code: bool = option(False, "Allow models and tokenizers that ship Python code.")

    def __post_init__(self):
        unset = self.bf16 is None
        self.bf16 = not self.fp16 if unset else self.bf16  # pyright: ignore[reportIncompatibleVariableOverride]
        # transformers 5.23 warns about the name that TRL's users set; both names stay equal.
        if self.activation_checkpointing is None:
            self.activation_checkpointing = self.gradient_checkpointing
        if self.activation_checkpointing_kwargs is None:
            self.activation_checkpointing_kwargs = self.gradient_checkpointing_kwargs
        if self.use_cpu and asks_for_shards() and "LOCAL_RANK" in os.environ:
            join_on_cpu()
            chosen: Any = self.accelerator_config or {}  # Any: a mapping or a file of one
            self.accelerator_config = {**chosen, "use_configured_state": True}
        super().__post_init__()
        self.check_fields()

    def check_fields(self) -> None:
        """Stop at the first field that is unsupported, unknown in value or out of range."""
        defaults = {f.name: f.default for f in fields(self)}
        name = type(self).__name__
        for key, why in self.UNSUPPORTED.items():
            if getattr(self, key) != defaults[key]:
                raise BadValue(
                    f"{name}.{key}={getattr(self, key)!r} is not supported: {why}; "
                    f"leave it at its default, {defaults[key]!r}"
                )
        for key, allowed in self.CHOICES.items():
            if getattr(self, key) not in allowed:
                known = ", ".join(repr(choice) for choice in allowed)
                raise BadValue(f"{name}.{key}={getattr(self, key)!r}: expected one of {known}")
        for key, bound in self.AT_LEAST.items():
            value = getattr(self, key)
            if value is not None and not value >= bound:
                raise BadValue(f"{name}.{key}={value!r}: expected at least {bound}")
        for key in set(self.report_to or ()) - INTEGRATION_TO_CALLBACK.keys():
            known = ", ".join(sorted(INTEGRATION_TO_CALLBACK))
            raise BadValue(f"{name}.report_to={key!r}: expected one of none, all, {known}")


def padding_multiple(value: int | str | None, device_type: str) -> int | None:
    """Resolve `pad_to_multiple_of`: 'auto' pads on Neuron only; the shell passes strings."""
    if value == "auto":
        return 128 if device_type == "neuron" else None
    if isinstance(value, str):
        return None if value.lower() in ("none", "null") else int(value)
    return value
