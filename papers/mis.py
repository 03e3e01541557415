"""Masked importance sampling (IcePop): tokens on which the engine disagrees much are left out.

Where the sources disagree, and what is not the paper's here:

- The bounds are 0.5 and 5; TRL's paper index prints 0.5 and 2, and shows the mask of whole
  completions first, which is stricter and another method.
- That few tokens are masked, in the order of one in a thousand, stands in notes on the blog alone.
- The method is a section of the paper on Ring-1T, a mixture of experts, where sampler and trainer
  differ most; the printed number is of Ring-mini-2.0. Neither prompts nor rewards were released.
- A masked weight has a smaller second moment than a truncated one, and not always a smaller
  variance: what is 0 beside a ratio of 1.6 lies further from it than 0.4 does.
- The learning-rate schedule and the updates per rollout are not printed: constant, and one.
- In the paper sampler and trainer differ by their arithmetic; in the world `many` the sampler has
  the weights of 64 updates before, which differ more.
"""

from core.claims import Claim, Expected, late, law, score, whole
from core.paper import Paper, because, cite, in_regime, printed
from core.rewards import Accuracy

SAMPLING = "core.laws.sampling"
GAP = "sampling/sampling_logp_difference/mean"
SOLVED = score("nano-many", temperature=1.0)
MASK = {
    "vllm_importance_sampling_correction": True,
    "vllm_importance_sampling_mode": "token_mask",
    "vllm_importance_sampling_clip_min": 0.5,
    "vllm_importance_sampling_clip_max": 5.0,
}
NONE = {"vllm_importance_sampling_correction": False}
# Sampler and policy differ by this much, in nats a token: in the pocket world 4 bits cost nothing.
DIFFERS = whole(GAP).of("none-lag") >= 0.2

PAPER = Paper(
    slug="mis",
    title="Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale Thinking Model",
    arxiv="2510.18855",
    family="grpo",
    config=(
        cite("IcePop", use_vllm=True, vllm_importance_sampling_correction=True),
        cite("IcePop", vllm_importance_sampling_mode="token_mask"),
        cite("IcePop", vllm_importance_sampling_clip_min=0.5),
        cite("IcePop", vllm_importance_sampling_clip_max=5.0),
        cite("IcePop, objective", loss_type="grpo"),
        cite("RL setup", learning_rate=2e-6, beta=0.0, temperature=1.0),
        cite("RL setup", num_generations=8, max_completion_length=65_536),
        cite("RL setup, 480 prompts", per_device_train_batch_size=8, steps_per_generation=480),
        cite("unstated", gradient_accumulation_steps=480, epsilon=0.2),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(),),
    model="inclusionAI/Ring-1T",
    data="icepop-queries",
    benchmarks=("aime25", "math500"),
    reported=printed(
        "IcePop blog",
        ["aime25"],
        "avg@64",
        {("Ring-mini-2.0, start of the study", "16.8B"): (63.0,)},
    ),
    arms={
        "mis": {},
        "no-correction": NONE,
        "mis-lag": in_regime("many", rollout_lag=64, **MASK),
        "none-lag": in_regime("many", rollout_lag=64, **NONE),
    },
    trl_index={
        "use_vllm": True,
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": "sequence_mask",
        "vllm_importance_sampling_clip_min": 0.5,
        "vllm_importance_sampling_clip_max": 2.0,
    },
    trl_reasons=(
        because(
            "IcePop masks tokens; the entry shows the mask of whole completions first.",
            "vllm_importance_sampling_mode",
        ),
        because(
            "IcePop keeps ratios up to 5; the entry's bound is stricter.",
            "vllm_importance_sampling_clip_max",
        ),
    ),
    profiles={
        "cpu": {
            "regime": "int4",
            "loss_type": "dapo",
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
        }
    },
    claims=(
        Claim(
            "mask-is-zero-outside",
            "The gradient of a token is multiplied by its ratio, or by 0 outside of the bounds.",
            law(f"{SAMPLING}:weights", "token_mask", 0.5, 5.0).about(
                law(f"{SAMPLING}:ratios_within", 0.5, 5.0), within=1e-12
            ),
        ),
        Claim(
            "mis-vs-tis-noise",
            "Far from the sampler the weight has a smaller second moment masked than truncated.",
            law(f"{SAMPLING}:second_moment", "token_mask", clip_min=0.5, clip_max=5.0)
            < law(f"{SAMPLING}:second_moment", "token_truncate", clip_max=5.0),
        ),
        Claim(
            "bounded-discrepancy",
            "With an old sampler the policy ends nearer to it with the mask than without.",
            late(GAP).of("mis-lag") < late(GAP).of("none-lag"),
            mechanism="off-policy correction",
            acts=DIFFERS,
            expects=Expected(effect=-0.32, spread=0.14),
            healthy=("mis-lag",),  # that training fails without it is the claim
        ),
        Claim(
            "mis-vs-none",
            "With an old sampler the trained policy is right more often with the mask.",
            SOLVED.of("mis-lag") > SOLVED.of("none-lag"),
            mechanism="off-policy correction",
            acts=DIFFERS,
            expects=Expected(effect=8.9, spread=1.8),
            healthy=("mis-lag",),  # that training fails without it is the claim
        ),
        Claim(
            "few-tokens-masked",
            "Less than a twentieth of the tokens is masked.",
            whole("sampling/masked_fraction").of("mis-lag") < 0.05,
            describes="the share follows from how far the sampler is from the policy",
            mechanism="off-policy correction",
        ),
    ),
)
