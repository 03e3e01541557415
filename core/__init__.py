"""Trains what a paper describes; trainers, settings and helpers are loaded when first named."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.configs.a2po import A2POConfig
    from core.configs.grpo import GRPOConfig
    from core.configs.parser import TrlParser
    from core.configs.ppo import PPOConfig
    from core.configs.rloo import RLOOConfig
    from core.configs.script import (
        DatasetMixtureConfig,
        ModelConfig,
        ScriptArguments,
        get_quantization_config,
    )
    from core.configs.sft import SFTConfig
    from core.data.chatml import (
        is_conversational,
        is_conversational_from_value,
        maybe_convert_to_chatml,
    )
    from core.data.mixture import get_dataset
    from core.shards.adapters import get_peft_config
    from core.trainers.a2po import A2POTrainer
    from core.trainers.grpo import GRPOTrainer
    from core.trainers.ppo import PPOTrainer
    from core.trainers.rloo import RLOOTrainer
    from core.trainers.sft import SFTTrainer

__all__ = [
    "A2POConfig",
    "A2POTrainer",
    "DatasetMixtureConfig",
    "GRPOConfig",
    "GRPOTrainer",
    "ModelConfig",
    "PPOConfig",
    "PPOTrainer",
    "RLOOConfig",
    "RLOOTrainer",
    "SFTConfig",
    "SFTTrainer",
    "ScriptArguments",
    "TrlParser",
    "get_dataset",
    "get_peft_config",
    "get_quantization_config",
    "is_conversational",
    "is_conversational_from_value",
    "maybe_convert_to_chatml",
]

_HOMES = {
    "A2POConfig": "core.configs.a2po",
    "A2POTrainer": "core.trainers.a2po",
    "DatasetMixtureConfig": "core.configs.script",
    "GRPOConfig": "core.configs.grpo",
    "GRPOTrainer": "core.trainers.grpo",
    "ModelConfig": "core.configs.script",
    "PPOConfig": "core.configs.ppo",
    "PPOTrainer": "core.trainers.ppo",
    "RLOOConfig": "core.configs.rloo",
    "RLOOTrainer": "core.trainers.rloo",
    "SFTConfig": "core.configs.sft",
    "SFTTrainer": "core.trainers.sft",
    "ScriptArguments": "core.configs.script",
    "TrlParser": "core.configs.parser",
    "get_dataset": "core.data.mixture",
    "get_peft_config": "core.shards.adapters",
    "get_quantization_config": "core.configs.script",
    "is_conversational": "core.data.chatml",
    "is_conversational_from_value": "core.data.chatml",
    "maybe_convert_to_chatml": "core.data.chatml",
}
_NO_TRAINER = "GRPO, RLOO, PPO, A2PO and SFT have trainers here"
_CALLBACK = "pass TRL's own as a callback: `from trl import` it"
_CHAT = "set the tokenizer's chat template before the trainer is built: `from trl import` it"
_DATA = "it works on datasets alone: `from trl import` it"
_ABSENT = {  # names of TRL's that nothing here stands for, each with what to do
    **dict.fromkeys(("DPOConfig", "DPOTrainer", "DistillationConfig"), _NO_TRAINER),
    **dict.fromkeys(("DistillationTrainer", "KTOConfig", "KTOTrainer"), _NO_TRAINER),
    **dict.fromkeys(("RewardConfig", "RewardTrainer"), _NO_TRAINER),
    **dict.fromkeys(("BEMACallback", "RichProgressCallback", "WeaveCallback"), _CALLBACK),
    "LogCompletionsCallback": "set log_completions=True in GRPOConfig",
    "SyncRefModelCallback": "set sync_ref_model=True in GRPOConfig",
    "create_reference_model": "GRPOTrainer keeps its own reference where beta is above 0",
    **dict.fromkeys(("add_response_schema", "clone_chat_template"), _CHAT),
    **dict.fromkeys(("get_training_chat_template", "supports_tool_calling"), _CHAT),
    **dict.fromkeys(("apply_chat_template", "maybe_apply_chat_template"), _DATA),
    **dict.fromkeys(("extract_prompt", "maybe_extract_prompt", "pack_dataset"), _DATA),
    **dict.fromkeys(("maybe_unpair_preference_dataset", "unpair_preference_dataset"), _DATA),
    "prepare_multimodal_messages": "images are not supported",
    "init_zero_verbose": "set the levels of the logging module",
}


def __getattr__(name: str) -> Any:  # Any: each name is another thing
    if name in _ABSENT:
        raise ImportError(f"core has no {name} of TRL's: {_ABSENT[name]}", name=name)
    if name not in _HOMES:
        raise AttributeError(f"module 'core' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
