"""Arms that several papers have are one training: the same settings, and so one stage."""

import pytest

from core.paper.registry import find_paper
from core.settings.effective import effective
from core.settings.resolve import resolve
from core.stages.chain import Chain

SLUGS = (
    "beyond-80-20",
    "tis",
    "mis",
    "intellect-2",
    "deepseek-v3-2",
    "scalerl",
    "lite-ppo",
    "demystifying-long-cot",
    "skywork-or1",
)
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
    "off-policy CISPO": (("scalerl", "cispo-5"), ("cispo", "cispo"), ("vespo", "cispo")),
    "off-policy GSPO": (("gspo", "gspo"), ("sapo", "gspo"), ("vespo", "gspo")),
    "off-policy SAPO": (("sapo", "sapo"), ("vespo", "sapo")),
    "off-policy GRPO, no deviation": (("gmpo", "grpo"), ("vespo", "grpo")),
    "a mean of completions": (("lite-ppo", "instruct-sequence"), ("dapo", "sequence-level")),
    "cut answers": (("scalerl", "tight-limit"), ("lite-ppo", "short"), ("dapo", "plain")),
    "on-policy GRPO": (("dr-grpo", "grpo"), ("two-grpo", "groups-of-16"), ("a2po", "grpo")),
    "PPO": (("ppo", "ppo"), ("rloo", "ppo"), ("deepseek-r1", "ppo-lambda-0.95")),
    "PPO, all that follows": (
        ("ppo", "lambda-1"),
        ("rloo", "ppo-lambda-1"),
        ("deepseek-r1", "ppo-lambda-1"),
    ),
    "cut answers, left out": (("lite-ppo", "short-filter"), ("dapo", "filter")),
    "four bits": (("tis", "no-correction"), ("mis", "no-correction")),
    "four bits, corrected": (("tis", "tis"), ("sequence-is", "token-truncate")),
}


@pytest.mark.parametrize("arms", SHARED.values(), ids=SHARED)
def test_papers_share_an_arm(arms):
    first, *others = [resolve(find_paper(slug), arm=arm) for slug, arm in arms]
    for other in others:
        assert effective(other) == effective(first)
        assert Chain(other).train.key == Chain(first).train.key


@pytest.mark.parametrize("slug", SLUGS)
def test_every_arm_has_the_rollouts_of_its_regime(slug):
    paper = find_paper(slug)
    runs = [resolve(paper, arm=arm) for arm in paper.arms]
    pocket = [run for run in runs if not run.world.is_bare]
    assert {run.preview().rollout_size for run in pocket} == {128}
