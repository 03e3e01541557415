"""Names of TRL that `core` lacks, with error messages that say what to do instead."""

from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

CALLBACK = "pass TRL's own as a callback: `from trl import` it"
CHAT = "set the tokenizer's chat template before the trainer is built: `from trl import` it"
DATA = "it works on datasets alone: `from trl import` it"
ABSENT: Mapping[str, str] = {  # names of TRL's that nothing here stands for, each with what to do
    **dict.fromkeys(("RichProgressCallback", "WeaveCallback"), CALLBACK),
    "LogCompletionsCallback": "set log_completions=True in GRPOConfig",
    "SyncRefModelCallback": "set sync_ref_model=True in GRPOConfig",
    "create_reference_model": "GRPOTrainer keeps its own reference where beta is above 0",
    **dict.fromkeys(("add_response_schema", "clone_chat_template"), CHAT),
    **dict.fromkeys(("get_training_chat_template", "supports_tool_calling"), CHAT),
    **dict.fromkeys(("apply_chat_template", "maybe_apply_chat_template"), DATA),
    **dict.fromkeys(("extract_prompt", "maybe_extract_prompt", "pack_dataset"), DATA),
    **dict.fromkeys(("maybe_unpair_preference_dataset", "unpair_preference_dataset"), DATA),
    "prepare_multimodal_messages": "images are not supported",
    "init_zero_verbose": "set the levels of the logging module",
}


def missing_name(name: str) -> str:
    """Return the error message for a name that `core` does not have."""
    if name in ABSENT:
        return f"core has no {name} of TRL's: {ABSENT[name]}"
    return f"module 'core' has no attribute {name!r}"


class AbsentNames(MetaPathFinder):
    """Last finder of modules, which raises an ImportError with `missing_name` for absent names.

    `from core import X` looks for a submodule `core.X` after `hasattr(core, "X")` was False. An
    AttributeError alone would lose its message there, and in CPython no exception class can extend
    both ImportError and AttributeError.
    """

    def __init__(self, package: str):
        self.package = package

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the interface of finders
        target: ModuleType | None = None,  # noqa: ARG002 - as above
    ) -> None:
        """Return None for every module that is not an absent name.

        Raises:
            ImportError: the module is an absent name of the package.
        """
        parent, _, name = fullname.rpartition(".")
        if parent == self.package and name in ABSENT:
            raise ImportError(missing_name(name), name=name)
