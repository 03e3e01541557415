"""Regimes: what the runs of a comparison share at a scale, so that they differ in one thing alone.

Each is 36 rollouts of 128 completions, 16 of each prompt. `off2` to `off16` are the same rollouts
in that many updates each, so that the policy leaves what sampled; in the others there is one. All
of them have the optimizer, the sampling, the prompts and the rewards of `SAME`, whatever a paper
cites, so that an arm that several papers have is one training.

Learning rates were fixed on one training of seed 0 with clips of 0.2, before any arm was
compared: such that the clips stop tokens and the training still gains where its model can. Shares
are of the tokens that a clip stops, at the last update of a rollout; accuracies are held out.

    regime  rate  clipped  from   to        regime  rate  clipped  from   to
    off2    1e-4  no clip    50   70        off16   1e-4    2.2 %    50   58
            3e-4  no clip    50   67                3e-4    3.1 %    50   15
    off4    1e-4    0.6 %    50   65        base8   3e-5    0.7 %    37   36
            3e-4    1.6 %    50   57                5e-5    1.1 %    37   32
    off8    1e-4    1.3 %    50   62                1e-4    1.9 %    37   23
            3e-4    2.2 %    50   26                3e-4    3.0 %    37    4

A high rate, for hot8, is one at which much is lost: 3e-4, as off8 shows. At 1e-3 no answer is right
after four rollouts, and nothing is left to learn from.
"""

from collections.abc import Mapping

from core.claims.needs import PREPARED
from core.rewards import Accuracy

ROLLOUTS, COMPLETIONS = 36, 128
HELD_OUT_EVERY, SAVE_EVERY = 4, 12  # rollouts
ONE_RATE: Mapping[str, object] = {"rate_factors": ()}  # of all arms
BASE: Mapping[str, object] = {"model": "pocket-base"}
SAME: Mapping[str, object] = {
    "data": "pocket",
    "rewards": (Accuracy(),),
    "lr_scheduler_type": "constant",
    "warmup_steps": 0,
    "weight_decay": 0.0,
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_epsilon": 1e-8,
    "max_grad_norm": 1.0,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "max_completion_length": 64,
    "mask_truncated_completions": False,
    "rollout_selection": "all",
    "selection_reward": None,
    "prompt_retirement": None,
    "use_vllm": False,
}


def updates(count: int, rate: float) -> dict[str, object]:
    """Return settings for `count` updates per rollout, each on an equal part of it.

    Metrics are logged once per rollout.
    """
    return {
        **ONE_RATE,
        "learning_rate": rate,
        "max_steps": ROLLOUTS * count,
        "per_device_train_batch_size": COMPLETIONS // count,
        "steps_per_generation": count,
        "logging_steps": count,
        "heldout_every": HELD_OUT_EVERY * count,
        "save_steps": SAVE_EVERY * count,
    }


OWN: Mapping[str, Mapping[str, object]] = {
    "on": {},
    "off2": updates(2, 1e-4),
    "off4": updates(4, 1e-4),
    "off8": updates(8, 1e-4),
    "off16": updates(16, 1e-4),
    "hot8": {**updates(8, 3e-4), "logging_steps": 1},  # a point of each update: spikes count
    # Of 2,400 answers of the starting model at temperature 1, 41 % have 40 tokens or more, none
    # has more than 50; of pocket-base 48 %, and none more than 65.
    "tight": {**ONE_RATE, "max_completion_length": 40},
    "wide": {**ONE_RATE, "max_completion_length": 96},
    "base": {**ONE_RATE, **BASE},
    "base8": {**updates(8, 3e-5), **BASE},
    "easy": {**ONE_RATE, "data": f"{PREPARED}easy-prompts"},
    "tiny": {**ONE_RATE, "data": "pocket-tiny"},
    "int4": {**ONE_RATE, "rollout_bits": 4},
    "lag": {**ONE_RATE, "rollout_lag": 2},
}
CPU: Mapping[str, Mapping[str, object]] = {
    name: {**SAME, **changes} for name, changes in OWN.items()
}
REGIMES: Mapping[str, Mapping[str, Mapping[str, object]]] = {"cpu": CPU}
# Preparations that regimes start from; a paper's own preparation of the same name overrides them.
PREPARATIONS: Mapping[str, Mapping[str, object]] = {
    "easy-prompts": {
        "family": "difficulty-filter",
        "data": "pocket",
        "rewards": (Accuracy(),),
        "num_prompts": 4000,
        "num_generations": 8,
        "rate_above": 0.7,  # at least 6 of 8
    }
}
