"""Regimes of the nano world of models that score: rewards of pairs, and scores of solutions.

Reward models are trained from random weights; their rate was chosen on seeds 100 and 101, with 200
updates instead of 150. Models that score solutions start from the policy whose solutions they learn
from and choose among. Of their rates 1e-3, 2e-3 and 4e-3 the second orders the most held-out
pairs of a right and a wrong solution on seed 101 (0.556, 0.585, 0.551). Those of `digits-solutions`
have twice as many updates of twice as many rows, and 64,000 solutions: 0.657 and 0.609 of the pairs
are in order on seeds 100 and 101 without the loss of the language model.
"""

from collections.abc import Mapping

from core.families.nano import COMMON, OFFLINE, Settings, start

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
SCORED: Settings = {
    **{name: value for name, value in COMMON.items() if name in OF_REWARDS},
    "model": "prepared:digits-start",
    "data": "prepared:digits-solutions",
    "learning_rate": 2e-3,
    "max_steps": 1000,
    "per_device_train_batch_size": 32,
    "heldout_problems": 200,
    "at_k_samples": 64,
    "at_k_temperature": 0.7,
    "eval_max_tokens": 9,
    "logging_steps": 50,
}
# A character is a step, and nothing stands between two of them.
STEPS: Settings = {**SCORED, "step_separator": ""}
SOLUTIONS: Settings = {
    **SCORED,
    "data": "prepared:digits-many-solutions",
    "max_steps": 2000,
    "per_device_train_batch_size": 64,
}
SAMPLED: Settings = {
    "family": "own-solutions",
    "per_seed": True,
    "model": "prepared:digits-start",
    "data": "nano-digits",
    "num_prompts": 800,
    "num_generations": 8,
    "temperature": 0.7,
    "max_completion_length": 9,
    "threads": 1,
    "use_cpu": True,
    "bf16": False,
}
STARTS: Mapping[str, Mapping[str, Settings]] = {
    "digits": {
        "digits-start": start("nano-digits", target=40, every=5, steps=2000, batch=64, tokens=9),
        "digits-solutions": SAMPLED,
        "digits-many-solutions": {**SAMPLED, "num_prompts": 2000, "num_generations": 32},
        "digits-outcomes": {**SAMPLED, "labels_by": "outcome"},
    }
}
REGIMES: Mapping[str, Mapping[str, Settings]] = {
    "digits": {"digits": DIGITS, "digits-solutions": SOLUTIONS, "digits-steps": STEPS}
}
