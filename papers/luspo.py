"""LUSPO multiplies GSPO's term of an answer by its length, so that its tokens weigh the same.

Where the sources disagree, and what is not the paper's here:

- 16 mini-batches of a rollout are told of; 128 prompts in mini-batches of 16 are 8, as it is here
  and in the regime of the small scale.
- With TRL's default, ratios of tokens, `loss_type="luspo"` is another loss: a paper that asks
  for it is refused, a script is warned.
- The punishment of long answers is a third of DAPO's; in the small worlds no answer is so long.
- The clip is wider than GSPO's own; the arm `gspo` has the same one, so that the length alone
  differs.
- The loss grows with the length, and so does what the clip of the gradient's norm cuts off.
- The mode of scoring is not stated. The numbers of Qwen2.5-VL are of image benchmarks, ViRL39K has
  images: neither is here.
"""

from core.claims import Claim, Expected, late, law, score
from core.paper import Column, Paper, because, cite, in_regime, printed
from core.rewards import Accuracy, Format, SoftOverlong

L_MAX, L_BUF = 32_768, 4_096  # s5.1
SOLVED = score("nano-length", temperature=1.0)
LENGTH, RIGHT = "completions/mean_length", "completions/right_mean_length"
WEIGHT, QUOTIENT = (
    "core.laws.update_weights:token_weight",
    "core.laws.ratios:gradient_quotients",
)
LOSS = {
    "loss_type": "luspo",
    "importance_sampling_level": "sequence",
    "epsilon": 2e-3,
    "epsilon_high": 2.5e-3,
}
# In the pocket world all answers have one length: there a weight by length cannot act.
CLIPS = late("clip_ratio/region_mean", 0).of("gspo-length") >= 0.02
COLUMNS = ("amc23", "aime24", "aime25", "math500", "Average")

PAPER = Paper(
    slug="luspo",
    title="Length-Unbiased Sequence Policy Optimization: Revealing and Controlling Response Length "
    "Variation in RLVR",
    arxiv="2602.05261",
    family="grpo",
    config=(
        cite("objective of LUSPO", loss_type="luspo", importance_sampling_level="sequence"),
        cite("s5.1", epsilon=2e-3, epsilon_high=2.5e-3, learning_rate=1e-6),
        cite("s5.1", lr_scheduler_type="constant_with_warmup", warmup_steps=160),  # 20 rollouts
        cite("s5.1", num_generations=8, max_completion_length=L_MAX, temperature=1.0, top_p=0.7),
        cite("s5.1", per_device_train_batch_size=128, steps_per_generation=8),
        cite("s5.1", gradient_accumulation_steps=1),
        cite("s5.1, the punishment's scale", reward_weights=[1.0, 1.0, 0.3]),
        cite("unstated", beta=0.0, scale_rewards="group"),
    ),
    rewards=(Accuracy(), Format(right=0.5), SoftOverlong(L_MAX, L_BUF)),
    model="Qwen/Qwen2.5-7B",
    data="dapo-math-17k",
    benchmarks=("amc23", "aime24", "aime25", "math500"),
    reported=(
        *printed(
            "table 2",
            COLUMNS,
            "accuracy",
            {
                ("Qwen2.5", "7B"): (35.8, 1.6, 3.6, 60.8, 25.5),
                ("GSPO, Qwen2.5", "7B"): (55.3, 11.8, 11.2, 71.0, 37.3),
                ("LUSPO, Qwen2.5", "7B"): (58.3, 14.7, 13.9, 78.4, 41.3),
                ("Qwen3-A3B-Instruct", "30B"): (97.5, 60.0, 57.2, 96.2, None),
            },
        ),
        *printed(
            "table 2, mixture of experts",
            ("aime24", "aime25", Column(benchmark="Average", title="Average of AIME")),
            "accuracy",
            {
                ("GSPO, Qwen3-A3B", "30B"): (76.7, 59.2, 68.0),
                ("LUSPO, Qwen3-A3B", "30B"): (83.6, 76.3, 80.0),
            },
        ),
        *printed(
            "table of vision-language models",
            (Column(benchmark="VL average", title="Average"),),
            "accuracy",
            {
                ("Qwen2.5-VL", "7B"): (39.2,),
                ("GRPO, Qwen2.5-VL", "7B"): (44.0,),
                ("GSPO, Qwen2.5-VL", "7B"): (43.6,),
                ("LUSPO, Qwen2.5-VL", "7B"): (45.6,),
            },
        ),
        *printed(
            "comparison of lengths",
            (Column(benchmark="validation length", title="Validation length"),),
            "mean",
            {
                ("GSPO, Qwen2.5", "7B"): (2611,),
                ("LUSPO, Qwen2.5", "7B"): (3940,),
                ("GSPO, Qwen3-A3B", "30B"): (6757,),
                ("LUSPO, Qwen3-A3B", "30B"): (11014,),
            },
            unit="tokens",
        ),
    ),
    arms={
        "luspo": {},
        "gspo": {"loss_type": "grpo"},
        "luspo-length": in_regime("length", **LOSS),
        "gspo-length": in_regime("length", **{**LOSS, "loss_type": "grpo"}),
    },
    profiles={
        "cpu": {
            "regime": "off8",
            **LOSS,
            "reward_weights": None,
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
        },
        "gpu": {
            "gradient_accumulation_steps": 2,
            "max_steps": 800,
            "heldout_every": 80,
            "rewards": (Accuracy(), Format(right=0.5), SoftOverlong(1024, 128)),
            "max_completion_length": 1024,
        },
    },
    trl_index=LOSS,
    trl_reasons=(
        because(
            "Without the entry's level, at TRL's default of ratios of tokens, it is another loss."
        ),
        because("TRL's punishment of long answers is of size 1, the paper's of 0.3."),
    ),
    claims=(
        Claim(
            "length-weight",
            "A token weighs the same in a long answer as in a short one.",
            (law(WEIGHT, "luspo", 10, "sequence") / law(WEIGHT, "luspo", 100, "sequence")).about(
                1.0, within=1e-12
            ),
        ),
        Claim(
            "longer-than-gspo",
            "Answers end up longer than with GSPO.",
            late(LENGTH).of("luspo-length") > late(LENGTH).of("gspo-length"),
            mechanism="sequence ratios",
            acts=CLIPS,
            expects=Expected(effect=0.15, spread=4.4),
        ),
        Claim(
            "gspo-shrinks-correct",
            "With GSPO right answers end up shorter.",
            late(RIGHT).of("gspo-length") < late(RIGHT).of("luspo-length"),
            mechanism="sequence ratios",
            acts=CLIPS,
            expects=Expected(effect=-1.2, spread=4.3),
        ),
        Claim(
            "accuracy-higher",
            "The final accuracy is at least that of GSPO.",
            SOLVED.of("luspo-length") >= SOLVED.of("gspo-length"),
            mechanism="sequence ratios",
            acts=CLIPS,
            expects=Expected(effect=9.9, spread=15.0),
        ),
        Claim(
            "proportional-to-length",
            "For answers of 7 tokens the gradient is 7 times that of GSPO.",
            law(QUOTIENT, "luspo", "gspo", 7).about(7.0, within=1e-12),
        ),
    ),
)
