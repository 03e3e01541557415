"""Laws of losses across vocabularies: what sorted probabilities and merged tokens keep."""

import torch
from torch import Tensor

from core.losses.divergence import kl
from core.losses.transport import aligned_groups, merged, sorted_l1

ROWS, VOCABULARY, OTHER = 32, 9, 12  # tokens, and sizes of two vocabularies
ENDS, OTHER_ENDS = (4, 9, 10, 13, 15, 18), (2, 4, 10, 18)  # bytes


def distributions(vocabulary: int, rows: int = ROWS) -> Tensor:
    """Return drawn probabilities (rows, vocabulary)."""
    draw = torch.Generator().manual_seed(vocabulary)
    return torch.randn(rows, vocabulary, generator=draw, dtype=torch.float64).softmax(-1)


def permutation_changes() -> list[float]:
    """Return the change of the sorted distance when the student's vocabulary is permuted."""
    student, teacher = distributions(VOCABULARY), distributions(OTHER)
    order = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(0))
    changes = sorted_l1(student[:, order], teacher) - sorted_l1(student, teacher)
    return changes.abs().tolist()


def swapped(measure: str) -> list[float]:
    """Return a distance of each teacher from the student that swaps its first two tokens.

    Args:
        measure: "sorted" for the sorted distance, "kl" for the reverse KL.
    """
    teacher = distributions(VOCABULARY)
    student = teacher[:, [1, 0, *range(2, VOCABULARY)]]
    if measure == "sorted":
        return sorted_l1(student, teacher).tolist()
    return kl(student.log(), teacher.log()).tolist()


def merge_errors(strategy: str) -> list[float]:
    """Return |mass of a merged row - probability of the group's earlier tokens| for each group.

    The groups are those of several tokens. By the chain rule the two are equal: the mass is the
    probability of the earlier tokens, summed over the last one.

    Args:
        strategy: As `merged` takes it.
    """
    groups, _ = aligned_groups(ENDS, OTHER_ENDS)
    probabilities = distributions(VOCABULARY, len(ENDS))
    tokens = torch.arange(len(ENDS))
    masses = merged(probabilities, tokens, groups, strategy).sum(-1)
    errors = list[float]()
    for group, mass in zip(groups, masses.tolist(), strict=True):
        earlier = [float(probabilities[i, i]) for i in group[:-1]]
        if earlier:
            errors.append(abs(mass - float(torch.tensor(earlier, dtype=torch.float64).prod())))
    return errors
