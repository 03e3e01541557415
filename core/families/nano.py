"""Regimes of the nano worlds of policy gradients and pairs, and their starting models' trainings.

Updates, rates, batches and limits were chosen on seeds 100 and 101. A regime has everything that a
training needs, whatever a paper cites: an arm in it is this base and its own changes.
"""

from collections.abc import Mapping

from core.families.regimes import ONE_RATE, SAME
from core.models.builds import UNTRAINED
from core.rewards import Accuracy

Settings = Mapping[str, object]
# What a family needs beside the common settings, for clips of 0.2 and no KL, or the plain loss.
BASES: Mapping[str, Settings] = {
    "grpo": {"loss_type": "dapo", "epsilon": 0.2, "beta": 0.0, "scale_rewards": "group"},
    "rloo": {"beta": 0.0},
    "ppo": {"kl_coef": 0.0, "num_iterations": 1},
    "dpo": {"loss_type": "sigmoid", "beta": 0.1},
    "cpo": {"loss_type": "sigmoid", "beta": 0.1},
    "orpo": {"beta": 0.1},
    "tpo": {"loss_type": "sigmoid", "beta": 0.1},
    "kto": {"loss_type": "kto", "beta": 0.1},
    "bco": {"beta": 0.1},
    "online_dpo": {"loss_type": "sigmoid", "beta": 0.1},
    "xpo": {"loss_type": "sigmoid", "beta": 0.1, "alpha": 1e-5},
    "nash_md": {"beta": 0.008, "mixture_coef": 0.25},
    "sft": {"loss_type": "nll"},
    "distillation": {"estimator": "full", "beta": 1.0},
    "gkd": {"normalize": "sequence", "beta": 0.0},
    "gold": {"use_uld_loss": True, "lmbda": 0.0, "uld_crossentropy_weight": 0.5},
    "iw_opd": {"iw_opd_gamma": 0.5, "iw_opd_total": "without_last"},
    "minillm": {
        **{"gamma": 1.0, "return_from": "next", "teacher_mix_alpha": 0.2, "lm_coef": 0.0},
        **{"num_generations": 1, "num_iterations": 1},
    },
    "sdft": {
        "distillation_alpha": 1.0,
        "distillation_mode": "full_logits",
        "teacher_model_kind": "ema",
        "teacher_update_rate": 0.01,
        "num_generations": 1,
    },
    "sdpo": {
        "distillation_alpha": 1.0,
        "distillation_mode": "full_logits",
        "teacher_model_kind": "ema",
    },
}
COMMON: Settings = {
    **SAME,
    **ONE_RATE,
    "rewards": (Accuracy(),),
    "save_strategy": "no",
    "heldout_problems": 100,
    "heldout_temperature": 1.0,
    "eval_temperature": 1.0,
    "at_k_benchmarks": 1,
    "at_k_samples": 32,
    "at_k_temperature": 1.0,
}


def regime(
    suite: str,
    start: str,
    *,
    updates: int,
    rate: float,
    tokens: int,
    batch: int = 64,
    of_a_rollout: int = 8,
    iterations: int = 1,
) -> Settings:
    """Return a regime of a nano world.

    Args:
        suite: Name of the benchmark and of the training data.
        start: Name of the preparation that trains the starting model.
        updates: Number of optimizer steps.
        rate: Learning rate.
        tokens: Largest length of an answer.
        batch: Completions of an update.
        of_a_rollout: Updates of each rollout. Metrics are logged after every second rollout.
        iterations: Passes over each rollout.
    """
    logged = 2 * of_a_rollout
    passes = {"num_iterations": iterations} if iterations > 1 else {}
    return {
        **COMMON,
        **passes,
        "model": f"prepared:{start}",
        "data": suite,
        "benchmarks": (suite,),
        "learning_rate": rate,
        "max_steps": updates,
        "per_device_train_batch_size": batch,
        "steps_per_generation": of_a_rollout // iterations,
        "max_completion_length": tokens,
        "eval_max_tokens": tokens,
        "logging_steps": logged,
        "heldout_every": max(1, updates // 2 // logged) * logged,
    }


def start(
    suite: str,
    *,
    target: float | None,
    every: int,
    steps: int,
    batch: int,
    tokens: int,
    **settings: object,
) -> Settings:
    """Return the training of a starting model: on demonstrations until an accuracy is reached.

    Args:
        suite: Name of the benchmark.
        target: The accuracy on held-out problems in percent; None trains for all steps.
        every: Number of optimizer steps before each comparison with the target.
        steps: Largest number of optimizer steps.
        batch: Demonstrations of a step.
        tokens: Largest length of an answer.
        settings: Further settings.
    """
    return {
        "family": "sft",
        "per_seed": True,
        "model": UNTRAINED,
        "data": f"{suite}-demonstrations",
        "learning_rate": 2e-3,
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
        "max_steps": steps,
        "per_device_train_batch_size": batch,
        "eval_max_tokens": tokens,
        "heldout_problems": 400,
        "heldout_every": every,
        "heldout_target": target,
        "logging_steps": 10,
        "save_strategy": "no",
        **ONE_RATE,
        **settings,
    }


LOGGED = 4  # updates on given rows between two points of a curve


def offline_regime(
    suite: str, start: str, *, data: str, updates: int, rate: float, tokens: int, batch: int = 24
) -> Settings:
    """Return a regime of a nano world for losses of given rows: pairs or demonstrations.

    Args:
        suite: Name of the benchmark.
        start: Name of the preparation that trains the starting model; empty for random weights.
        data: Name of the data set, such as `prepared:NAME` or `SUITE-KIND` of demonstrations.
        updates: Number of optimizer steps.
        rate: Learning rate.
        tokens: Largest length of an answer.
        batch: Rows of an update.
    """
    return {
        **{name: value for name, value in COMMON.items() if name in OFFLINE},
        "model": f"prepared:{start}" if start else UNTRAINED,
        "data": data,
        "benchmarks": (suite,),
        "learning_rate": rate,
        "max_steps": updates,
        "per_device_train_batch_size": batch,
        "eval_max_tokens": tokens,
        "heldout_problems": 300,
        "logging_steps": LOGGED,
        "heldout_every": max(1, updates // 2 // LOGGED) * LOGGED,
    }


# The settings of `COMMON` that also act where nothing is sampled while training.
OFFLINE = COMMON.keys() - {
    *("data", "rewards", "temperature", "top_p", "top_k", "max_completion_length", "use_vllm"),
    *("mask_truncated_completions", "rollout_selection", "selection_reward", "prompt_retirement"),
}
FLIPPED = (10, 30, 40)  # percent of the pairs whose labels are wrong
CHOICE = regime("nano-choice", "choice-start", updates=160, rate=3e-4, tokens=6)
CHOICE_FAR = regime(
    "nano-choice", "choice-start", updates=192, rate=5e-4, tokens=6, of_a_rollout=16, iterations=2
)
CHOICE_PAIRS = offline_regime(
    "nano-choice", "choice-start", data="prepared:choice-pairs", updates=96, rate=2e-4, tokens=6
)
# 32 pairs of the policy's own answers, sampled anew for each update.
CHOICE_ONLINE: Settings = {
    **regime("nano-choice", "choice-start", updates=96, rate=2e-4, tokens=6, of_a_rollout=1),
    "per_device_train_batch_size": 32,
    "logging_steps": LOGGED,
    "heldout_every": 48,
    "heldout_problems": 300,
}
MANY = regime("nano-many", "many-start", updates=160, rate=3e-4, tokens=8)
LENGTH: Settings = {
    **regime("nano-length", "length-start", updates=112, rate=5e-4, tokens=64, batch=32),
    "heldout_problems": 50,  # long texts, which records keep
    "heldout_every": 112,
}
LENGTH_PAIRS: Settings = {
    **offline_regime(
        "nano-length",
        "length-start",
        data="prepared:length-pairs",
        updates=36,
        rate=5e-5,
        tokens=64,
    ),
    "heldout_problems": 100,
}
REGIMES: Mapping[str, Mapping[str, Settings]] = {
    "choice": {
        "choice": CHOICE,
        "choice-far": CHOICE_FAR,
        "choice-pairs": CHOICE_PAIRS,
        "choice-online": CHOICE_ONLINE,
        "choice-triples": {**CHOICE_PAIRS, "data": "prepared:choice-triples"},
        **{
            f"choice-flipped-{share}": {**CHOICE_PAIRS, "data": f"prepared:choice-flipped-{share}"}
            for share in FLIPPED
        },
    },
    "many": {"many": MANY},
    "length": {
        "length": LENGTH,
        "length-pairs": LENGTH_PAIRS,
        # Right answers against wrong ones, with which DPO raises accuracy and lengthens answers.
        "length-right-pairs": {**LENGTH_PAIRS, "data": "prepared:length-right-pairs"},
        "length-tight": {**LENGTH, "max_completion_length": 24, "eval_max_tokens": 24},
        "length-long": {
            **LENGTH,
            "model": "prepared:length-grown",
            "max_steps": 64,
            "heldout_every": 64,
        },
    },
}
# Right against wrong answers of a start.
CHOICE_OWN: Settings = {
    "family": "own-pairs",
    "per_seed": True,
    "regime": "choice",
    "num_prompts": 1500,
    "num_generations": 16,
}
LENGTH_OWN: Settings = {**CHOICE_OWN, "regime": "length"}
# The law of `choice` and the habits of `length` have been learnt at their first comparison; the
# skill of `many` grows at a rate that depends on the seed.
STARTS: Mapping[str, Mapping[str, Settings]] = {
    "choice": {
        "choice-start": start(
            "nano-choice",
            target=28,
            every=150,
            steps=600,
            batch=256,
            tokens=6,
            heldout_temperature=1.0,
        ),
        "choice-pairs": CHOICE_OWN,
        "choice-triples": {**CHOICE_OWN, "family": "own-triples"},
        **{
            f"choice-flipped-{share}": {**CHOICE_OWN, "flipped_share": share / 100}
            for share in FLIPPED
        },
    },
    "many": {
        "many-start": start("nano-many", target=40, every=10, steps=1000, batch=256, tokens=8)
    },
    "length": {
        "length-start": start(
            "nano-length",
            target=12,
            every=120,
            steps=480,
            batch=48,
            tokens=64,
            heldout_temperature=1.0,
        ),
        # The longer of two right answers is chosen in four of five pairs.
        "length-pairs": {**LENGTH_OWN, "pair_by": "length", "flipped_share": 0.2},
        "length-right-pairs": LENGTH_OWN,
        # Right answers are common in it, and 34 tokens long: for what shortens.
        "length-grown": {"family": "grpo", "per_seed": True, "regime": "length", "max_steps": 80},
    },
}
