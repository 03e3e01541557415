"""The pocket world: trainings of the starting models that are not shipped, and pairs."""

from collections.abc import Mapping

from core.claims.needs import PREPARED
from core.families.regimes import ONE_RATE, SAME

Settings = Mapping[str, object]
COMMON: Settings = {
    **ONE_RATE,
    "family": "sft",
    "lr_scheduler_type": "cosine",
    "warmup_steps": 50,
    "weight_decay": 0.01,
    "adam_beta2": 0.98,
    "per_device_train_batch_size": 32,
    "max_length": 1024,
    "train_sampling_strategy": "group_by_length",
    "heldout_problems": 0,
    "logging_steps": 25,
    "save_steps": 200,
}
# As `make pocket` trains the shipped ones: capability first, on right solutions, and then the
# mistakes and the order of the data of one build.
STARTS: Mapping[str, Settings] = {
    "pocket-capable": {
        **COMMON,
        "model": "pocket-base",
        "data": "pocket-demonstrations",
        "learning_rate": 2e-3,
        "max_steps": 2600,
    },
    "pocket-instruct": {
        **COMMON,
        "per_seed": True,
        "model": f"{PREPARED}pocket-capable",
        "data": "pocket-fallible",
        "learning_rate": 8e-4,
        "max_steps": 600,
    },
}

# Pocket answers move by 1.5 nats a token where those of large models move by tens, so beta is 20
# times the usual 0.1: at 0.1 all losses of pairs are one straight line.
OPTIMIZER = tuple(name for name in SAME if name.startswith(("adam_", "lr_")))
PAIRS: Settings = {
    **ONE_RATE,
    **{name: SAME[name] for name in (*OPTIMIZER, "warmup_steps", "weight_decay", "max_grad_norm")},
    "data": f"{PREPARED}pocket-pairs",
    "beta": 2.0,
    "learning_rate": 1e-4,
    "per_device_train_batch_size": 32,
    "max_steps": 72,
}
# Worked solutions against revisions with one step wrong. The rate was fixed on DPO with seed 100.
# Accuracy on GSM8K in the pocket world, log-probabilities of held-out answers less those at the
# start (nats), and pairs whose chosen answer is the likelier one:
#
#     rate   accuracy  chosen  rejected  in order
#     start      50 %                        84 %
#     1e-4       61 %    +0.1      -5.5      98 %
#     2e-4       38 %    -1.4     -10.8      98 %
#     4e-4       23 %    -4.9     -18.8      98 %
REVISED: Settings = {
    **PAIRS,
    "data": "pocket-revised",
    "optim": "adamw_torch",  # whatever a paper cites, as all else of the optimizer
    "beta": 0.1,
    "max_steps": 40,
}
REGIMES: Mapping[str, Settings] = {"pairs": PAIRS, "revised": REVISED}
# A right answer against a wrong one of eight sampled from the start of a seed.
PREPARATIONS: Mapping[str, Settings] = {
    "pocket-pairs": {
        "family": "own-pairs",
        "per_seed": True,
        "regime": "on",
        "num_prompts": 2400,
        "num_generations": 8,
    }
}
