"""GSPO takes one ratio for an answer, the geometric mean of its tokens', and clips whole answers.

Where the sources disagree, and what is not the paper's here:

- The paper prints curves alone, no table; learning rate, group size and lengths are not stated.
- That there is no KL is said by its authors in a discussion of verl's code, not in the paper.
- A rollout is cut into 4 parts in the paper; the regime of the small scale has 8 updates.
- The queries and the cold start from Qwen3-30B-A3B-Base were not published; the base model is
  named instead. LiveCodeBench and CodeForces are no benchmarks here.
- ScaleRL (arXiv 2510.13786) found clips of 3e-4 poor and took 4e-3 to 5e-3. Short answers need
  wider ones: the reward is compared in the world `choice` with a clip of 0.15, which stops as many
  tokens (8 %) as a clip of tokens at 0.2 does (7 %).
"""

from core.claims import Claim, Expected, Untestable, late, law, whole
from core.paper import Evaluation, Paper, cite, in_regime
from core.rewards import Accuracy

GAP, VARIANCE = "core.laws.gradients:gradient_gap", "core.laws.ratios:weight_variance"
CLIPPED = "clip_ratio/region_mean"
SPREAD, SHRUNK = "core.laws.ratios:log_spread", "core.laws.ratios:shrunk_spread"
LOSS = {"loss_type": "grpo", "importance_sampling_level": "sequence"}
CLIP = {"epsilon": 3e-4, "epsilon_high": 4e-4}

PAPER = Paper(
    slug="gspo",
    title="Group Sequence Policy Optimization",
    arxiv="2507.18071",
    family="grpo",
    config=(
        cite("objective of GSPO", **LOSS),
        cite("s5.1", **CLIP),
        cite("s5.1", gradient_accumulation_steps=1, steps_per_generation=4),
        cite("discussion of verl pull request 2775", beta=0.0),
        cite("definition of the advantage", scale_rewards="group"),
        cite("unstated", learning_rate=1e-6, lr_scheduler_type="constant", temperature=1.0),
        cite("unstated", num_generations=8, per_device_train_batch_size=64),
        cite("unstated", max_completion_length=32_768),
    ),
    rewards=(Accuracy(),),
    model="Qwen/Qwen3-30B-A3B-Base",
    data="gspo-queries",
    benchmarks=("aime24",),
    evaluations=(Evaluation(samples=32, temperature=1.0, passage="s5.1; temperature unstated"),),
    arms={
        "gspo": {},
        "grpo": {"importance_sampling_level": "token", "epsilon": 0.2, "epsilon_high": 0.27},
        "gspo-far": in_regime("choice-far", importance_sampling_level="sequence", epsilon=0.15),
        "grpo-far": in_regime("choice-far"),
    },
    profiles={
        "cpu": {
            "regime": "off8",
            **LOSS,
            **CLIP,
            "twins": {"aime24": "pocket-math"},
            "eval_limit": 60,
        },
        "gpu": {"gradient_accumulation_steps": 2, "max_steps": 800, "heldout_every": 80},
    },
    trl_index={
        **LOSS,
        **CLIP,
        "beta": 0.0,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 4,
    },
    claims=(
        Claim(
            "equal-when-on-policy",
            "With one update a rollout the gradient is that of GRPO.",
            law(GAP, "gspo", "grpo").about(0.0, within=1e-12),
        ),
        Claim(
            "ratio-dispersion",
            "The logarithm of an answer's ratio spreads less than a token's, by the square root of "
            "the length if tokens move independently.",
            law(SPREAD, "sequence").about(law(SHRUNK), within=1e-12),
        ),
        Claim(
            "clip-fraction",
            "A larger share of tokens is clipped than with GRPO.",
            late(CLIPPED).of("gspo") > late(CLIPPED).of("grpo"),
            mechanism="sequence ratios",
            describes="the paper's clips of GSPO are a thousandth as wide as those of GRPO, and "
            "ratios of answers of 39 tokens spread by a sixth of those of tokens",
        ),
        Claim(
            "training-efficiency",
            "Where it clips as much, the reward of the whole training is at least that of GRPO.",
            whole("reward").of("gspo-far") >= whole("reward").of("grpo-far"),
            mechanism="sequence ratios",
            acts=whole(CLIPPED).of("gspo-far") >= 0.02,
            expects=Expected(effect=0.026, spread=0.029),
        ),
        Claim(
            "equal-token-weights",
            "Off policy the weights of the tokens of one answer vary less than with GRPO.",
            law(VARIANCE, "gspo") < law(VARIANCE, "grpo"),
        ),
        Claim(
            "moe-without-routing-replay",
            "A mixture of experts trains without replaying its routes, where GRPO fails.",
            Untestable("needs a mixture of experts whose routing is unstable"),
        ),
    ),
)
