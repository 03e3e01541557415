"""A reward of a paper that raises ends its run in one line that names it."""

MODULE = '''
"""A paper whose reward raises."""

from dataclasses import dataclass

from core.paper import Paper


@dataclass(frozen=True)
class Fragile:
    __name__ = "fragile"

    def __call__(self, **_):
        raise KeyError("no such answer")


PAPER = Paper(
    slug="fragile",
    title="Fragile",
    arxiv="0000.00000",
    family="grpo",
    base="deepseekmath-grpo",
    config=(),
    rewards=(Fragile(),),
    model="owner/name",
    data="pocket",
)
'''


def test_a_reward_that_raises_is_named_in_one_line(repro, settings, install):
    install("fragile", {"fragile": "fragile_paper"}, {"fragile_paper": MODULE})
    result = repro("run", "fragile", "--jobs", "1", *settings)
    assert result.exit_code == 2, result.output
    line = result.stderr.splitlines()[-1]
    assert line.startswith(
        "RewardError: KeyError: 'no such answer'; reward 'fragile' raised this on"
    )
