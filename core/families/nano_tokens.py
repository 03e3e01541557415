"""Regimes of the nano world of two tokenizers, and the trainings of its teachers and students.

A student has tokens for 30 pairs of digits, a teacher one for each character. Steps, rates and
targets were chosen on seed 100. The teacher of a regime is the preparation `REGIME-teacher`.
"""

from collections.abc import Mapping

from core.families.nano import Settings, start
from core.families.nano_chain import ABLE, CHAIN, FALLIBLE, learner, student_regime
from core.models.builds import PAIRED
from eval.nano.many import Many

MANY = Many.name


def many_start(target: float, steps: int) -> Settings:
    """Return a training on sums of two numbers until this percentage of samples is right."""
    found = start(MANY, target=target, every=20, steps=steps, batch=256, tokens=Many.max_tokens)
    return {**found, "heldout_temperature": 1.0}


def paired(settings: Settings) -> Settings:
    """Return the training of a model with tokens for pairs of digits."""
    return {**settings, "model": PAIRED}


STARTS: Mapping[str, Mapping[str, Settings]] = {
    "tokens": {
        "tokens-teacher": learner(CHAIN, "demonstrations", **ABLE),
        "tokens-start": paired(learner(CHAIN, "fallible", **FALLIBLE)),
        "tokens-many-teacher": many_start(80, 4000),
        "tokens-many-start": paired(many_start(20, 2000)),
    }
}
REGIMES: Mapping[str, Mapping[str, Settings]] = {
    "tokens": {
        "tokens": student_regime(CHAIN, "tokens"),
        # An answer is any two summands: the teacher is unsure of the first, and then sure.
        "tokens-many": student_regime(MANY, "tokens-many", tokens=Many.max_tokens),
    }
}
