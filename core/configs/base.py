"""Settings that all trainers share: TRL's common defaults, and refusal of unsupported fields."""

import os
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, fields
from functools import cache
from inspect import signature
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast, get_args

from transformers.training_args import TrainingArguments

from core.configs.former_fields import FORMER_FIELDS
from core.configs.number_texts import convert_numbers, number_of
from core.configs.processes import asks_for_shards, join_on_cpu
from core.configs.ranges import NUMBER, SHARED_RANGES, Range, at_least
from core.option import option
from core.paper.overrides import field_types
from eval.errors import BadValue, UnknownName

if TYPE_CHECKING:  # it imports torch
    from transformers.trainer_pt_utils import AcceleratorConfig

SELECTIVE = "selective"  # key of TRL's in gradient_checkpointing_kwargs
PACKAGES = {"azure_ml": "azureml", "comet_ml": "comet", "flyte": "flytekit"}  # else of one name


class Parametrised(Protocol):
    """Protocol of a table row with the settings that have an effect with it."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the settings."""
        ...


class UnknownArgument(UnknownName, TypeError):
    """A keyword argument that is no field; a TypeError, as for any unknown keyword of Python."""


@dataclass
class BaseConfig(TrainingArguments):
    """`TrainingArguments` with TRL's defaults; unsupported fields are refused, never ignored.

    A field that is set later has the same effect as in the constructor, once `settle` is called.
    `ALIASES` are other values for one of the `CHOICES`.

    Raises:
        UnknownArgument: there is no such field.
        BadValue: a field of `UNSUPPORTED` is not at its default, a value is not among its
            `CHOICES`, or it is out of its range in `AT_LEAST` or `SHARED_RANGES`.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {}
    REMOVED: ClassVar[Mapping[str, str]] = {}  # fields of earlier releases of TRL, and what to do
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {}
    ALIASES: ClassVar[Mapping[str, Mapping[object, object]]] = {}
    AT_LEAST: ClassVar[Mapping[str, float]] = {}
    # By the value of `semantics`, where there is such a field: the defaults that are other ones.
    SEMANTICS: ClassVar[Mapping[str, Mapping[str, object]]] = {}
    PAPERS_HAVE: ClassVar[Mapping[str, object]] = {}  # of fields that scripts have otherwise

    logging_steps: float = option(10, "Optimizer steps between two logs; below 1, a share of all.")
    gradient_checkpointing: bool | None = option(True, "Recompute activations going backward.")
    # TRL's third value, unset; TrainingArguments knows two.
    bf16: bool | None = option(None, "bfloat16 autocast; unset means on unless fp16 is on.")
    model_init_kwargs: dict[str, Any] | str | None = option(
        None, "Keywords of `from_pretrained` when the model is given by name."
    )
    trust_remote_code: bool = option(False, "Allow models and tokenizers that ship Python code.")

    def __new__(cls, *args: object, **keywords: object):
        """Record which fields are given, also those at their defaults."""
        names = [field.name for field in fields(cls) if field.init]
        for name in [name for name in keywords if name not in names]:
            cls.refuse_unknown(name, keywords[name])
        config = super().__new__(cls)
        config.__dict__["_given_fields"] = {*names[: len(args)], *keywords}
        return config

    @classmethod
    def refuse_unknown(cls, name: str, value: object) -> None:
        """Refuse a keyword that is no field, unless a subclass's own constructor may take it.

        Raises:
            BadValue: the field is one of earlier releases.
            UnknownArgument: there was never such a field.
        """
        parameters = signature(cls.__init__).parameters
        if name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return
        removed = {**FORMER_FIELDS, **cls.REMOVED}
        if name in removed:
            raise BadValue(f"{cls.__name__}.{name}={value!r} is not supported: {removed[name]}")
        raise UnknownArgument(f"{cls.__name__} field", name, cls.settable())

    def __post_init__(self):
        convert_numbers(self)
        self._given = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        self.take_defaults()
        self.resolve()
        self._resolved = {name: copy(getattr(self, name)) for name in self._given}
        self._set_since: set[str] = set()

    def __setattr__(self, name: str, value: object):
        super().__setattr__(name, value)
        if (names := self.__dict__.get("_set_since")) is not None:
            names.add(name)

    def settle(self) -> None:
        """Check all fields again and derive those that follow from them, if one was set since.

        The trainer calls this when it takes its settings.
        """
        changed = {
            name: getattr(self, name)
            for name, resolved in self._resolved.items()
            if name in self._set_since or getattr(self, name) != resolved
        }
        if changed:
            fresh = copy(self)  # if it is refused, this one stays as it is
            for attribute in ("_set_since", "_setup_devices"):  # the second is transformers' device
                fresh.__dict__.pop(attribute, None)
            fresh.__dict__.update(
                self._given | changed, _given_fields=self.given_fields | changed.keys()
            )
            BaseConfig.__post_init__(fresh)  # a subclass's own has had its effect
            self.__dict__.update(fresh.__dict__)
        self.check_reporting()

    def refuse_late(self) -> None:
        """Refuse a field of ours that was set after a trainer took these settings.

        Raises:
            BadValue: there is such a field.
        """
        theirs = {f.name for f in fields(TrainingArguments)}
        for key in sorted(self._set_since & self._resolved.keys() - theirs):
            if getattr(self, key) != self._resolved[key]:
                raise BadValue(
                    f"{type(self).__name__}.{key} was set to {getattr(self, key)!r} after the "
                    "trainer took its settings: set it before the trainer is built"
                )

    def take_defaults(self) -> None:
        """Set the fields that were not given to the defaults of these `semantics`."""
        for key, value in self.other_defaults.items():
            if key not in self.given_fields and getattr(self, key) == getattr(self.declaring, key):
                setattr(self, key, value)

    def resolve(self) -> None:
        """Fill the fields that follow from others, then check all of them.

        Raises:
            BadValue: see `check_fields`.
        """
        for key in self.ALIASES:
            setattr(self, key, self.without_alias(key, getattr(self, key)))
        unset = self.bf16 is None
        self.bf16 = not self.fp16 if unset else self.bf16  # pyright: ignore[reportIncompatibleVariableOverride]
        # transformers from 5.23 on warns about the name that TRL's users set; both stay equal.
        for suffix in ("", "_kwargs"):
            newer = f"activation_checkpointing{suffix}"
            if getattr(self, newer, True) is None:  # before 5.23 there is no such field
                setattr(self, newer, getattr(self, f"gradient_checkpointing{suffix}"))
        if self.use_cpu and asks_for_shards() and "LOCAL_RANK" in os.environ:
            join_on_cpu()
            chosen: Any = self.accelerator_config or {}  # a mapping or a file of one
            self.accelerator_config = {**chosen, "use_configured_state": True}
        self.check_supported()
        self.check_ranges()  # transformers computes with the numbers
        super().__post_init__()
        self.check_fields()
        self.check_checkpoints()

    @property
    def data_loading(self) -> "AcceleratorConfig":
        """Settings of how accelerate loads data, which `accelerator_config` was parsed to."""
        return cast("AcceleratorConfig", self.accelerator_config)

    @classmethod
    def settable(cls) -> frozenset[str]:
        """Return the names of the fields that act, without those of `UNSUPPORTED`."""
        return frozenset(field.name for field in fields(cls) if field.init) - cls.UNSUPPORTED.keys()

    @classmethod
    def without_alias(cls, name: str, value: object) -> object:
        """Return the choice that a value is an alias of, or the value itself."""
        spelling = value.lower() if isinstance(value, str) else value
        aliases = cls.ALIASES.get(name, {})
        return next((choice for alias, choice in aliases.items() if alias == spelling), value)

    def check_fields(self) -> None:
        """Refuse the first field that has an unknown value, or values that do not go together.

        Raises:
            BadValue: there is such a field.
        """
        name = type(self).__name__
        for key, allowed in self.CHOICES.items():
            if getattr(self, key) not in allowed:
                choices = ", ".join(repr(choice) for choice in allowed)
                raise BadValue(f"{name}.{key}={getattr(self, key)!r}: expected one of {choices}")
        self.check_services()
        if self.max_steps == 0:
            raise BadValue(
                f"{name}.max_steps=0 would train one step: expected at least 1, or -1 to train for "
                "num_train_epochs"
            )

    def check_services(self) -> None:
        """Refuse to report to an unknown service.

        Raises:
            BadValue: `report_to` names one.
        """
        if not self.report_to:
            return
        from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

        for key in set(self.report_to) - INTEGRATION_TO_CALLBACK.keys():
            services = ", ".join(sorted(INTEGRATION_TO_CALLBACK))
            raise BadValue(
                f"{type(self).__name__}.report_to={key!r}: expected one of none, all, {services}"
            )

    def check_supported(self) -> None:
        """Refuse a field of `UNSUPPORTED` that is not at its default.

        Raises:
            BadValue: there is such a field.
        """
        # a user's subclass may have other defaults
        defaults = {f.name: f.default for f in fields(self.declaring)}
        name = type(self).__name__
        for key, why in self.UNSUPPORTED.items():
            if getattr(self, key) != defaults[key]:
                raise BadValue(
                    f"{name}.{key}={getattr(self, key)!r} is not supported: {why}; "
                    f"leave it at its default, {defaults[key]!r}"
                )

    @property
    def checkpoint_keywords(self) -> Mapping[str, object]:
        """Keywords of activation checkpointing; empty if none are given."""
        keywords = self.gradient_checkpointing_kwargs  # parsed from its string, if it was one
        return keywords if isinstance(keywords, Mapping) else {}

    def check_checkpoints(self) -> None:
        """Refuse checkpoints that keep attention where they would not.

        Raises:
            BadValue: activations are not recomputed, or by reentrant checkpoints.
        """
        if not self.checkpoint_keywords.get(SELECTIVE):
            return
        name = f"gradient_checkpointing_kwargs={{{SELECTIVE!r}: True}}"
        if not self.gradient_checkpointing:
            raise BadValue(f"{name} requires `gradient_checkpointing=True`")
        if self.checkpoint_keywords.get("use_reentrant"):
            raise BadValue(f"{name} requires non-reentrant checkpoints: leave use_reentrant out")

    def check_ranges(self) -> None:
        """Refuse a number that is out of range; None is allowed if the type of the field has it.

        Raises:
            BadValue: there is such a field.
        """
        ranges = self.ranges()
        for key, hint in field_types(self.declaring).items():
            value, allowed = getattr(self, key), ranges.get(key, NUMBER)
            unset = value is None and (key not in ranges or NoneType in get_args(hint))
            if unset or not isinstance(value, int | float | None):
                continue
            if value is None or not allowed.contains(value):
                raise BadValue(
                    f"{type(self).__name__}.{key}={value!r}: expected {allowed.expected}"
                )

    @classmethod
    @cache
    def ranges(cls) -> Mapping[str, Range]:
        """Return the ranges of numeric fields by name; NaN is in none of them."""
        return SHARED_RANGES | {key: at_least(bound) for key, bound in cls.AT_LEAST.items()}

    @property
    def given_fields(self) -> set[str]:
        """Names of the fields that were given, or set later, also those at their defaults."""
        return self.__dict__["_given_fields"]

    @property
    def declaring(self) -> "type[BaseConfig]":
        """The class here that declares the fields; a user's subclass may change defaults."""
        return next(cls for cls in type(self).__mro__ if "UNSUPPORTED" in vars(cls))

    @property
    def other_defaults(self) -> Mapping[str, object]:
        """Defaults of these `semantics` that differ from those of the class."""
        return self.SEMANTICS.get(getattr(self, "semantics", ""), {})

    def is_set(self, name: str) -> bool:
        """Return whether a field has another value than its default."""
        default = self.other_defaults.get(name, defaults(type(self))[name])
        return getattr(self, name) != default

    def refuse_idle(self, choice: str, table: Mapping[str, Parametrised]) -> None:
        """Refuse a parameter of other rows of a table that the chosen row does not read.

        Raises:
            BadValue: such a parameter is not at its default.
        """
        chosen = getattr(self, choice)
        parameters = dict.fromkeys(name for row in table.values() for name in row.parameters)
        for name in parameters:
            if name not in table[chosen].parameters and self.is_set(name):
                takers = " or ".join(repr(k) for k, row in table.items() if name in row.parameters)
                raise BadValue(
                    f"{name}={getattr(self, name)!r}: {choice}={chosen!r} does not take it, only "
                    f"{takers}: leave it out"
                )

    def check_reporting(self) -> None:
        """Refuse to report to a service whose package is not installed.

        Raises:
            BadValue: a package is missing.
        """
        from transformers.integrations import integration_utils

        for key in self.report_to or ():
            package = PACKAGES.get(key, key)
            if not getattr(integration_utils, f"is_{package}_available")():
                raise BadValue(
                    f"{type(self).__name__}.report_to={key!r}: the package {package} is not "
                    "installed: install it, or leave it out of report_to"
                )


@cache
def defaults(config: type[BaseConfig]) -> Mapping[str, object]:
    """Return the default of every field of a config."""
    return {field.name: field.default for field in fields(config)}


def padding_multiple(value: int | str | None, device_type: str) -> int | None:
    """Resolve `pad_to_multiple_of`: 'auto' pads on Neuron only, and strings become numbers.

    Raises:
        BadValue: a string is neither 'auto' nor a number of at least 1.
    """
    if value == "auto":
        return 128 if device_type == "neuron" else None
    if not isinstance(value, str):
        return value
    place = f"pad_to_multiple_of={value!r}: expected 'auto' or int | None"
    multiple = number_of(value, (int, NoneType), place)
    if multiple is not None and multiple < 1:
        raise BadValue(f"{place}, of at least 1")
    return multiple if multiple is None else int(multiple)
