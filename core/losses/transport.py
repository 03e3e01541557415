"""Distances of distributions over two vocabularies, for tokens aligned by the text they end at."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from core.losses.divergence import divergence
from core.shapes import NV, N

Groups = list[list[int]]  # the tokens of each group, by their indices
LEAST = 1e-8  # probability of an entry of both vocabularies, as in TRL


def sorted_l1(probabilities: NV, other: NV) -> N:
    """Return sum_i |p_(i) - q_(i)| over probabilities in descending order; arXiv 2402.12030.

    The smaller vocabulary is filled up with zeros. The distance does not know which token has a
    probability.
    """
    size = max(probabilities.size(-1), other.size(-1))
    first, second = (
        nn.functional.pad(x, (0, size - x.size(-1))).sort(-1, descending=True).values
        for x in (probabilities, other)
    )
    return (first - second).abs().sum(-1)


def aligned_groups(ends: Sequence[int], other: Sequence[int]) -> tuple[Groups, Groups]:
    """Return groups of tokens of two texts, each closed where both sides end at the same byte.

    Tokens behind the last common end are in no group, and neither are tokens without text, such as
    those of the beginning and the end.

    Args:
        ends: The byte of the text at which each token ends; never falling.
        other: Those of the other side.
    """
    common = sorted({*ends} & {*other} - {0})
    return groups_until(common, ends), groups_until(common, other)


def groups_until(common: Sequence[int], ends: Sequence[int]) -> Groups:
    """Return the tokens with text up to each of some bytes at which tokens end."""
    groups: Groups = [[] for _ in common]
    for i, (start, end) in enumerate(pairwise((0, *ends))):
        place = bisect_left(common, end)
        if start < end and place < len(common):
            groups[place].append(i)
    return groups


BAYESIAN, OBSERVED = "bayesian", "observed"  # ways to merge the tokens of a group


def merged(probabilities: NV, tokens: Tensor, groups: Groups, strategy: str) -> NV:
    """Return one row per group, for rows that predict `tokens` (N,).

    Args:
        probabilities: Those of each token given the tokens before it.
        tokens: The tokens that follow.
        groups: As `aligned_groups` gives them.
        strategy: "bayesian" multiplies the last row by the probabilities of the earlier tokens, by
            the chain rule; "observed", as TRL does, the first row by those of the later tokens.
    """
    chosen = probabilities.gather(dim=-1, index=tokens[:, None])[:, 0]
    is_bayesian, one = strategy == BAYESIAN, chosen.new_ones(())
    read = [group[-1] if is_bayesian else group[0] for group in groups]
    others = [group[:-1] if is_bayesian else group[1:] for group in groups]
    factors = [chosen[places].prod() if places else one for places in others]
    return probabilities[read] * torch.stack(factors)[:, None] if groups else probabilities[:0]


class Matches(NamedTuple):
    """Entries that two vocabularies share, by their places (K,) in the order of the second one.

    Attributes:
        own: Their places in the first vocabulary.
        other: Their places in the second one.
    """

    own: Tensor
    other: Tensor


def matches_of(vocabulary: Mapping[str, int], other: Mapping[str, int]) -> Matches:
    """Return the entries of two vocabularies whose texts are equal.

    Their order, in which losses are summed, is not that of the mappings: a tokenizer returns its
    vocabulary in another order in each process.
    """
    shared = sorted(vocabulary.keys() & other.keys(), key=other.__getitem__)
    own, others = (torch.tensor([x[token] for token in shared]) for x in (vocabulary, other))
    return Matches(own.long(), others.long())


def matched_and_sorted(probabilities: NV, other: NV, matches: Matches, beta: float) -> tuple[N, N]:
    """Return D_beta on the entries of both vocabularies, and `sorted_l1` of all other entries.

    D_beta is of the probabilities as they are, at least `LEAST` and not renormalised, so that it
    may be below 0: the reverse KL falls when mass leaves these entries. The sorted distance is 0 if
    one side has no other entry.
    """
    sides = ((probabilities, matches.own), (other, matches.other))
    logps, teacher_logps = (x[:, places].clamp(min=LEAST).log() for x, places in sides)
    rest, others = (x[:, without(places, x.size(-1))] for x, places in sides)
    has_both = rest.size(-1) > 0 < others.size(-1)
    apart = sorted_l1(rest, others) if has_both else probabilities.new_zeros(len(probabilities))
    return divergence(logps, teacher_logps, beta), apart


def without(places: Tensor, size: int) -> Tensor:
    """Return a mask (size,) of the entries of a vocabulary that are not at these places."""
    return torch.ones(size, dtype=torch.bool, device=places.device).index_fill(0, places, False)
