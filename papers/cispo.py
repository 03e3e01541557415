"""CISPO caps the weight of a token instead of clipping its update, so that none loses its gradient.

Where the sources disagree, and what is not the paper's here:

- The upper width is not disclosed. ScaleRL (arXiv 2510.13786) reports that caps of 4 to 8 do
  alike; 5 is TRL's advice. verl's default is a cap of 1.2 with a lower one of 0.8, which is
  another method.
- In the paper the cap is 1 + eps_high, in TRL `epsilon_high` itself, and so it is here.
- The objective is a mean over each prompt's tokens; TRL takes one over all tokens, as is done
  here. `loss_aggregate="prompt_mean"` is the printed one.
- Generation that stops after 3,000 tokens of probability above 0.99 is not had here.
- The controlled comparison is on Qwen2.5-32B, whose settings are DAPO's where not stated;
  MiniMax-M1 itself trains on rows that were not published.
- How much faster CISPO learns is told by the mean of the whole reward curve; that it needs half
  the steps is not tested.
- VESPO's authors (arXiv 2602.10693) saw it collapse at 8 updates of a rollout on a mixture of
  experts.
"""

from core.claims import Claim, Expected, late, law, whole
from core.paper import Column, Evaluation, Paper, because, cite, in_regime, printed
from core.rewards import Accuracy, SoftOverlong

L_MAX, L_CACHE = 20_480, 4_096  # of DAPO
GAP, SILENT = "core.laws.gradients:gradient_gap", "core.laws.clipping:silent_tokens"
GREATEST, CAP = "core.laws.clipping:greatest_weights", "core.laws.clipping:cap"
RARE = late("ratio/rare_rise")
ROUNDING = "core.laws.head_rounding:lost_correlation"
LOSS = {"loss_type": "cispo", "epsilon_high": 5.0}
README = "README of MiniMax-M1"
# In the pocket world clips stop 0.5 % of the tokens.
CLIPS = whole("clip_ratio/region_mean").of("dapo-far") >= 0.02
CLIPS_HIGH = whole("clip_ratio/high_mean").of("symmetric-clip-far") >= 0.01

PAPER = Paper(
    slug="cispo",
    title="MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention",
    arxiv="2506.13585",
    family="grpo",
    config=(
        cite("s3.1", loss_type="cispo", beta=0.0, scale_rewards="group"),
        cite("s3.1", gradient_accumulation_steps=1, steps_per_generation=16),
        cite("s3.2", cast_lm_head_to_fp32=True),
        cite("s3.2", adam_beta1=0.9, adam_beta2=0.95, adam_epsilon=1e-15),
        cite("arXiv 2510.13786", epsilon_high=5.0),
        cite("arXiv 2503.14476 s4.1", per_device_train_batch_size=512, num_generations=16),
        cite("arXiv 2503.14476 s4.1", max_completion_length=L_MAX, learning_rate=1e-6),
        cite("unstated", temperature=1.0, lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(right=1.0, wrong=-1.0), SoftOverlong(L_MAX, L_CACHE)),
    model="Qwen/Qwen2.5-32B",
    data="dapo-math-17k",
    benchmarks=("aime24", "aime25", "math500"),
    evaluations=(Evaluation(temperature=1.0, top_p=0.95, passage=README),),
    reported=(
        *printed(
            README,
            (
                "aime24",
                "aime25",
                "math500",
                "LiveCodeBench",
                "GPQA-Diamond",
                "SWE-bench Verified",
                "MMLU-Pro",
            ),
            "accuracy",
            {
                ("MiniMax-M1-80k", "456B"): (86.0, 76.9, 96.8, 65.0, 70.0, 56.0, 81.1),
                ("MiniMax-M1-40k", "456B"): (83.3, 74.6, 96.0, 62.3, 69.2, 55.6, 80.6),
            },
        ),
        *printed(
            "s3.2",
            (Column(benchmark="probabilities of trainer and sampler", title="Correlation"),),
            "correlation",
            {"bf16 head": (0.987319,), "fp32 head": (0.997135,)},
            unit="",
        ),
        *printed(
            "arXiv 2602.10693 table 3",
            (Column(benchmark="Average4", title="Average"),),
            "accuracy",
            {("CISPO, Qwen3-A3B, 8 updates", "30B"): (48.7,)},
        ),
    ),
    arms={
        "cispo": {},
        "dapo": {"loss_type": "dapo", "epsilon": 0.2, "epsilon_high": 0.28},
        "grpo": {"loss_type": "grpo", "epsilon": 0.2, "epsilon_high": 0.2},
        "cispo-far": in_regime("choice-far", **LOSS),
        "dapo-far": in_regime("choice-far", epsilon_high=0.28),
        "symmetric-clip-far": in_regime("choice-far"),
    },
    profiles={
        "cpu": {
            "regime": "off8",
            **LOSS,
            "cast_lm_head_to_fp32": False,  # the pocket models have 32 bits throughout
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
        },
        "gpu": {
            "gradient_accumulation_steps": 2,
            "max_steps": 800,
            "heldout_every": 80,
            "rewards": (Accuracy(right=1.0, wrong=-1.0), SoftOverlong(1024, 205)),
            "max_completion_length": 1024,
        },
    },
    trl_reasons=(
        because(
            "TRL's cap is epsilon_high itself, the paper's 1 + eps_high: unset it is 0.2, "
            "and so is every weight. The index has the loss under ScaleRL alone."
        ),
        because("TRL has no dynamic sampling."),
    ),
    claims=(
        Claim(
            "no-zero-gradient-tokens",
            "Fewer tokens are without gradient than with a clip.",
            law(SILENT, "cispo") < law(SILENT, "grpo"),
        ),
        Claim(
            "bounded-weight",
            "No token weighs more than the cap.",
            law(GREATEST, "cispo") <= law(CAP, "cispo"),
        ),
        Claim(
            "equals-reinforce-on-policy",
            "At ratio 1 the gradient is that of the clipped objective.",
            law(GAP, "cispo", "dapo").about(0.0, within=1e-12),
        ),
        Claim(
            "faster-than-dapo",
            "The reward rises faster than with DAPO: its mean over training is higher.",
            whole("reward").of("cispo-far") > whole("reward").of("dapo-far"),
            mechanism="clipping",
            acts=CLIPS,
        ),
        Claim(
            "rare-tokens-survive",
            "Rare tokens of good answers gain more probability than with a clip.",
            RARE.of("cispo-far") > RARE.of("symmetric-clip-far"),
            mechanism="clipping",
            acts=CLIPS_HIGH,
            expects=Expected(effect=0.047, spread=0.02),
        ),
        Claim(
            "fp32-head-correlation",
            "A head in 32 bits gives probabilities that agree better with exact ones than in 16.",
            law(ROUNDING, "float32") < law(ROUNDING, "bfloat16"),
        ),
    ),
)
