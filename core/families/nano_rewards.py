"""Regimes of the nano world of models that score: rewards of pairs, and scores of solutions.

Reward models are trained from random weights; their rate was chosen on seeds 100 and 101, with 200
updates instead of 150. Models that score solutions start from the policy whose solutions they learn
from and choose among. Of their rates 1e-3, 2e-3 and 4e-3 the second orders the most held-out
pairs of a right and a wrong solution on seed 101 (0.556, 0.585, 0.551). Those of `digits-solutions`
have twice as many updates of twice as many rows, and 64,000 solutions: 0.657 and 0.609 of the pairs
are in order on seeds 100 and 101 without the loss of the language model. Reward models of solutions
(`digits-rated`) learn from pairs of the policy's own. Of rates 1e-3, 2e-3 and 4e-3 the first has
the lowest loss on seed 100, in 350 updates 0.47, 0.61 and 0.65 nats a pair.

Answers of a start are fine-tuned on by 96 updates: on seed 100, from 46.7 % of right greedy answers
to 52.0 % on those that a model of steps picks at a rate of 2e-4, and to 49.6 % at 5e-4.
"""

from collections.abc import Mapping

from core.families.nano import COMMON, OFFLINE, Settings, offline_regime, start
from core.rewards import Accuracy, RightSums

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
# Fine-tuning of the start, whose greedy answers are scored.
ANSWERS: Settings = {
    **offline_regime(
        "nano-digits",
        "digits-start",
        data="nano-digits-demonstrations",
        updates=96,
        rate=2e-4,
        tokens=9,
        batch=64,
    ),
    "eval_temperature": 0.0,
    "heldout_temperature": 0.0,
    "at_k_samples": 64,
    "at_k_temperature": 0.7,
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
SCORER: Settings = {"family": "prm", "per_seed": True, "regime": "digits-steps"}
# One solution of each problem: the one that a scorer prefers, or the only one.
OWN: Settings = {
    **SAMPLED,
    "family": "rejection-sampling",
    "num_prompts": 2000,
    "least_reward": 0.0,
}
PICKED: Settings = {**OWN, "kept_per_prompt": 1, "step_separator": ""}
PAIRED: Settings = {
    **SAMPLED,
    "family": "own-pairs",
    "rewards": (RightSums(),),
    "num_prompts": 2000,
}
RATED: Settings = {
    **SCORED,
    "data": "prepared:digits-own-pairs",
    "learning_rate": 1e-3,
    "max_steps": 400,
    "heldout_every": 200,
}
START = start("nano-digits", target=40, every=5, steps=2000, batch=64, tokens=9)
MEMBERS = (2, 3, 4, 5)  # of an ensemble, beside the reward model of the run
STARTS: Mapping[str, Mapping[str, Settings]] = {
    "digits": {
        "digits-start": START,
        "digits-own-pairs": PAIRED,
        **{f"digits-start-{n}": {**START, "per_seed": n} for n in MEMBERS},
        **{
            f"digits-rated-{n}": {
                "family": "reward",
                "per_seed": True,
                "regime": "digits-rated",
                "model": f"prepared:digits-start-{n}",
            }
            for n in MEMBERS
        },
        "digits-solutions": SAMPLED,
        "digits-many-solutions": {**SAMPLED, "num_prompts": 2000, "num_generations": 32},
        "digits-outcomes": {**SAMPLED, "labels_by": "outcome"},
        "digits-prm": SCORER,
        "digits-orm": {**SCORER, "data": "prepared:digits-outcomes"},
        "digits-picked-by-prm": {**PICKED, "roles": {"scorer": "prepared:digits-prm"}},
        "digits-picked-by-orm": {**PICKED, "roles": {"scorer": "prepared:digits-orm"}},
        "digits-unpicked": {**OWN, "num_generations": 1, "rewards": (Accuracy(),)},
    }
}
REGIMES: Mapping[str, Mapping[str, Settings]] = {
    "digits": {
        "digits": DIGITS,
        "digits-solutions": SOLUTIONS,
        "digits-steps": STEPS,
        "digits-answers": ANSWERS,
        "digits-rated": RATED,
    }
}
