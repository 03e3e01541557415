"""Regime of the nano world of reward models, which are trained from random weights.

Its rate was chosen on seeds 100 and 101, with 200 updates instead of 150.
"""

from collections.abc import Mapping

from core.families.nano import COMMON, OFFLINE, Settings

# Those that act on a model which answers nothing.
OF_REWARDS = OFFLINE - {
    *("heldout_problems", "heldout_temperature", "eval_temperature"),
    *("at_k_benchmarks", "at_k_samples", "at_k_temperature"),
}
DIGITS: Settings = {
    **{name: value for name, value in COMMON.items() if name in OF_REWARDS},
    "model": "nano",
    "data": "nano-digits-pairs",
    "learning_rate": 2e-3,
    "max_steps": 150,
    "per_device_train_batch_size": 32,
    "heldout_problems": 601,
    "heldout_every": 50,
    "logging_steps": 25,
}
REGIMES: Mapping[str, Mapping[str, Settings]] = {"digits": {"digits": DIGITS}}
