"""Regimes of the nano worlds of self-distillation, and the trainings of their starting models.

Steps and rates were chosen on seeds 100 and 101, the steps of starts that read demonstrations of
another skill on 102 to 108. A start reaches its target at the end of its training.
"""

from collections.abc import Mapping

from core.families.nano import Settings, offline_regime, regime, start
from core.families.nano_tuning import REWARDED
from core.rewards import FirstWrongStep
from eval.nano.hinted_sums import NEW, PREFIX, HintedSums

STYLE_STEPS = 1500
LONGEST = HintedSums(PREFIX).max_tokens


def hinted_start(suite: str, kind: str, steps: int) -> Settings:
    """Return the training of a starting model on prompts with and without hints.

    Its hints need not be right, so that few of its answers are.

    Args:
        suite: Name of the benchmark.
        kind: Kind of its demonstrations.
        steps: Updates of the training.
    """
    taught = start(suite, target=5, every=steps, steps=steps, batch=64, tokens=LONGEST)
    return {
        **taught,
        "data": f"{suite}-{kind}",
        "learning_rate": 4e-3,
        "lr_scheduler_type": "cosine",
        "heldout_temperature": 1.0,
    }


def sampled_regime(suite: str, name: str, *, also: tuple[str, ...], **changes: object) -> Settings:
    """Return a regime in which a student learns from its own samples and what a teacher is shown.

    Args:
        suite: Name of the benchmark that is trained on.
        name: Name of the starting model's training.
        also: Names of further benchmarks.
        changes: Settings that differ from those of `regime`.
    """
    sampled = regime(suite, name, updates=24, rate=5e-4, tokens=LONGEST, of_a_rollout=1)
    return {**sampled, "benchmarks": (suite, *also), **BY_PAPER, **changes}


BY_PAPER: Settings = {"eval_temperature": None, "at_k_benchmarks": 0, "heldout_problems": 400}
STYLE_START = "hinted-style-start"
SCORED = (PREFIX, f"{NEW}-whole")  # the old skill, and the new one with the expert's answer
# The old skill is watched, too, while the new one is learnt.
WATCHED: Settings = {
    "heldout_benchmarks": (PREFIX,),
    "heldout_limit": 256,
    "heldout_every": 4,
    "logging_steps": 4,
}
LEARNT: Settings = {"num_generations": 8, "heldout_every": 4, "rewards": (FirstWrongStep(),)}
HINTS = (f"{PREFIX}-half", f"{PREFIX}-whole")
STYLE = sampled_regime(NEW, STYLE_START, also=SCORED, data=f"{NEW}-experts", **WATCHED)
REGIMES: Mapping[str, Mapping[str, Settings]] = {
    "hinted": {
        "hinted": sampled_regime(PREFIX, "hinted-start", also=HINTS, **LEARNT),
        "hinted-style": {name: value for name, value in STYLE.items() if name not in REWARDED},
        "hinted-style-given": {
            **offline_regime(
                NEW,
                STYLE_START,
                data=f"{NEW}-experts",
                updates=24,
                rate=5e-4,
                tokens=LONGEST,
                batch=64,
            ),
            "benchmarks": (NEW, *SCORED),
            **BY_PAPER,
            **WATCHED,
        },
    },
    "erring": {
        name: sampled_regime(PREFIX, f"{name}-start", also=HINTS, **LEARNT)
        for name in ("erring", "erring-often")
    },
}
STARTS: Mapping[str, Mapping[str, Settings]] = {
    "hinted": {
        "hinted-start": hinted_start(f"{PREFIX}-mixed", "demonstrations", 600),
        STYLE_START: hinted_start(f"{NEW}-mixed", "demonstrations", STYLE_STEPS),
        # It reads demonstrations of three new skills, of which `hinted-style` teaches the first.
        "hinted-styles-start": hinted_start(f"{NEW}s-mixed", "demonstrations", STYLE_STEPS),
        # It has learnt that hints say nothing.
        "hinted-style-blind": hinted_start(f"{NEW}-mixed", "ignored", STYLE_STEPS),
    },
    "erring": {
        f"{kind}-start": hinted_start(f"{PREFIX}-mixed", kind, 600)
        for kind in ("erring", "erring-often")
    },
}
