"""A shell offers papers, scales and arms for what is typed so far."""

import subprocess
import sys

import pytest

from core.families.profiles import SCALES
from papers.dapo import PAPER


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (("run", "deepseekm"), {"deepseekmath-grpo"}),
        (("show", "gspo"), {"gspo", "gspo-token"}),
        (("runs", "rl"), {"rloo"}),
        (("plan", "dapo", "--at", ""), set(SCALES)),
        (("run", "dapo", "--arm", ""), set(PAPER.arms)),
        (("plan", "dapo", "--arm", PAPER.main_arm[:3]), {a for a in PAPER.arms if a[:3] == "dap"}),
        (("run", "--arm", ""), set()),
        (("run", "no-such-paper", "--arm", ""), set()),
    ],
)
def test_what_bash_offers(typed, offered):
    """The words are asked for as the script asks that `repro --install-completion` installs."""
    words = ("repro", *typed)
    asked = {
        "_REPRO_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", "from core.cli.main import app; app(prog_name='repro')"],
        env=asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    assert set(done.stdout.split()) == offered
