"""Exact laws notice a wrong sign, constant or mask in a loss."""

from random import Random

import pytest
from law_mutants import holds
from mutations import LOSSES, applied, mutants, mutants_of

from core.claims import Comparison
from core.laws.house import LAWS
from core.paper.registry import entries

LEAST_CAUGHT = 0.9
# Papers whose laws are about other code than losses, with tests of their own.
APART = {"best-fit-packing", "t5-packing", "lora", "dora", "zero"}
REFUTED = ["reward-diversity-tradeoff"]  # exact claims of papers that do not hold


@pytest.fixture(scope="module")
def laws():
    """The laws of the losses, and the exact claims of papers about them that hold, all but one."""
    papers = [entry.load() for slug, entry in entries().items() if slug not in APART]
    claims = [claim for paper in papers for claim in paper.claims]
    exact = [c for c in claims if isinstance(c.test, Comparison) and c.test.kind == "exact"]
    failing = [claim for claim in (*LAWS, *exact) if not holds(claim)]
    assert [claim.slug for claim in failing] == REFUTED
    return [claim for claim in (*LAWS, *exact) if claim not in failing]


def survives(mutant, laws):
    """Whether all laws hold. A law that fails comes first for the next mutant, its neighbour."""
    with applied(mutant):
        for place, law in enumerate(laws):
            if not holds(law):
                laws.insert(0, laws.pop(place))
                return False
    return True


@pytest.mark.long
def test_laws_notice_36_of_40_changes(laws):
    drawn = Random(0).sample(mutants(), 40)
    survivors = [str(mutant) for mutant in drawn if survives(mutant, laws)]
    assert len(survivors) <= 4, survivors


@pytest.mark.long
def test_laws_notice_nine_tenths_of_all_changes(laws):
    every = mutants()
    survivors = [str(mutant) for mutant in every if survives(mutant, laws)]
    print(f"{len(every) - len(survivors)} of {len(every)} changes fail a law", *survivors, sep="\n")
    assert len(survivors) <= (1 - LEAST_CAUGHT) * len(every), survivors


def test_a_change_ends_with_its_block(laws):
    mutant = next(m for m in mutants_of(LOSSES / "kl.py") if m.kind == "sign")
    assert not survives(mutant, laws)
    assert all(map(holds, LAWS))
