"""The trainers of given rows that are measured, ours and TRL's by one name, and their settings."""
# pyright: basic
# (strictly, every call into trl is partially unknown)

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import NamedTuple

from core.bench.step import ConfigClass, TrainerClass, peer
from core.configs.cpo import CPOConfig
from core.configs.dpo import DPOConfig
from core.configs.kto import KTOConfig
from core.configs.reward import RewardConfig
from core.configs.sft import SFTConfig
from core.distillation.distillation import DistillationTrainer
from core.distillation.distillation_config import DistillationConfig
from core.distillation.gkd import GKDTrainer
from core.distillation.gkd_config import GKDConfig
from core.preference.cpo import CPOTrainer
from core.preference.dpo import DPOTrainer
from core.preference.kto import KTOTrainer
from core.preference.online_config import OnlineDPOConfig
from core.preference.online_dpo import OnlineDPOTrainer
from core.scoring.reward import RewardTrainer
from core.trainers.sft import SFTTrainer


class Side(NamedTuple):
    """A trainer and its configuration, ours or TRL's."""

    trainer: TrainerClass
    config: ConfigClass


OURS: Mapping[str, Side] = {
    "DPO": Side(DPOTrainer, DPOConfig),
    "CPO": Side(CPOTrainer, CPOConfig),
    "KTO": Side(KTOTrainer, KTOConfig),
    "OnlineDPO": Side(OnlineDPOTrainer, OnlineDPOConfig),
    "SFT": Side(SFTTrainer, SFTConfig),
    "Reward": Side(RewardTrainer, RewardConfig),
    "Distillation": Side(DistillationTrainer, DistillationConfig),
    "GKD": Side(GKDTrainer, GKDConfig),
}
# Modules of trainers that `trl` does not export.
EXPERIMENTAL = {
    "CPO": "trl.experimental.cpo",
    "OnlineDPO": "trl.experimental.online_dpo",
    "GKD": "trl.experimental.gkd",
}
SIMPO: Mapping[str, object] = MappingProxyType(
    {"loss_type": "simpo", "cpo_alpha": 0.0, "beta": 2.0, "simpo_gamma": 1.0}
)


def trl_side(name: str) -> Side:
    """Return TRL's trainer of a name of `OURS`.

    Raises:
        BadValue: TRL is not installed.
    """
    trl = peer()
    module = import_module(EXPERIMENTAL[name]) if name in EXPERIMENTAL else trl
    return Side(getattr(module, f"{name}Trainer"), getattr(module, f"{name}Config"))
