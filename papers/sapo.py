"""SAPO replaces the clip by a smooth gate of each token's ratio, hotter for negative advantages.

Where the sources disagree, and what is not the paper's here:

- The paper was read through detailed notes and verl's code; it prints curves alone, no table.
- No KL is told of; learning rate, group size and lengths are not stated.
- A rollout is cut into 4 parts in the paper; the regime of the small scale has 8 updates.
- Queries and cold start from Qwen3-30B-A3B-Base were not published; the base model is named. Of
  the three sets that it is scored on, HMMT25 and BeyondAIME are no benchmarks here.
- That the mean of the gates is near the gate of the mean is told of log ratios, for small steps.
  As a law it holds of the ratios' distances from 1, and so it is tested.
- The claim on stability orders three temperatures; the hottest and the coolest are compared.
- In the nano world answers are short, so that GSPO's ratio varies more: its clip there is 0.15.
- VESPO's authors (arXiv 2602.10693) find that it collapses at 32 updates of a rollout and more.
"""

from core.claims import Claim, Expected, fluctuation, late, law
from core.paper import Evaluation, Paper, cite, in_regime
from core.rewards import Accuracy

SLOPES, LEAST = "core.laws.gates:gate_slopes", "core.laws.gates:least_weights"
WEIGHT = "core.laws.gates:loss_weight"
ERRORS, BOUNDS = "core.laws.gates:mean_gate_errors", "core.laws.gates:mean_gate_bounds"

PAPER = Paper(
    slug="sapo",
    title="Soft Adaptive Policy Optimization",
    arxiv="2511.20347",
    family="grpo",
    config=(
        cite("objective of SAPO", loss_type="sapo", scale_rewards="group"),
        cite("experiments", sapo_temperature_pos=1.0, sapo_temperature_neg=1.05),
        cite("experiments", gradient_accumulation_steps=1, steps_per_generation=4),
        cite("unstated", beta=0.0, learning_rate=1e-6, lr_scheduler_type="constant"),
        cite("unstated", num_generations=8, per_device_train_batch_size=64, temperature=1.0),
        cite("unstated", max_completion_length=32_768),
    ),
    rewards=(Accuracy(),),
    model="Qwen/Qwen3-30B-A3B-Base",
    data="sapo-queries",
    benchmarks=("aime25",),
    evaluations=(
        Evaluation(samples=16, temperature=1.0, passage="experiments; temperature unstated"),
    ),
    arms={
        "sapo": {},
        "tau-0.95": {"sapo_temperature_neg": 0.95},
        "gspo": {
            "loss_type": "grpo",
            "importance_sampling_level": "sequence",
            "epsilon": 3e-4,
            "epsilon_high": 4e-4,
            "sapo_temperature_neg": 1.05,
        },
        "sapo-far": in_regime("choice-far", loss_type="sapo", sapo_temperature_neg=1.05),
        "gspo-far": in_regime(
            "choice-far", loss_type="grpo", importance_sampling_level="sequence", epsilon=0.15
        ),
    },
    profiles={
        "cpu": {
            "regime": "off8",
            "loss_type": "sapo",
            "twins": {"aime25": "pocket-math"},
            "eval_limit": 120,
        },
        "gpu": {"gradient_accumulation_steps": 2, "max_steps": 800, "heldout_every": 80},
    },
    trl_index={
        "loss_type": "sapo",
        "sapo_temperature_pos": 1.0,
        "sapo_temperature_neg": 1.05,
        "scale_rewards": "group",
    },
    claims=(
        Claim(
            "gate-value-gradient",
            "The slope of the gate at ratio 1 is 1 at every temperature.",
            law(SLOPES, 1.0).about(1.0, within=1e-12),
        ),
        Claim(
            "no-hard-zero",
            "Between ratios of 0.5 and 2 no token is without gradient, as some are with a clip.",
            law(LEAST, "sapo") > law(LEAST, "grpo"),
        ),
        Claim(
            "neg-temperature-damps",
            "A hotter gate gives tokens with negative advantage less weight off policy.",
            law(WEIGHT, 1.5, 1.05) < law(WEIGHT, 1.5, 0.95),
        ),
        Claim(
            "stability",
            "With many updates of a rollout the reward ends higher than with GSPO.",
            late("reward").of("sapo-far") > late("reward").of("gspo-far"),
            mechanism="clipping",
            acts=late("clip_ratio/region_mean", 0).of("gspo-far") >= 0.02,
            expects=Expected(effect=-0.01, spread=0.036),
            healthy=("sapo-far",),  # that training with GSPO collapses is the claim
        ),
        Claim(
            "temperature-order",
            "The reward fluctuates less at a negative temperature of 1.05 than at 0.95.",
            fluctuation("reward").of("sapo") < fluctuation("reward").of("tau-0.95"),
            mechanism="clipping",
        ),
        Claim(
            "approximates-sequence-gate",
            "The mean slope of an answer's gates is that at the mean ratio, but for at most "
            "tau^2 / 4 times the variance.",
            law(ERRORS, 1.05) <= law(BOUNDS, 1.05),
        ),
    ),
)
