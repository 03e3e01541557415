"""A*-PO learns what each prompt is worth once, then regresses one answer to each on it.

Where the sources disagree, and what is not the paper's here:

- The first stage is the preparation `values`: eight answers of the starting model to each prompt.
  Prompts that it never solves are kept, as in the authors' scripts; TRL's trainer drops them by
  default and cuts answers at 256 tokens where the scripts have 1024.
- Values are of beta1 = 0.5 and the regression of beta2 = 1e-3, so that the fixed point is shifted
  by a constant of each prompt. The law of the fixed point has one beta for both.
- Counts of completions are those of the second stage alone; the first takes eight a prompt.
- In the nano world each seed has values of its own, of 2,048 prompts.
- REBEL is printed and no method here. At cpu GRPO is the baseline that papers share, without KL.
- The peak memory is a share of the GPU's; Minerva and OlympiadBench are no benchmarks here.
- Data are joined here; the printed numbers are of models trained on MATH.
"""

from core.claims import Claim, early, late, law, least, probability, score, whole
from core.paper import Column, Paper, because, cite, in_regime, printed
from core.rewards import Accuracy

VALUES = "core.laws.values"
REWARD, KL = "reward", "kl_to_start"
COLUMNS = (
    "math500",
    "Minerva",
    "OlympiadBench",
    Column(benchmark="amc23", metric="avg@32"),
    Column(benchmark="training time", metric="time", unit="hours"),
    Column(benchmark="peak memory", metric="share of the GPU's"),
    Column(benchmark="KL to reference", metric="KL", unit="nats"),
)
STAGE = {"family": "optimal-value", "beta1": 0.5, "num_generations": 8}
SOLVED = score("nano-choice", temperature=1.0)
LEARNS = late(REWARD, 0.75).of("a2po-choice") - early(REWARD, 0.25).of("a2po-choice") >= 0.1
# What is left are easier prompts: many are never solved at the start.
LEAVES_OUT = early(REWARD, 0.25).of("filter-choice") - early(REWARD, 0.25).of("a2po-choice") >= 0.05


def values_of_nano(**changes: object) -> dict[str, object]:
    """The first stage in the nano world: the values of 2048 prompts, for each seed anew."""
    stage = in_regime("choice", beta1=0.5, num_generations=8, num_prompts=2048, **changes)
    return {"family": "optimal-value", "per_seed": True, **stage}


PAPER = Paper(
    slug="a2po",
    title="Accelerating RL for LLM Reasoning with Optimal Advantage Regression",
    arxiv="2505.20686",
    family="a2po",
    config=(
        cite("paper", beta2=1e-3, num_generations=1),
        cite("official scripts", learning_rate=1e-6, num_train_epochs=25.0),
        cite("official scripts", max_completion_length=1024),
        cite("official scripts: 256 prompts, 128 an update", per_device_train_batch_size=16),
        cite("official scripts: 256 prompts, 128 an update", gradient_accumulation_steps=8),
        cite("official scripts: 256 prompts, 128 an update", steps_per_generation=16),
        cite("unstated", temperature=1.0, lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(),),
    model="Qwen/Qwen2.5-1.5B",
    data="prepared:values",
    benchmarks=("math500", "amc23"),
    reported=printed(
        "main table",
        COLUMNS,
        "top1",
        {
            ("Qwen2.5", "1.5B"): (45.8, 16.91, 17.66, 20.55, None, None, None),
            ("PPO", "1.5B"): (57.0, 21.69, 20.92, 29.84, 10.84, 42.64, 0.151),
            ("GRPO", "1.5B"): (58.0, 22.79, 21.07, 32.19, 15.01, 42.19, 0.091),
            ("REBEL", "1.5B"): (57.8, 20.22, 23.15, 31.67, 10.33, 63.34, 0.098),
            ("A*-PO", "1.5B"): (57.8, 22.43, 22.26, 31.88, 6.92, 41.59, 0.069),
            ("Qwen2.5", "3B"): (50.8, 23.16, 23.74, 29.77, None, None, None),
            ("PPO", "3B"): (65.8, 23.9, 26.71, 34.68, 13.59, 54.95, 0.111),
            ("GRPO", "3B"): (66.0, 25.0, 28.93, 34.61, 18.26, 49.75, 0.102),
            ("REBEL", "3B"): (67.0, 27.57, 28.19, 36.33, 12.88, 74.32, 0.099),
            ("A*-PO", "3B"): (66.2, 25.74, 28.04, 35.47, 8.78, 49.28, 0.082),
            ("Qwen2.5", "7B"): (62.8, 22.43, 30.56, 39.61, None, None, None),
            ("PPO", "7B"): (74.4, 30.88, 33.98, 55.47, 20.53, 92.81, 0.133),
            ("GRPO", "7B"): (73.2, 33.46, 33.98, 55.86, 20.15, 77.82, 0.172),
            ("REBEL", "7B"): (74.6, 34.56, 34.72, 56.88, 14.67, 98.77, 0.124),
            ("A*-PO", "7B"): (76.2, 34.56, 34.27, 56.25, 11.01, 76.57, 0.078),
        },
    ),
    preparations={
        "values": {**STAGE, "data": "math", "at": {"cpu": {"data": "pocket"}}},
        "solved-values": {
            **STAGE,
            "data": "math",
            "filter_all_incorrect": True,
            "at": {"cpu": {"data": "pocket"}},
        },
        "values-choice": values_of_nano(),
        "solved-values-choice": values_of_nano(filter_all_incorrect=True),
    },
    arms={
        "a2po": {},
        "filter": {"data": "prepared:solved-values"},
        "grpo": {
            "family": "grpo",
            "data": "math",
            "loss_type": "grpo",
            "scale_rewards": "group",
            "beta": 0.0,
            "epsilon": 0.2,
            "at": {"cpu": {"data": "pocket", "regime": "on"}},
        },
        "a2po-choice": in_regime("choice", data="prepared:values-choice", beta2=1e-3),
        "filter-choice": in_regime("choice", data="prepared:solved-values-choice", beta2=1e-3),
        "grpo-choice": {"family": "grpo", **in_regime("choice", loss_type="grpo")},
    },
    trl_reasons=(
        because(
            "The entry names the trainer's betas and samples; by default it also drops prompts "
            "that the reference never solves and cuts answers at 256 tokens."
        ),
    ),
    profiles={
        "cpu": {
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
            "data": "prepared:values",
        },
        "gpu": {"data": "prepared:values"},
    },
    claims=(
        Claim(
            "value-limits",
            "A prompt's value is between the mean and the greatest reward, and rises as beta1 "
            "falls.",
            least(
                law(f"{VALUES}:value", 0.01) - law(f"{VALUES}:value", 0.5),
                law(f"{VALUES}:value", 0.5) - law(f"{VALUES}:value", 100.0),
                law(f"{VALUES}:value", 100.0) - 3 / 8,
                1.0 - law(f"{VALUES}:value", 0.01),
            )
            > 0,
        ),
        Claim(
            "value-consistent",
            "The value of eight samples is nearer to the prompt's than that of one.",
            law(f"{VALUES}:estimate_error", 8) < law(f"{VALUES}:estimate_error", 1),
        ),
        Claim(
            "regression-fixed-point",
            "The squared loss is least for the reference times exp(r / beta), normalised, where "
            "the value is exact and of the same beta.",
            law(f"{VALUES}:fixed_point_divergence").about(0.0, within=1e-9),
        ),
        Claim(
            "fewer-rollouts-per-update",
            "With as many completions, not counting those that the values take, it learns faster "
            "than GRPO: the reward is higher, on average over the training.",
            whole(REWARD).of("a2po-choice") > whole(REWARD).of("grpo-choice"),
            mechanism="baselines",
            acts=LEARNS,
        ),
        Claim(
            "lowest-kl",
            "The policy ends nearer to where it started than with GRPO.",
            probability(KL).of("a2po-choice") < probability(KL).of("grpo-choice"),
            mechanism="KL",
            acts=probability(KL).of("grpo-choice") >= 0.1,
        ),
        Claim(
            "accuracy-similar",
            "The accuracy is GRPO's or more.",
            SOLVED.of("a2po-choice") >= SOLVED.of("grpo-choice"),
            mechanism="baselines",
            acts=LEARNS,
        ),
        Claim(
            "filter-speeds",
            "After as many completions the policy is right more often if prompts that the start "
            "never solves are left out.",
            SOLVED.of("filter-choice") > SOLVED.of("a2po-choice"),
            mechanism="data",
            acts=LEAVES_OUT,
        ),
    ),
)
