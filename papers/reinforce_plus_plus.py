"""REINFORCE++ scales advantages over the whole batch, not in each group, and needs no critic.

Where the sources disagree, and what is not the paper's here:

- Version 1 is the form with one answer a prompt: the KL in the reward of each token, rewards to go,
  whitened over all tokens. Later versions add groups: the group's mean is taken off, the rest is
  divided by its deviation over the batch, and the KL is k2 in the loss; that form is `baseline`.
- TRL's entry is RLOO with advantages scaled over the batch: whole answers, leave-one-out, and a KL
  of the whole answer in the reward. It resembles the second form alone.
- The authors' framework and verl whiten over tokens, TRL over answers.
- All printed numbers are from a detailed secondary note. The run on 30 problems of AIME 2024 tells
  of memory; at cpu it is 30 problems of the pocket world.
- Rate, length and answers per update of its runs were not seen.
- Claims compare divisors alone: two arms on few problems, and two in the nano world of lengths.
"""

from core.claims import Claim, early, late, law, score
from core.paper import Column, Paper, because, cite, in_regime, printed
from core.rewards import Accuracy

BASELINES = "core.laws.baselines"
RIGHT, HELD_OUT = "rewards/accuracy/mean", "held_out/accuracy"
LENGTH = "completions/mean_length"
TINY_GLOBAL, TINY_GROUP = "tiny-global-norm", "tiny-group-norm"
LENGTHENS = late(LENGTH).of("group-norm-length") - early(LENGTH, 0.25).of("group-norm-length") >= 5
TINY = {"cpu": {"regime": "tiny"}, "gpu": {"data": "gsm8k"}, "paper": {"data": "aime24-asked"}}
GROUPS = {
    "advantage_estimator": "group",
    "num_generations": 16,
    "kl_coef": 0.0,
    "beta": 0.0,
}

PAPER = Paper(
    slug="reinforce-plus-plus",
    title="REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage "
    "Normalization",
    arxiv="2501.03262",
    family="grpo",
    config=(
        cite("paper", advantage_estimator="to_go", num_generations=1, kl_coef=0.001),
        cite("paper setup", epsilon=0.2),
        cite("unstated", beta=0.0, loss_type="dapo", learning_rate=1e-6, temperature=1.0),
        cite("unstated", per_device_train_batch_size=16, gradient_accumulation_steps=8),
        cite("unstated", steps_per_generation=8, max_completion_length=4096),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(),),
    model="Qwen/Qwen2.5-Math-7B",
    data="math",
    benchmarks=("math500", "aime24", "aime25"),
    reported=(
        *printed(
            "note, chat",
            (
                Column(benchmark="Chat-Arena-Hard", title="score", unit=""),
                Column(benchmark="Chat-Arena-Hard", title="length", metric="length", unit="tokens"),
                Column(
                    benchmark="Chat-Arena-Hard",
                    title="score per token",
                    metric="score per token",
                    unit="points/token",
                ),
            ),
            "score",
            {
                ("REINFORCE++, Llama-3 SFT", "8B"): (46.7, 832, 0.0561),
                ("GRPO k=4, Llama-3 SFT", "8B"): (46.8, 860, None),
                ("RLOO, Llama-3 SFT", "8B"): (44.6, 866, None),
                ("ReMax, Llama-3 SFT", "8B"): (45.1, 805, None),
            },
        ),
        *printed(
            "note, trained on AIME 2024",
            (
                Column(benchmark="aime24", title="trained on"),
                "aime25",
                Column(benchmark="aime25", title="aime25, pass@16", metric="pass@16"),
            ),
            "pass@1",
            {"GRPO": (95.0, 0.0, 0.4), "REINFORCE++": (71.0, 2.5, 40.0)},
        ),
        *printed(
            "note, logic and zero RL",
            ("Knights-and-Knaves", "aime24", "AMC", "math500"),
            "top1",
            {"GRPO": (55.7, 18.96, 59.22, 73.0), "REINFORCE++": (62.1, 21.04, 60.47, 72.0)},
        ),
        *printed(
            "note, tools",
            ("aime24", "aime25", "HMMT25", "HMMT24", "CMIMC", "Average5"),
            "top1",
            {
                "GRPO": (31.66, 21.87, 16.97, 17.7, 24.68, 22.58),
                "PPO": (30.2, 21.66, 15.0, 18.43, 23.95, 21.85),
                "REINFORCE++-baseline": (30.83, 27.18, 17.91, 18.95, 25.62, 24.1),
            },
        ),
    ),
    arms={
        "reinforce++": {},
        "baseline": {
            "advantage_estimator": "group",
            "scale_rewards": "centred_batch",
            "num_generations": 16,
            "kl_coef": 0.0,
            "beta": 0.001,
            "kl_estimator": "k2",
            "use_bias_correction_kl": False,
        },
        "group-norm": {
            "advantage_estimator": "group",
            "scale_rewards": "group",
            "num_generations": 16,
            "kl_coef": 0.0,
            "beta": 0.001,
            "kl_estimator": "k2",
            "use_bias_correction_kl": False,
        },
        "tiny-global-norm": {**GROUPS, "scale_rewards": "centred_batch", "at": TINY},
        "tiny-group-norm": {**GROUPS, "scale_rewards": "group", "at": TINY},
        "global-norm-length": in_regime("length", scale_rewards="centred_batch"),
        "group-norm-length": in_regime("length"),
    },
    trl_reasons=(
        because(
            "The entry is RLOO with `normalize_advantages` and a KL of 0.001 in the reward of "
            "whole answers, an approximation, as it says."
        ),
    ),
    profiles={
        "cpu": {
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
            "regime": "on",
            "num_generations": 1,
            "loss_type": "dapo",
        },
        "gpu": {"num_generations": 1},
    },
    claims=(
        Claim(
            "global-norm-unit-std",
            "Whitened advantages have mean 0 and deviation 1 over all tokens.",
            law(f"{BASELINES}:token_moments").about(0.0, within=1e-6),
        ),
        Claim(
            "group-norm-equalises-prompts",
            "The group's deviation gives a nearly solved prompt the scale of a mixed one, that of "
            "the batch leaves it smaller.",
            law(f"{BASELINES}:easy_weight", "centred_batch")
            < law(f"{BASELINES}:easy_weight", "group"),
        ),
        Claim(
            "less-overfit-on-tiny-set",
            "Trained on 30 problems the policy solves more others than with the group's deviation.",
            score("math500").of(TINY_GLOBAL) > score("math500").of(TINY_GROUP),
            mechanism="baselines",
        ),
        Claim(
            "generalisation-gap",
            "There it is less better on these problems than on others.",
            late(RIGHT).of(TINY_GLOBAL) - late(HELD_OUT).of(TINY_GLOBAL) / 100
            < late(RIGHT).of(TINY_GROUP) - late(HELD_OUT).of(TINY_GROUP) / 100,
            mechanism="baselines",
        ),
        Claim(
            "k2-gradient",
            "On policy the expected gradient of k2 is that of the KL, and that of k3 is not.",
            law("core.laws.kl_gradient:gradient_errors", "k2")
            < law("core.laws.kl_gradient:gradient_errors", "k3"),
        ),
        Claim(
            "length-efficiency",
            "The answers earn more reward a token than with the group's deviation.",
            late("reward").of("global-norm-length") / late(LENGTH).of("global-norm-length")
            > late("reward").of("group-norm-length") / late(LENGTH).of("group-norm-length"),
            mechanism="baselines",
            acts=LENGTHENS,
        ),
    ),
)
