"""Training of language models as papers describe it; names are imported when first used."""

from importlib import import_module
from sys import meta_path
from typing import TYPE_CHECKING, Any

from core.absent_names import AbsentNames, missing_name

if TYPE_CHECKING:
    from core.configs.a2po import A2POConfig
    from core.configs.bco import BCOConfig
    from core.configs.cpo import CPOConfig
    from core.configs.dpo import DPOConfig
    from core.configs.grpo import GRPOConfig
    from core.configs.kto import KTOConfig
    from core.configs.orpo import ORPOConfig
    from core.configs.parser import TrlParser
    from core.configs.ppo import PPOConfig
    from core.configs.prm import PRMConfig
    from core.configs.reward import RewardConfig
    from core.configs.rloo import RLOOConfig
    from core.configs.script import (
        DatasetMixtureConfig,
        ModelConfig,
        ScriptArguments,
        get_quantization_config,
    )
    from core.configs.sft import SFTConfig
    from core.configs.tpo import TPOConfig
    from core.configs.uniform_diffusion import UniformDiffusionConfig
    from core.configs.verifier import VerifierConfig
    from core.data.chatml import (
        is_conversational,
        is_conversational_from_value,
        maybe_convert_to_chatml,
    )
    from core.data.mixture import get_dataset
    from core.diffusion.denoising import UniformDiffusionTrainer
    from core.distillation.distillation import DistillationTrainer
    from core.distillation.distillation_config import DistillationConfig
    from core.distillation.gkd import GKDTrainer
    from core.distillation.gkd_config import GKDConfig
    from core.distillation.gold import GOLDTrainer
    from core.distillation.gold_config import GOLDConfig
    from core.distillation.iw_opd import IWOPDTrainer
    from core.distillation.iw_opd_config import IWOPDConfig
    from core.distillation.minillm import MiniLLMTrainer
    from core.distillation.minillm_config import MiniLLMConfig
    from core.distillation.sdft import SDFTTrainer
    from core.distillation.sdft_config import SDFTConfig
    from core.distillation.sdpo import SDPOTrainer
    from core.distillation.sdpo_config import SDPOConfig
    from core.distillation.ssd import SSDTrainer
    from core.distillation.ssd_config import SSDConfig
    from core.preference.bco import BCOTrainer
    from core.preference.cpo import CPOTrainer
    from core.preference.dpo import DPOTrainer
    from core.preference.kto import KTOTrainer
    from core.preference.nash_md import NashMDTrainer
    from core.preference.online_config import NashMDConfig, OnlineDPOConfig, XPOConfig
    from core.preference.online_dpo import OnlineDPOTrainer
    from core.preference.orpo import ORPOTrainer
    from core.preference.tpo import TPOTrainer
    from core.preference.xpo import XPOTrainer
    from core.scoring.prm import PRMTrainer
    from core.scoring.reward import RewardTrainer
    from core.scoring.verifier import VerifierTrainer
    from core.shards.adapters import get_peft_config
    from core.shards.bema import BEMACallback
    from core.trainers.a2po import A2POTrainer
    from core.trainers.grpo import GRPOTrainer
    from core.trainers.ppo import PPOTrainer
    from core.trainers.rloo import RLOOTrainer
    from core.trainers.sft import SFTTrainer

__all__ = [
    "A2POConfig",
    "A2POTrainer",
    "BCOConfig",
    "BCOTrainer",
    "BEMACallback",
    "CPOConfig",
    "CPOTrainer",
    "DPOConfig",
    "DPOTrainer",
    "DatasetMixtureConfig",
    "DistillationConfig",
    "DistillationTrainer",
    "GKDConfig",
    "GKDTrainer",
    "GOLDConfig",
    "GOLDTrainer",
    "GRPOConfig",
    "GRPOTrainer",
    "IWOPDConfig",
    "IWOPDTrainer",
    "KTOConfig",
    "KTOTrainer",
    "MiniLLMConfig",
    "MiniLLMTrainer",
    "ModelConfig",
    "NashMDConfig",
    "NashMDTrainer",
    "ORPOConfig",
    "ORPOTrainer",
    "OnlineDPOConfig",
    "OnlineDPOTrainer",
    "PPOConfig",
    "PPOTrainer",
    "PRMConfig",
    "PRMTrainer",
    "RLOOConfig",
    "RLOOTrainer",
    "RewardConfig",
    "RewardTrainer",
    "SDFTConfig",
    "SDFTTrainer",
    "SDPOConfig",
    "SDPOTrainer",
    "SFTConfig",
    "SFTTrainer",
    "SSDConfig",
    "SSDTrainer",
    "ScriptArguments",
    "TPOConfig",
    "TPOTrainer",
    "TrlParser",
    "UniformDiffusionConfig",
    "UniformDiffusionTrainer",
    "VerifierConfig",
    "VerifierTrainer",
    "XPOConfig",
    "XPOTrainer",
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
    "BCOConfig": "core.configs.bco",
    "BCOTrainer": "core.preference.bco",
    "BEMACallback": "core.shards.bema",
    "CPOConfig": "core.configs.cpo",
    "CPOTrainer": "core.preference.cpo",
    "DPOConfig": "core.configs.dpo",
    "DPOTrainer": "core.preference.dpo",
    "DatasetMixtureConfig": "core.configs.script",
    "DistillationConfig": "core.distillation.distillation_config",
    "DistillationTrainer": "core.distillation.distillation",
    "GKDConfig": "core.distillation.gkd_config",
    "GKDTrainer": "core.distillation.gkd",
    "GOLDConfig": "core.distillation.gold_config",
    "GOLDTrainer": "core.distillation.gold",
    "GRPOConfig": "core.configs.grpo",
    "GRPOTrainer": "core.trainers.grpo",
    "IWOPDConfig": "core.distillation.iw_opd_config",
    "IWOPDTrainer": "core.distillation.iw_opd",
    "KTOConfig": "core.configs.kto",
    "KTOTrainer": "core.preference.kto",
    "MiniLLMConfig": "core.distillation.minillm_config",
    "MiniLLMTrainer": "core.distillation.minillm",
    "ModelConfig": "core.configs.script",
    "NashMDConfig": "core.preference.online_config",
    "NashMDTrainer": "core.preference.nash_md",
    "ORPOConfig": "core.configs.orpo",
    "ORPOTrainer": "core.preference.orpo",
    "OnlineDPOConfig": "core.preference.online_config",
    "OnlineDPOTrainer": "core.preference.online_dpo",
    "PPOConfig": "core.configs.ppo",
    "PPOTrainer": "core.trainers.ppo",
    "PRMConfig": "core.configs.prm",
    "PRMTrainer": "core.scoring.prm",
    "RLOOConfig": "core.configs.rloo",
    "RLOOTrainer": "core.trainers.rloo",
    "RewardConfig": "core.configs.reward",
    "RewardTrainer": "core.scoring.reward",
    "SDFTConfig": "core.distillation.sdft_config",
    "SDFTTrainer": "core.distillation.sdft",
    "SDPOConfig": "core.distillation.sdpo_config",
    "SDPOTrainer": "core.distillation.sdpo",
    "SFTConfig": "core.configs.sft",
    "SFTTrainer": "core.trainers.sft",
    "SSDConfig": "core.distillation.ssd_config",
    "SSDTrainer": "core.distillation.ssd",
    "ScriptArguments": "core.configs.script",
    "TPOConfig": "core.configs.tpo",
    "TPOTrainer": "core.preference.tpo",
    "TrlParser": "core.configs.parser",
    "UniformDiffusionConfig": "core.configs.uniform_diffusion",
    "UniformDiffusionTrainer": "core.diffusion.denoising",
    "VerifierConfig": "core.configs.verifier",
    "VerifierTrainer": "core.scoring.verifier",
    "XPOConfig": "core.preference.online_config",
    "XPOTrainer": "core.preference.xpo",
    "get_dataset": "core.data.mixture",
    "get_peft_config": "core.shards.adapters",
    "get_quantization_config": "core.configs.script",
    "is_conversational": "core.data.chatml",
    "is_conversational_from_value": "core.data.chatml",
    "maybe_convert_to_chatml": "core.data.chatml",
}


def __getattr__(name: str) -> Any:  # Any: its type depends on the name
    if name not in _HOMES:
        raise AttributeError(missing_name(name), name=name)
    return getattr(import_module(_HOMES[name]), name)


meta_path.append(AbsentNames(__name__))
