"""Truncated importance sampling: a token weighs by how much less often the engine samples it.

Where the sources disagree, and what is not the paper's here:

- The source is a blog that prints curves alone; the cap of 2 is that of TRL's index and verl's
  default, where the authors' own example has 10. TRL cites another paper for truncated ratios,
  Retrace (arXiv 1606.02647).
- TRL's default is another correction: completions whose whole ratio is above 3 are left out.
- The blog's runs are DAPO on 32B and PPO on GSM8K with a sampler of 8 bits; here it is DAPO's loss,
  and at cpu a sampler whose weights are rounded to 4 bits.
"""

from core.claims import START, Claim, Expected, late, law, probability, score
from core.paper import Paper, because, cite, in_regime
from core.rewards import Accuracy

SAMPLING = "core.laws.sampling"
GAP = "sampling/sampling_logp_difference/mean"
SOLVED = score("nano-many", temperature=1.0)
WEIGHTS = {
    "vllm_importance_sampling_correction": True,
    "vllm_importance_sampling_mode": "token_truncate",
    "vllm_importance_sampling_clip_max": 2.0,
}
NONE = {"vllm_importance_sampling_correction": False}
# Sampler and policy differ by this much, in nats a token: in the pocket world 4 bits cost nothing.
FEW_BITS_DIFFER = late(GAP, 0).of("none-3-bits") >= 0.2
OLD_DIFFERS = late(GAP, 0).of("none-lag") >= 0.2
LARGEST_IN_LONG = probability("largest_sampler_difference/long_answers").of(START)
LARGEST_IN_SHORT = probability("largest_sampler_difference/short_answers").of(START)

PAPER = Paper(
    slug="tis",
    title="Your Efficient RL Framework Secretly Brings You Off-Policy RL Training",
    url="https://fengyao.notion.site/off-policy-rl",
    family="grpo",
    config=(
        cite("blog", use_vllm=True, vllm_importance_sampling_correction=True),
        cite("blog", vllm_importance_sampling_mode="token_truncate"),
        cite("TRL's paper index, verl's default", vllm_importance_sampling_clip_max=2.0),
        cite("blog, 32B run", loss_type="dapo"),
        cite("unstated", beta=0.0, epsilon=0.2, learning_rate=1e-6, temperature=1.0),
        cite("unstated", num_generations=16, per_device_train_batch_size=16),
        cite("unstated", gradient_accumulation_steps=32, steps_per_generation=32),
        cite("unstated", max_completion_length=20_480, lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(),),
    model="Qwen/Qwen2.5-32B",
    data="dapo-math-17k",
    benchmarks=("aime24", "math500"),
    arms={
        "tis": {},
        "no-correction": NONE,
        "tis-3-bits": in_regime("many", rollout_bits=3, **WEIGHTS),
        "none-3-bits": in_regime("many", rollout_bits=3, **NONE),
        "tis-lag": in_regime("many", rollout_lag=64, **WEIGHTS),
        "none-lag": in_regime("many", rollout_lag=64, **NONE),
    },
    trl_index={
        "use_vllm": True,
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": "sequence_truncate",
        "vllm_importance_sampling_clip_max": 2.0,
    },
    trl_reasons=(
        because(
            "The blog weighs tokens; the entry shows the weight of whole completions first.",
            "vllm_importance_sampling_mode",
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
            "weight-one-without-mismatch",
            "Where the sampler is the policy, the weights change no expected gradient.",
            law(f"{SAMPLING}:change_when_equal", "token_truncate", clip_max=2.0).about(
                0.0, within=1e-12
            ),
        ),
        Claim(
            "bias-reduction",
            "Under another sampler truncated weights make the greatest error of the expected "
            "gradient over all advantages smaller than it is without weights.",
            law(f"{SAMPLING}:worst_bias", "token_truncate", clip_max=2.0)
            < law(f"{SAMPLING}:worst_bias"),
        ),
        Claim(
            "variance-bounded",
            "Under a far sampler truncation makes the variance of the gradient smaller, meant over "
            "the signs of the advantages.",
            law(f"{SAMPLING}:gradient_variance", "token_truncate", clip_max=2.0)
            < law(f"{SAMPLING}:gradient_variance", "token_truncate"),
        ),
        Claim(
            "recovers-quantised-rollouts",
            "With a sampler of few bits the trained policy is right more often with the weights.",
            SOLVED.of("tis-3-bits") > SOLVED.of("none-3-bits"),
            mechanism="off-policy correction",
            acts=FEW_BITS_DIFFER,
            expects=Expected(effect=7.0, spread=2.5),
        ),
        Claim(
            "recovers-old-rollouts",
            "With a sampler eight rollouts old the trained policy is right more often with them.",
            SOLVED.of("tis-lag") > SOLVED.of("none-lag"),
            mechanism="off-policy correction",
            acts=OLD_DIFFERS,
            expects=Expected(effect=9.3, spread=4.0),
            healthy=("tis-lag",),  # that training fails without it is the claim
        ),
        Claim(
            "quantised-rollouts-reward",
            "With a sampler of few bits its own answers are rewarded more with the weights.",
            late("reward").of("tis-3-bits") > late("reward").of("none-3-bits"),
            mechanism="off-policy correction",
            acts=FEW_BITS_DIFFER,
            expects=Expected(effect=-0.024, spread=0.011),
        ),
        Claim(
            "entropy-not-collapsing",
            "With an old sampler the entropy ends higher with the weights than without.",
            late("entropy").of("tis-lag") > late("entropy").of("none-lag"),
            mechanism="off-policy correction",
            acts=OLD_DIFFERS,
            expects=Expected(effect=-0.048, spread=0.075),
            healthy=("tis-lag",),  # that training fails without it is the claim
        ),
        Claim(
            "mismatch-grows-with-length",
            "The largest difference of probabilities within an answer is larger in long answers.",
            LARGEST_IN_LONG > LARGEST_IN_SHORT,
            mechanism="off-policy correction",
            describes="the largest of more differences is larger, whatever they are",
        ),
    ),
)
