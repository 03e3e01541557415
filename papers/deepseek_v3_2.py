"""DeepSeek-V3.2 keeps GRPO stable: an unbiased KL, and wrong answers far off the policy left out.

Where the sources disagree, and what is not the paper's here:

- The paper prints neither the threshold of the mask nor the weight of the KL: 0.5 is what TRL's
  paper index suggests, 0.001 is that of DeepSeek-R1.
- Its advantages are not divided by a deviation; the entry in the index leaves TRL's default, which
  divides. The entry says that the corrected KL must be asked for; since TRL 1.16 it is the default.
- Times the ratio of a whole completion, as with levels other than `token`, k3 is not unbiased.
- The route of each token through the experts is kept from sampling to training; no policy here is
  a mixture of experts.
- How far its sampler truncates is not printed, so that the settings keep no support either.
- Rewards were not published but for their kinds; the accuracy reward stands for them.
- At cpu the threshold is one that the drift of the small policy reaches: 0.01 in the pocket world
  and 0.1 in the nano world.
"""

from core.claims import Claim, Expected, late, law
from core.paper import Paper, because, cite, in_regime
from core.rewards import Accuracy

KL, MASKS = "core.laws.kl_correction", "core.laws.masks"

PAPER = Paper(
    slug="deepseek-v3-2",
    title="DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models",
    arxiv="2512.02556",
    family="grpo",
    config=(
        cite("objective", loss_type="grpo", importance_sampling_level="token"),
        cite("advantages", scale_rewards="none"),
        cite("unbiased KL estimate", use_bias_correction_kl=True),
        cite("TRL's paper index", beta=0.001, off_policy_mask_threshold=0.5),
        cite("unstated", epsilon=0.2, learning_rate=1e-6, temperature=1.0, num_generations=16),
        cite("unstated", per_device_train_batch_size=16, gradient_accumulation_steps=32),
        cite("unstated", steps_per_generation=256, max_completion_length=32_768),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(),),
    model="deepseek-ai/DeepSeek-V3.2",
    data="deepseek-v3-2-mix",
    benchmarks=("aime25", "math500"),
    arms={
        "masked": {},
        "unmasked": {"off_policy_mask_threshold": None},
        "masked-far": in_regime("choice-far", off_policy_mask_threshold=0.1, scale_rewards="none"),
        "unmasked-far": in_regime("choice-far", scale_rewards="none"),
    },
    trl_index={
        "loss_type": "grpo",
        "beta": 0.001,
        "use_bias_correction_kl": True,
        "off_policy_mask_threshold": 0.5,
    },
    trl_reasons=(
        because(
            "The entry leaves TRL's default, which divides advantages by the group's deviation.",
            "scale_rewards",
        ),
        because("TRL keeps neither the experts' routes nor the sampler's support."),
    ),
    profiles={
        "cpu": {
            "regime": "off16",
            "beta": 0.0,
            # Mean log-ratios of answers deviate by 0.007 to 0.02 over the updates of a rollout.
            "off_policy_mask_threshold": 0.01,
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
        },
        "gpu": {"gradient_accumulation_steps": 1},  # several updates of a rollout here too
    },
    claims=(
        Claim(
            "unbiased-kl-value",
            "With tokens of an older policy, the mean of k3 times the ratio is nearer to the KL "
            "than that of k3.",
            law(f"{KL}:value_error", corrected=True) < law(f"{KL}:value_error", corrected=False),
        ),
        Claim(
            "unbiased-kl-gradient",
            "Its expected gradient is nearer to that of the KL, even where the policy samples.",
            law(f"{KL}:gradient_error", corrected=True)
            < law(f"{KL}:gradient_error", corrected=False),
        ),
        Claim(
            "bounded-weight",
            "At a token far below the reference its gradient is smaller than that of k3.",
            law(f"{KL}:gradient_far_below", corrected=True)
            < law(f"{KL}:gradient_far_below", corrected=False),
        ),
        Claim(
            "mask-only-negative",
            "The mask leaves out wrong answers beyond the threshold, all of them and no others.",
            law(f"{MASKS}:wrongly_treated", 0.5) == 0.0,
        ),
        Claim(
            "mask-stabilises",
            "With many updates of a rollout the reward ends no lower with the mask.",
            late("reward").of("masked-far") >= late("reward").of("unmasked-far"),
            mechanism="reuse of rollouts",
            # the mean log-ratios of answers deviate by the threshold of the mask
            acts=late("ratio/sequence_log_std", 0).of("unmasked-far") >= 0.1,
            expects=Expected(effect=0.0036, spread=0.017),
            healthy=("masked-far",),  # that training fails without it is the claim
        ),
        Claim(
            "kl-unaffected-by-mask",
            "An answer that is left out is still pulled to the reference.",
            law(f"{MASKS}:gradient_of_masked", 0.5, 0.001) > 0.0,
        ),
        Claim(
            "sampling-mask-consistency",
            "Under top-p, keeping the sampler's support makes the ratio of equal weights 1.",
            law("core.laws.support:ratio_error", keeps_support=True)
            < law("core.laws.support:ratio_error", keeps_support=False),
        ),
    ),
)
