"""Every family by its name."""

from collections.abc import Mapping

from core.families.a2po import A2PO
from core.families.difficulty import DifficultyFilter
from core.families.evaluation import Untrained
from core.families.family import Family
from core.families.grpo import GRPO
from core.families.optimal_value import OptimalValue
from core.families.ppo import PPO
from core.families.rejection import RejectionSampling
from core.families.rloo import RLOO
from core.families.sft import SFT
from eval.errors import UnknownName

ROWS: tuple[Family, ...] = (
    GRPO(),
    RLOO(),
    PPO(),
    A2PO(),
    SFT(),
    RejectionSampling(),
    DifficultyFilter(),
    OptimalValue(),
    Untrained(),
)
FAMILIES: Mapping[str, Family] = {family.name: family for family in ROWS}


def listed(family: str) -> frozenset[str]:
    """The families whose papers are listed under this one: itself, and those that say so.

    Raises:
        UnknownName: there is none of that name.
    """
    return frozenset({find_family(family).name}) | {
        one.name for one in ROWS if one.listed_with == family
    }


def find_family(name: str) -> Family:
    """The family of that name.

    Raises:
        UnknownName: there is none.
    """
    if name not in FAMILIES:
        raise UnknownName("family", name, FAMILIES)
    return FAMILIES[name]
