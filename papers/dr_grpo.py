"""Dr. GRPO drops the two divisors of GRPO, the answer's length and the group's deviation.

Where the sources disagree, and what is not the paper's here:

- The settings are those of the comparison of GRPO with Dr. GRPO, on MATH from Qwen2.5-1.5B; the
  printed numbers are of Oat-Zero, from Qwen2.5-Math-7B on levels 3 to 5 of MATH.
- By TRL's paper index the deviation still divides, which is half of the method, the arm
  `no-divisor`.
- The sum over tokens is divided by the length limit, which only scales the learning rate.
- One cell of the untrained model is printed as 0.2; the average beside it implies 20.0.
- Minerva and OlympiadBench are printed and are no benchmarks here.
- How near "the same accuracy" is, is not printed: three points are used.
"""

from core.claims import Claim, Expected, early, final, law, middle, tokens_to
from core.paper import Paper, because, cite, in_regime, printed
from core.rewards import Accuracy

COLUMNS = ("aime24", "amc23", "math500", "Minerva", "OlympiadBench", "Average")
HELD_OUT = "held_out/accuracy"
MOST_SOLVED = 0.6  # a reward that both arms of the world reach
WRONG_LENGTH = "completions/wrong_mean_length"
TOKEN, MINORITY = (
    "core.laws.update_weights:token_weight",
    "core.laws.update_weights:minority_weight",
)

# In the pocket world all answers have nearly one length: there the divisor cannot act.
LENGTHENS = (
    middle(WRONG_LENGTH).of("grpo-length") - early(WRONG_LENGTH, 0.25).of("grpo-length") >= 5
)


PAPER = Paper(
    slug="dr-grpo",
    title="Understanding R1-Zero-Like Training: A Critical Perspective",
    arxiv="2503.20783",
    family="grpo",
    config=(
        cite("paper", loss_type="dr_grpo", scale_rewards="none"),
        cite("paper appendix", beta=0.0, epsilon=0.2, num_iterations=1, temperature=1.0),
        cite("paper appendix", learning_rate=1e-6, lr_scheduler_type="constant", adam_beta2=0.95),
        cite("paper appendix", weight_decay=0.0, max_grad_norm=1.0),
        cite("repository training script", num_generations=8, max_completion_length=3000),
        cite("repository training script", per_device_train_batch_size=1),
        cite("repository README", gradient_accumulation_steps=128, steps_per_generation=128),
    ),
    rewards=(Accuracy(),),
    model="Qwen/Qwen2.5-1.5B",
    data="math",
    benchmarks=("math500", "amc23", "aime24"),
    reported=printed(
        "benchmark table",
        COLUMNS,
        "top1",
        {
            ("Oat-Zero", "7B"): (43.3, 62.7, 80.0, 30.1, 41.0, 51.4),
            ("SimpleRL-Zero", "7B"): (26.7, 60.2, 78.2, 27.6, 40.3, 46.6),
            ("PRIME-Zero", "7B"): (16.7, 62.7, 83.8, 36.0, 40.9, 48.0),
            ("OpenReasoner-Zero @3k", "7B"): (13.3, 47.0, 79.2, 31.6, 44.0, 43.0),
            ("Qwen2.5-Math, no template", "7B"): (0.2, 45.8, 69.0, 21.3, 34.7, 38.2),
            ("Qwen2.5-Math, Qwen template", "7B"): (None, None, None, None, None, 26.5),
            ("Oat-Zero", "1.5B"): (None, None, None, None, None, 42.1),
            ("Llama-3.2 + Dr. GRPO", "3B"): (None, None, None, None, None, 6.8),
            ("Llama-3.2 FineMath + Dr. GRPO", "3B"): (None, None, None, None, None, 14.8),
            ("Llama-3.2 NuminaQA + Dr. GRPO", "3B"): (None, None, None, None, None, 20.7),
        },
    ),
    arms={
        "dr-grpo": {},
        "grpo": {"loss_type": "grpo", "scale_rewards": "group"},
        "no-divisor": {"scale_rewards": "group"},
        "no-std": {"loss_type": "grpo"},
        "dr-grpo-length": in_regime("length", loss_type="dr_grpo", scale_rewards="none"),
        "grpo-length": in_regime("length", loss_type="grpo"),
        "no-divisor-length": in_regime("length", loss_type="dr_grpo"),
        "no-std-length": in_regime("length", loss_type="grpo", scale_rewards="none"),
    },
    trl_index={
        "loss_type": "dr_grpo",
        "beta": 0.0,
        "num_generations": 8,
        "max_completion_length": 3000,
        "per_device_train_batch_size": 1,
    },
    trl_reasons=(
        because(
            "The entry leaves the deviation in, so that it is half of the method.", "scale_rewards"
        ),
        because(
            "The entry sets no batch: on one process an update is a single completion, and no "
            "whole group fits.",
            "gradient_accumulation_steps",
            "steps_per_generation",
        ),
    ),
    profiles={
        "cpu": {
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
            "regime": "on",
            "loss_type": "dr_grpo",
            "scale_rewards": "none",
        }
    },
    claims=(
        Claim(
            "wrong-answers-shorter",
            "Wrong answers end up shorter than with GRPO at equal reward.",
            middle(WRONG_LENGTH).of("dr-grpo-length") < middle(WRONG_LENGTH).of("grpo-length"),
            mechanism="length",
            acts=LENGTHENS,
            expects=Expected(effect=-20, spread=2.8),
        ),
        Claim(
            "accuracy-equal",
            "The final accuracy is that of GRPO.",
            final(HELD_OUT).of("dr-grpo").about(final(HELD_OUT).of("grpo"), within=3.0),
            mechanism="length",
        ),
        Claim(
            "token-efficiency",
            "A given accuracy is reached with fewer tokens.",
            tokens_to("reward", MOST_SOLVED).of("dr-grpo-length")
            < tokens_to("reward", MOST_SOLVED).of("grpo-length"),
            mechanism="length",
            acts=LENGTHENS,
            expects=Expected(effect=-25_000, spread=13_000),
        ),
        Claim(
            "length-divisor-dominates",
            "Without the length divisor alone the length changes more than without the deviation.",
            abs(
                middle(WRONG_LENGTH).of("no-divisor-length")
                - middle(WRONG_LENGTH).of("grpo-length")
            )
            > abs(
                middle(WRONG_LENGTH).of("no-std-length") - middle(WRONG_LENGTH).of("grpo-length")
            ),
            mechanism="length",
            acts=LENGTHENS,
            expects=Expected(effect=17, spread=2.7),
        ),
        Claim(
            "per-token-penalty",
            "A token of a wrong answer weighs the same in a long answer as in a short one.",
            law(TOKEN, "dr_grpo", 10) / law(TOKEN, "dr_grpo", 100) == 1.0,
        ),
        Claim(
            "rloo-identity",
            "G / (G - 1) times the advantage is that of RLOO.",
            law("core.laws.update_weights:leave_one_out_gap", 8).about(0.0, within=1e-12),
        ),
        Claim(
            "difficulty-weight",
            "The deviation gives questions that are nearly always right or wrong more weight.",
            law(MINORITY, "group", 1, 8) / law(MINORITY, "group", 4, 8)
            > law(MINORITY, "none", 1, 8) / law(MINORITY, "none", 4, 8),
        ),
    ),
)
