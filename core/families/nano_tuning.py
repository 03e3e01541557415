"""Regimes of the nano worlds of fine-tuning, and the trainings of their starting models.

Updates, rates and batches were chosen on seeds 100 and 101. Held-out problems have demonstrated
answers of the same kind as those that are trained on, of which `nll` and `extreme_share` are
measured.
"""

from collections.abc import Mapping

from core.families.nano import Settings, offline_regime, start

SUMS: Settings = {
    **offline_regime(
        "nano-sums",
        "sums-start",
        data="nano-sums-demonstrations",
        updates=160,
        rate=4e-4,
        tokens=3,
        batch=64,
    ),
    "at_k_benchmarks": 0,
}
# From a start that samples 60 % right answers, on demonstrations like its own.
MANY_WARM: Settings = {
    **offline_regime(
        "nano-many",
        "many-warm-start",
        data="nano-many-demonstrations",
        updates=160,
        rate=3e-4,
        tokens=8,
        batch=64,
    ),
    "at_k_benchmarks": 0,
}
REGIMES: Mapping[str, Mapping[str, Settings]] = {
    "sums": {"sums": SUMS},
    "many": {"many-warm": MANY_WARM},
}
STARTS: Mapping[str, Mapping[str, Settings]] = {
    "sums": {
        "sums-start": start(
            "nano-sums",
            target=15,
            every=10,
            steps=1500,
            batch=256,
            tokens=3,
            heldout_temperature=1.0,
        )
    },
    "many": {
        "many-warm-start": start(
            "nano-many",
            target=60,
            every=20,
            steps=3000,
            batch=256,
            tokens=8,
            heldout_temperature=1.0,
        )
    },
}
