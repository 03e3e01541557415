"""Regimes of the nano world of distillation, and the trainings of its teachers and students.

Steps, rates and targets were chosen on seeds 100 and 101.

The teacher of a regime is the preparation `REGIME-teacher`. That of `chain-narrow`, a variant of
`chain-even`, has seen even digits alone and is wrong behind a prefix that has gone wrong: there it
gives the next sum e^-11, on both seeds, and the teacher of `chain-even` 0.99.
"""

from collections.abc import Mapping
from typing import Any

from core.families.nano import Settings, regime, start
from core.families.nano_tuning import REWARDED
from eval.nano.fallible_sums import EvenSums, LongSums

CHAIN, EVEN = LongSums.name, EvenSums.name
TOKENS = LongSums.max_tokens


def student_regime(suite: str, name: str, tokens: int = TOKENS) -> Settings:
    """Return a regime in which a student learns from right answers or from a teacher of its own.

    Args:
        suite: Name of the benchmark.
        name: Name of the regime, with which those of its preparations begin.
        tokens: Largest length of an answer.
    """
    sampled = regime(suite, f"{name}-start", updates=24, rate=5e-4, tokens=tokens, of_a_rollout=1)
    return {
        **{name: value for name, value in sampled.items() if name not in REWARDED},
        "data": f"{suite}-demonstrations",
        "eval_temperature": None,  # as the paper evaluates, greedily or sampled
        "at_k_benchmarks": 0,
        "heldout_problems": 400,
    }


def learner(
    suite: str, kind: str, *, target: float | None, every: int, batch: int, steps: int = 2000
) -> Settings:
    """Return the training of a teacher or student, on demonstrations until its samples are right.

    Args:
        suite: Name of the benchmark.
        kind: Kind of its demonstrations.
        target: Share of right samples for held-out problems, in percent; None for all steps.
        every: Number of optimizer steps before each comparison with the target.
        batch: Demonstrations of a step.
        steps: Largest number of optimizer steps.
    """
    return {
        **start(suite, target=target, every=every, steps=steps, batch=batch, tokens=TOKENS),
        "data": f"{suite}-{kind}",
        "heldout_temperature": 1.0,
    }


# A start is compared often: its samples soon are as right as they will ever be, and scatter.
ABLE: Mapping[str, Any] = {"target": 98, "every": 50, "batch": 64}
FALLIBLE: Mapping[str, Any] = {"target": 10, "every": 10, "batch": 128}
FAILING: Mapping[str, Any] = {"target": None, "every": 400, "batch": 128, "steps": 400}
TEACHER = learner(CHAIN, "demonstrations", **ABLE)
STARTS: Mapping[str, Mapping[str, Settings]] = {
    "chain": {
        "chain-teacher": TEACHER,
        "chain-even-teacher": TEACHER,
        "chain-narrow-teacher": learner(EVEN, "demonstrations", **ABLE),
        "chain-start": learner(CHAIN, "fallible", **FALLIBLE),
        "chain-even-start": learner(EVEN, "fallible", **FALLIBLE),
        "chain-failing-teacher": TEACHER,
        "chain-failing-start": learner(CHAIN, "failing", **FAILING),
    }
}
REGIMES: Mapping[str, Mapping[str, Settings]] = {
    "chain": {
        "chain": student_regime(CHAIN, "chain"),
        "chain-even": student_regime(EVEN, "chain-even"),
        "chain-failing": {**student_regime(CHAIN, "chain-failing"), "heldout_every": 4},
    }
}
