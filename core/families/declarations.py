"""Configs without torch, for commands that train nothing: declarations and previews."""

import ast
import os
import sys
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

from core.families.table import ROWS

LIBRARY = "transformers"
HEAVY = ("torch", "accelerate", "peft")
OURS = ("core.losses", "core.shapes")  # with tables that configs declare choices by
OPTIMIZER = "adamw_torch_fused"  # the default of TrainingArguments with torch 2.8 or later
# Fields of TrainingArguments whose checks and effects on others take neither torch nor accelerate.
PLAIN = frozenset(
    {
        *("adam_beta1", "adam_beta2", "adam_epsilon", "optim", "optim_args", "weight_decay"),
        *("learning_rate", "lr_scheduler_kwargs", "lr_scheduler_type", "warmup_steps"),
        *("max_grad_norm", "max_steps", "num_train_epochs", "label_smoothing_factor"),
        *("per_device_train_batch_size", "gradient_accumulation_steps"),
        *("bf16", "fp16", "use_cpu", "activation_checkpointing", "gradient_checkpointing"),
        *("logging_steps", "logging_strategy", "save_steps", "save_strategy", "save_total_limit"),
        *("data_seed", "seed", "dataloader_num_workers", "remove_unused_columns"),
    }
)
# Beginnings of environment variables by which launchers and platforms change a config.
LAUNCHERS = ("ACCELERATE_", "KUBEFLOW_", "LOCAL_RANK", "MV2_", "OMPI_", "PMI_", "SM_", "WORLD_SIZE")

Modules: TypeAlias = dict[str, ModuleType | None]  # None for one that is not found


def declare_configs(field_names: Collection[str] = ()) -> bool:
    """Import the config class of every family without torch, and return whether this was done.

    The classes have the names, types and defaults of all fields. Their objects are those that
    `Resolved.preview` builds: of a training in one process on the CPU. No other config can be
    constructed in this process afterwards.

    Nothing is done if torch or transformers is imported already, if a launcher started this
    process, or if the effect of a field needs torch.

    Args:
        field_names: Names of the fields that configs will be constructed with.
    """
    if LIBRARY in sys.modules or "torch" in sys.modules:
        return False
    if any(name.startswith(LAUNCHERS) for name in os.environ):
        return False
    modules = modules_without_torch()
    with in_place(modules):
        arguments: Any = import_module(f"{LIBRARY}.training_args").TrainingArguments
        if not arguments.__dataclass_fields__.keys() & set(field_names) <= PLAIN:
            return False
        sys.modules["torch"] = placeholder_torch()
        arguments.__dataclass_fields__["optim"].default = OPTIMIZER
        arguments.__post_init__ = preview_only(arguments.__post_init__, modules)
        arguments.device, arguments.world_size = SimpleNamespace(type="cpu"), 1
        for family in ROWS:
            family.config_class()
    return True


def preview_only(complete: Callable[[Any], None], modules: Modules) -> Callable[[Any], None]:
    """Return the `__post_init__` of a config that is built for inspection.

    Args:
        complete: The method of transformers, which does not look for a device without torch.
        modules: The modules of transformers that the method belongs to.
    """
    accelerator_config = accelerator_config_class()

    def settle(config: Any) -> None:  # Any: TrainingArguments
        if not config.use_cpu:
            raise RuntimeError(
                f"{type(config).__name__}: only its declaration is loaded, without torch"
            )
        with in_place(modules):
            complete(config)
        config.accelerator_config = accelerator_config()  # which it leaves unset without accelerate

    return settle


def accelerator_config_class() -> Callable[[], object]:
    """Return the dataclass of the field `accelerator_config`, whose module imports torch."""
    module = find_spec(f"{LIBRARY}.trainer_pt_utils")
    source = Path(str(module and module.origin)).read_text(encoding="utf-8")
    [declaration] = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == "AcceleratorConfig"
    ]
    names: dict[str, Any] = {"dataclass": dataclass, "field": field, "__name__": LIBRARY}
    exec(compile(ast.Module([declaration], type_ignores=[]), str(module), "exec"), names)
    return names[declaration.name]


def modules_without_torch() -> Modules:
    """Return entries for `sys.modules` with which transformers can be imported without torch.

    `transformers` and `transformers.integrations` are empty modules that find the submodules on
    the disk. torch, accelerate and peft are None, so that importing them fails. `sys.modules` is
    not changed. The `__init__` of transformers, which reads the files of all architectures, is not
    run.
    """
    spec = find_spec(LIBRARY)
    folders = list((spec and spec.submodule_search_locations) or ())
    package, integrations = ModuleType(LIBRARY), ModuleType(f"{LIBRARY}.integrations")
    package.__spec__, package.__path__ = spec, folders
    integrations.__path__ = [str(Path(folder) / "integrations") for folder in folders]
    vars(package)["__version__"] = version(LIBRARY)
    vars(integrations)["is_kubeflow_available"] = lambda: False  # see `LAUNCHERS`
    return {
        LIBRARY: package,
        integrations.__name__: integrations,
        **dict[str, ModuleType | None].fromkeys(HEAVY),
    }


@contextmanager
def in_place(modules: Modules) -> Generator[None]:
    """Let modules stand for those of transformers, torch and our losses.

    What is imported of these meanwhile is added to `modules`. Later imports are complete.
    """
    removed_modules = remove_modules()
    loaded: Modules = sys.modules  # type: ignore[assignment]  # None is allowed
    loaded.update(modules)
    try:
        yield
    finally:
        modules.update(remove_modules())
        loaded.update(removed_modules)


def remove_modules() -> Modules:
    """Remove transformers, what it imports of torch, and our losses; return these modules."""
    packages = tuple(f"{package}." for package in (LIBRARY, *HEAVY, *OURS))
    return {
        name: sys.modules.pop(name) for name in [*sys.modules] if f"{name}.".startswith(packages)
    }


def placeholder_torch() -> ModuleType:
    """Return a module with a class for every name of torch, as annotations need."""
    torch = ModuleType("torch")
    vars(torch).update(__getattr__=lambda name: type(name, (), {}), no_grad=unchanged_by)
    return torch


def unchanged_by() -> Callable[[object], object]:
    """Return a decorator that returns its function."""
    return lambda function: function
