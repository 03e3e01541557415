"""GMPO takes the geometric mean of an answer's clipped ratios, so that outliers weigh less.

Where the sources disagree, and what is not the paper's here:

- Clipping is of each token's log ratio and on the gain's side alone; `epsilon` is of logarithms.
- Advantages have no deviation, as in Dr. GRPO, whose settings the paper takes; TRL's trainer
  leaves it in unless `scale_rewards="none"` is set.
- The claim on outliers is told of the gradient of the other tokens. There GRPO is the robust one:
  one token's ratio does not enter the weights of the others. What does change less is the loss of
  an answer, where the outlier is its greatest ratio; that is tested.
- The ablations come from notes on the paper; a model is printed as 'Qwen3-32B' where a mixture of
  experts is meant. Geometry3K has images and is not trained on here.
- In the world `choice` GMPO is compared with a clip of tokens under DAPO's mean over tokens, also
  without a deviation. There the reward of the whole training stands for the final accuracy.
- The averages are of five benchmarks, of which Minerva and OlympiadBench are none here.
"""

from core.claims import Claim, Expected, fluctuation, late, law, probability, whole
from core.paper import Paper, because, cite, in_regime, printed
from core.rewards import Accuracy

COLUMNS = ("aime24", "amc23", "math500", "Minerva", "OlympiadBench", "Average")
KL = probability("kl_to_start")
SIZES, OUTLIER = "core.laws.ratios:objective_sizes", "core.laws.ratios:outlier_effects"
LOSS = {"loss_type": "gmpo", "epsilon": 0.4, "scale_rewards": "none"}
CLIPS = whole("clip_ratio/region_mean").of("gmpo-far") >= 0.02

PAPER = Paper(
    slug="gmpo",
    title="Geometric-Mean Policy Optimization",
    arxiv="2507.20673",
    family="grpo",
    config=(
        cite("s4", **LOSS),
        cite("s4", beta=0.0, num_generations=8, max_completion_length=3000),
        cite("s4", per_device_train_batch_size=128, steps_per_generation=8),
        cite("s4", gradient_accumulation_steps=1),
        cite("unstated", learning_rate=1e-6, lr_scheduler_type="constant", temperature=1.0),
    ),
    rewards=(Accuracy(),),
    model="Qwen/Qwen2.5-Math-7B",
    data="math-level-3-5",
    benchmarks=("aime24", "amc23", "math500"),
    reported=(
        *printed(
            "table 1",
            COLUMNS,
            "top1",
            {
                ("GRPO", "1.5B"): (23.3, 49.4, 75.2, 25.7, 39.0, 42.5),
                ("GMPO", "1.5B"): (20.0, 53.0, 77.6, 30.1, 38.7, 43.9),
                ("GRPO", "7B"): (40.0, 59.0, 83.4, 32.4, 41.3, 51.2),
                ("GMPO", "7B"): (43.3, 61.4, 82.0, 33.5, 43.6, 52.7),
                ("GRPO, R1-Distill", "7B"): (43.3, 67.5, 89.0, 39.7, 56.7, 59.3),
                ("GMPO, R1-Distill", "7B"): (46.6, 78.3, 91.4, 37.9, 62.5, 63.4),
            },
        ),
        *printed(
            "table 2",
            ("Geometry3K", "math500"),
            "accuracy",
            {
                ("GRPO, Qwen2.5-VL", "7B"): (53.3, None),
                ("GMPO, Qwen2.5-VL", "7B"): (54.7, None),
                ("GRPO, Qwen3", "32B"): (None, 94.6),
                ("GMPO, Qwen3", "32B"): (None, 96.7),
            },
        ),
        *printed(
            "ablations",
            ("Average",),
            "top1",
            {
                ("GMPO without clip", "7B"): (52.3,),
                ("GMPO with a clip of answers", "7B"): (52.6,),
                ("GMPO without the root", "7B"): (52.0,),
                ("GMPO, clip of 0.2", "7B"): (52.4,),
                ("GMPO, clip of 0.8", "7B"): (52.1,),
            },
        ),
    ),
    arms={
        "gmpo": {},
        "grpo": {"loss_type": "grpo", "epsilon": 0.2},
        "gmpo-far": in_regime("choice-far", **LOSS),
        "token-ratios-far": in_regime("choice-far", scale_rewards="none"),
    },
    profiles={
        "cpu": {
            "regime": "off8",
            **LOSS,
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
        },
        "gpu": {"gradient_accumulation_steps": 2, "max_steps": 800, "heldout_every": 80},
    },
    trl_index={"epsilon": 0.4, "beta": 0.0},
    trl_reasons=(
        because("The entry has a trainer of its own, whose loss is this one.", "loss_type"),
        because(
            "The paper divides by no deviation, as Dr. GRPO; the entry leaves TRL's default, the "
            "group's.",
            "scale_rewards",
        ),
    ),
    claims=(
        Claim(
            "geometric-below-arithmetic",
            "Without a clip the objective of an answer is at most as large as GRPO's.",
            law(SIZES, "gmpo") <= law(SIZES, "grpo"),
        ),
        Claim(
            "outlier-robustness",
            "When the greatest ratio of an answer grows, its loss changes less than with GRPO.",
            law(OUTLIER, "gmpo") < law(OUTLIER, "grpo"),
        ),
        Claim(
            "entropy-higher",
            "The entropy stays higher than with GRPO.",
            late("entropy").of("gmpo-far") > late("entropy").of("token-ratios-far"),
            mechanism="sequence ratios",
            acts=CLIPS,
            expects=Expected(effect=-0.045, spread=0.025),
        ),
        Claim(
            "kl-lower",
            "The policy ends nearer to where it began.",
            KL.of("gmpo-far") < KL.of("token-ratios-far"),
            mechanism="sequence ratios",
            acts=CLIPS,
            expects=Expected(effect=0.078, spread=0.021),
        ),
        Claim(
            "gradient-steadier",
            "The norm of the gradient varies less in the course of training.",
            fluctuation("grad_norm", 0).of("gmpo-far")
            < fluctuation("grad_norm", 0).of("token-ratios-far"),
            mechanism="sequence ratios",
            acts=CLIPS,
            expects=Expected(effect=-0.17, spread=0.31),
        ),
        Claim(
            "reward-not-worse",
            "The reward over the whole of training is at least that of GRPO.",
            whole("reward").of("gmpo-far") >= whole("reward").of("token-ratios-far"),
            mechanism="sequence ratios",
            acts=CLIPS,
            expects=Expected(effect=0.026, spread=0.025),
        ),
    ),
)
