"""ScaleRL, the recipe that a study of scaling curves leaves: CISPO and means over prompts.

Where the sources disagree, and what is not the paper's here:

- Training is asynchronous, up to 8 steps behind (PipelineRL-8); here a rollout is used up before
  the next one, and the arms update eight times with each.
- Thinking is cut off between 10k and 12k tokens, after which the answer is asked for: left out, as
  is the scale of the reward, which was not seen.
- TRL's 'batch' divides by the deviation of raw rewards, the paper by that of what is left without
  the group's mean. Its 'cispo' is a mean over all tokens, the paper's one over prompts.
- Clips and caps are compared in the world `choice` with 16 updates of a rollout, filters and
  deviations there with groups of 4, half of which are without signal. The curve that is foretold
  is that of the reward of a plain training there.
- The asymptotes and exponents are of fits over GPU hours of the authors.
"""

from core.claims import (
    Claim,
    Expected,
    early,
    final,
    fluctuation,
    foretold,
    late,
    law,
    spread,
    whole,
)
from core.paper import Paper, because, cite, in_regime, printed
from core.paper.printed import Column
from core.rewards import Accuracy

NOISE = 0.05  # of reward; the paper prints none
IDLE = "core.laws.tokens:idle_tokens"
ROUNDING = "core.laws.head_rounding:rounding_gap"
CLIPPED = {"loss_type": "dapo", "loss_aggregate": None, "scale_rewards": "group"}
REWEIGHTED = {"loss_aggregate": None, "scale_rewards": "group"}
EVERY = {"rollout_selection": "all"}
AS_DAPO = {"same_as": "dapo-0.28"}
SMALL_GROUPS = {"num_generations": 4, "max_steps": 80}  # of 16 answers most have a signal
# In the pocket world clips stop 0.5 % of the tokens, and hardly a weight reaches the cap.
CLIPS = whole("clip_ratio/region_mean").of("dapo-0.28-far") >= 0.02
CAPS = whole("cispo_clip_ratio").of("cispo-4-far") >= 0.001
IDLES = whole("frac_reward_zero_std").of("groups-of-4") >= 0.3
LEARNS = late("reward", 0.75).of("plain-choice") - early("reward", 0.25).of("plain-choice") >= 0.1

PAPER = Paper(
    slug="scalerl",
    title="The Art of Scaling Reinforcement Learning Compute for LLMs",
    arxiv="2510.13786",
    family="grpo",
    config=(
        cite("loss, eps_max", loss_type="cispo", epsilon_high=5.0),
        cite("loss", loss_aggregate="prompt_mean", scale_rewards="centred_batch", beta=0.0),
        cite("zero-variance filtering", rollout_selection="varied"),
        cite("no positive resampling", prompt_retirement=0.9),
        cite("FP32 logits", cast_lm_head_to_fp32=True),
        cite("batch of 48 prompts", num_generations=16, per_device_train_batch_size=16),
        cite("batch of 48 prompts", gradient_accumulation_steps=48),
        cite("lengths: 12,288 to think, 2,048 to answer", max_completion_length=14_336),
        cite("unstated", steps_per_generation=384, learning_rate=5e-7, temperature=1.0),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(),),
    model="Qwen/Qwen3-8B-Base",
    data="polaris-53k",
    benchmarks=("aime24", "math500"),
    reported=(
        *printed(
            "FP32 ablation",
            [Column(benchmark="held-out pass rate", metric="fitted asymptote", unit="")],
            "fitted asymptote",
            {("16-bit logits", "8B"): (0.52,), ("32-bit logits", "8B"): (0.61,)},
        ),
        *printed(
            "leave-one-out study",
            [Column(benchmark="held-out pass rate", metric="fitted exponent", unit="")],
            "fitted exponent",
            {("ScaleRL", "8B"): (2.01,), ("ScaleRL with DAPO's loss", "8B"): (1.77,)},
        ),
    ),
    arms={
        "scalerl": {},
        "all-groups": EVERY,
        "group-norm": {"scale_rewards": "group"},
        "cispo-4": REWEIGHTED | EVERY | {"epsilon_high": 4.0},
        "cispo-5": REWEIGHTED | EVERY,
        "cispo-8": REWEIGHTED | EVERY | {"epsilon_high": 8.0},
        "dapo-0.2": CLIPPED | EVERY | {"epsilon_high": 0.2},
        "dapo-0.28": CLIPPED | EVERY | {"epsilon_high": 0.28},
        "dapo-0.35": CLIPPED | EVERY | {"epsilon_high": 0.35},
        "tight-limit": CLIPPED
        | EVERY
        | {
            "epsilon_high": 0.28,
            "max_completion_length": 4096,
            "at": {"cpu": {"regime": "tight", "max_completion_length": 40}},
        },
        "generous-limit": CLIPPED
        | EVERY
        | {
            "epsilon_high": 0.28,
            "at": {"cpu": {"regime": "wide"}, "gpu": AS_DAPO, "paper": AS_DAPO},
        },
        "cispo-4-far": in_regime("choice-far", loss_type="cispo", epsilon_high=4.0),
        "cispo-5-far": in_regime("choice-far", loss_type="cispo", epsilon_high=5.0),
        "cispo-8-far": in_regime("choice-far", loss_type="cispo", epsilon_high=8.0),
        "dapo-0.2-far": in_regime("choice-far"),
        "dapo-0.28-far": in_regime("choice-far", epsilon_high=0.28),
        "dapo-0.35-far": in_regime("choice-far", epsilon_high=0.35),
        "groups-of-4": in_regime("choice", **SMALL_GROUPS),
        "varied-groups-of-4": in_regime("choice", **SMALL_GROUPS, rollout_selection="varied"),
        "batch-norm-groups-of-4": in_regime(
            "choice", **SMALL_GROUPS, scale_rewards="centred_batch"
        ),
        "plain-choice": in_regime("choice"),
    },
    trl_index={
        "loss_type": "cispo",
        "epsilon_high": 5.0,
        "num_generations": 16,
        "scale_rewards": "batch",
        "cast_lm_head_to_fp32": True,
    },
    trl_reasons=(
        because(
            "TRL's 'batch' is the deviation of the rewards, the paper's that of centred ones.",
            "scale_rewards",
        ),
        because("TRL's mean is over all tokens, the paper's over prompts.", "loss_aggregate"),
        because("TRL leaves no groups without a spread out.", "rollout_selection"),
    ),
    profiles={
        "cpu": {
            "regime": "off8",
            "cast_lm_head_to_fp32": False,  # the small policy computes in 32 bits
            "loss_type": "cispo",
            "epsilon_high": 5.0,
            "loss_aggregate": "prompt_mean",
            "scale_rewards": "centred_batch",
            "rollout_selection": "varied",
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
        },
        "gpu": {"gradient_accumulation_steps": 1},  # several updates of a rollout here too
    },
    claims=(
        Claim(
            "cispo-beats-dapo",
            "With several updates of a rollout CISPO's reward ends above that of DAPO's clip.",
            late("reward", 0.75).of("cispo-5-far") > late("reward", 0.75).of("dapo-0.28-far"),
            mechanism="clipping",
            acts=CLIPS,
            expects=Expected(effect=-0.012, spread=0.049),
        ),
        Claim(
            "cispo-cap-insensitive",
            "The cap of CISPO moves the last reward less than the upper clip of DAPO does.",
            spread(late("reward"), "cispo-4-far", "cispo-5-far", "cispo-8-far")
            < spread(late("reward"), "dapo-0.2-far", "dapo-0.28-far", "dapo-0.35-far"),
            mechanism="clipping",
            acts=(CLIPS, CAPS),
        ),
        Claim(
            "all-tokens-have-gradient",
            "Fewer tokens are without a gradient, at ratios from 0.1 to 6, than with a clip.",
            law(IDLE, "cispo", epsilon_high=5.0) < law(IDLE, "dapo", epsilon_high=0.28),
        ),
        Claim(
            "zero-variance-filter",
            "Where groups whose rewards agree are left out, the reward rises faster: its mean over "
            "training is higher.",
            whole("reward").of("varied-groups-of-4") > whole("reward").of("groups-of-4"),
            mechanism="groups without signal",
            acts=IDLES,
        ),
        Claim(
            "batch-vs-group-norm",
            "Divided by the deviation of the batch, advantages give no less reward over the whole "
            "of training than divided by the group's.",
            whole("reward").of("batch-norm-groups-of-4") >= whole("reward").of("groups-of-4"),
            mechanism="baselines",
            acts=IDLES,
        ),
        Claim(
            "fp32-head",
            "A head in 32 bits gives log-probabilities nearer to exact ones than one in 16 bits.",
            law(ROUNDING, "float32") < law(ROUNDING, "bfloat16"),
        ),
        Claim(
            "sigmoid-extrapolation",
            "A saturating curve that is fitted to the first half foretells the end.",
            foretold("reward")
            .of("plain-choice")
            .about(final("reward").of("plain-choice"), within=NOISE),
            mechanism="learning signal",
            acts=LEARNS,
        ),
        Claim(
            "truncation-instability",
            "Where many answers are cut, the reward fluctuates more late in training.",
            fluctuation("reward").of("tight-limit") > fluctuation("reward").of("generous-limit"),
            mechanism="length",
        ),
    ),
)
