"""Arms that several papers have are one training: the same settings, and so one stage."""

import pytest

from core.paper.registry import find_paper
from core.run.effective import effective
from core.run.resolve import resolve
from core.run.stages.chain import Chain

SHARED = {
    "off-policy DAPO": (
        ("beyond-80-20", "all-tokens"),
        ("scalerl", "dapo-0.28"),
        ("lite-ppo", "instruct-clip-higher"),
        ("dapo", "no-dynamic-sampling"),
        ("cispo", "dapo"),
    ),
    "off-policy DAPO, one clip": (
        ("scalerl", "dapo-0.2"),
        ("lite-ppo", "instruct-symmetric"),
        ("dapo", "symmetric-clip"),
    ),
    "off-policy CISPO": (("scalerl", "cispo-5"), ("cispo", "cispo")),
    "a mean of completions": (("lite-ppo", "instruct-sequence"), ("dapo", "sequence-level")),
    "cut answers": (("scalerl", "tight-limit"), ("lite-ppo", "short"), ("dapo", "plain")),
    "uncut answers": (("scalerl", "generous-limit"), ("lite-ppo", "long")),
    "four bits": (("tis", "no-correction"), ("mis", "no-correction")),
}


@pytest.mark.parametrize("arms", SHARED.values(), ids=SHARED)
def test_papers_share_an_arm(arms):
    first, *others = [resolve(find_paper(slug), arm=arm) for slug, arm in arms]
    for other in others:
        assert effective(other) == effective(first)
        assert Chain(other).train.key == Chain(first).train.key
