"""Table of all families by name."""

from collections.abc import Mapping

from core.families.a2po import A2PO
from core.families.cpo import CPO
from core.families.difficulty import DifficultyFilter
from core.families.diffusion import UniformDiffusion
from core.families.distillation import GKD, GOLD, IWOPD, Distillation, MiniLLM
from core.families.dpo import DPO
from core.families.evaluation import Untrained
from core.families.family import Family
from core.families.grpo import GRPO
from core.families.kto import BCO, KTO
from core.families.online_dpo import XPO, NashMD, OnlineDPO
from core.families.optimal_value import OptimalValue
from core.families.orpo import ORPO
from core.families.own_labels import OwnLabels
from core.families.own_pairs import OwnPairs
from core.families.own_solutions import OwnSolutions
from core.families.own_teacher import SDFT, SDPO
from core.families.own_triples import OwnTriples
from core.families.ppo import PPO
from core.families.prm import ProcessRewardModels
from core.families.rejection import RejectionSampling
from core.families.reward import RewardModels
from core.families.rloo import RLOO
from core.families.sft import SFT
from core.families.ssd import SSD
from core.families.tpo import TPO
from core.families.verifier import Verifiers
from eval.errors import UnknownName

ROWS: tuple[Family, ...] = (
    GRPO(),
    RLOO(),
    PPO(),
    A2PO(),
    SFT(),
    SSD(),
    Distillation(),
    GKD(),
    GOLD(),
    IWOPD(),
    MiniLLM(),
    SDFT(),
    SDPO(),
    DPO(),
    CPO(),
    ORPO(),
    TPO(),
    KTO(),
    BCO(),
    OnlineDPO(),
    XPO(),
    NashMD(),
    RewardModels(),
    ProcessRewardModels(),
    Verifiers(),
    UniformDiffusion(),
    RejectionSampling(),
    DifficultyFilter(),
    OptimalValue(),
    OwnPairs(),
    OwnTriples(),
    OwnLabels(),
    OwnSolutions(),
    Untrained(),
)
FAMILIES: Mapping[str, Family] = {family.name: family for family in ROWS}


def listed_families(name: str) -> frozenset[str]:
    """Return the names of the families listed under a name: of a family, or of a group of them.

    Those of a family are itself and the families that refer to it.

    Raises:
        UnknownName: there is no such family or group.
    """
    groups = {row.group for row in FAMILIES.values()} - {""}
    if name not in {*FAMILIES, *groups}:
        raise UnknownName("family", name, {*FAMILIES, *groups})
    names = {row.name: {row.name, row.listed_with, row.group} for row in FAMILIES.values()}
    return frozenset(family for family, listed in names.items() if name in listed)


def find_family(name: str) -> Family:
    """Return the family of this name.

    Raises:
        UnknownName: the family does not exist.
    """
    if name not in FAMILIES:
        raise UnknownName("family", name, FAMILIES)
    return FAMILIES[name]
