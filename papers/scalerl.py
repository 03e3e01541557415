"""ScaleRL, the recipe that a study of scaling curves leaves: CISPO and means over prompts.

Where the sources disagree, and what is not the paper's here:

- Training is asynchronous, up to 8 steps behind (PipelineRL-8); here a rollout is used up before
  the next one, and the arms update eight times with each.
- Thinking is cut off between 10k and 12k tokens, after which the answer is asked for: left out, as
  is the scale of the reward, which was not seen.
- TRL's 'batch' divides by the deviation of raw rewards, the paper by that of what is left without
  the group's mean. Its 'cispo' is a mean over all tokens, the paper's one over prompts.
- The asymptotes and exponents are of fits over GPU hours of the authors.
"""

from core.claims import (
    Claim,
    final,
    fluctuation,
    foretold,
    late,
    law,
    least,
    spread,
    when,
)
from core.paper import Paper, because, cite, printed
from core.paper.printed import Column
from core.rewards import Accuracy

HELD_OUT, EFFECTIVE = "held_out/accuracy", "num_effective_prompts"
NOISE = 5.0  # points, nearly two standard errors of 300 held-out answers; the paper prints none
IDLE = "core.laws.tokens:idle_tokens"
ROUNDING = "core.laws.head_rounding:rounding_gap"
BOTH = least(final(EFFECTIVE).of("scalerl"), final(EFFECTIVE).of("all-groups"))
CLIPPED = {"loss_type": "dapo", "loss_aggregate": None, "scale_rewards": "group"}
REWEIGHTED = {"loss_aggregate": None, "scale_rewards": "group"}
EVERY = {"rollout_selection": "all"}
AS_DAPO = {"same_as": "dapo-0.28"}

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
            late("reward", 0.75).of("cispo-5") > late("reward", 0.75).of("dapo-0.28"),
            mechanism="clipping",
        ),
        Claim(
            "cispo-cap-insensitive",
            "The cap of CISPO moves the last reward less than the upper clip of DAPO does.",
            spread(late("reward"), "cispo-4", "cispo-5", "cispo-8")
            < spread(late("reward"), "dapo-0.2", "dapo-0.28", "dapo-0.35"),
            mechanism="clipping",
        ),
        Claim(
            "all-tokens-have-gradient",
            "Fewer tokens are without a gradient, at ratios from 0.1 to 6, than with a clip.",
            law(IDLE, "cispo", epsilon_high=5.0) < law(IDLE, "dapo", epsilon_high=0.28),
        ),
        Claim(
            "zero-variance-filter",
            "Without groups whose rewards agree, accuracy is higher after as many prompts that do "
            "teach something.",
            when(HELD_OUT, EFFECTIVE, BOTH).of("scalerl")
            > when(HELD_OUT, EFFECTIVE, BOTH).of("all-groups"),
            mechanism="groups without signal",
        ),
        Claim(
            "batch-vs-group-norm",
            "Dividing by the deviation of the batch ends no less accurate than by the group's.",
            final(HELD_OUT).of("scalerl") >= final(HELD_OUT).of("group-norm"),
            mechanism="baselines",
        ),
        Claim(
            "fp32-head",
            "A head in 32 bits gives log-probabilities nearer to exact ones than one in 16 bits.",
            law(ROUNDING, "float32") < law(ROUNDING, "bfloat16"),
        ),
        Claim(
            "sigmoid-extrapolation",
            "A saturating curve that is fitted to the first half foretells the end.",
            foretold(HELD_OUT).of("scalerl").about(final(HELD_OUT).of("scalerl"), within=NOISE),
            mechanism="learning signal",
        ),
        Claim(
            "truncation-instability",
            "Where many answers are cut, the reward fluctuates more late in training.",
            fluctuation("reward").of("tight-limit") > fluctuation("reward").of("generous-limit"),
            mechanism="length",
        ),
    ),
)
