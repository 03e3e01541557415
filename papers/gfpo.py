"""GFPO samples more answers than it learns from: the shortest, or those with most reward a token.

Where the sources disagree, and what is not the paper's here:

- Rejected answers have advantage 0 and count in the denominator. TRL's trainer, until 1.7.1,
  divided by the tokens of the kept ones alone, a larger step, and let its filter judge each group
  but the first by texts of another one; TRL 1.16 has none.
- The paper's reward scales accuracy by length and adds a penalty on repeated 5-grams. The
  parameters of both were not seen; the reward is accuracy alone here.
- Its trainer also bounds the loss of negative advantages (dual clip), with a bound not seen.
- Arms sample groups of different sizes for as many prompts, so that an update has more or fewer
  completions, as in the paper.
- `adaptive difficulty`, 4 to 8 kept by quartiles of the success rate, is printed and no arm here.
- Accuracy on AIME 2025 falls by about two points in all variants, though averages do not. How near
  "kept" is, is not printed: three points are used.
- The paper's excess length reduction is a share of what GRPO adds to the length, which here may be
  nothing: lengths are compared, which order two arms beside one GRPO in the same way.
"""

from core.claims import Claim, Expected, early, late, law, most, score
from core.paper import Column, Paper, cite, in_regime, printed
from core.rewards import Accuracy

LENGTH, SOLVED = "completions/mean_length", score("nano-length", temperature=1.0)
SHORTEST, GRPO = "8-of-24", "grpo-8"
TABLE = "main table"
# Right answers need at most 7 tokens: such a start can be shortened.
LONG = early(LENGTH, 0).of("grpo-8-long") >= 20


def columns(benchmark: str) -> tuple[Column, ...]:
    """Return the columns of a benchmark in the table."""
    return (
        Column(benchmark=benchmark, title="accuracy", group=benchmark),
        Column(
            benchmark=benchmark, title="length", group=benchmark, metric="length", unit="k tokens"
        ),
        Column(
            benchmark=benchmark,
            title="excess length reduction",
            group=benchmark,
            metric="excess length reduction",
        ),
    )


def group_settings(group: int, kept_answers: int) -> dict[str, object]:
    """Return settings that keep the shortest of a group: 8 prompts at cpu, 16 on a GPU, 64 else."""
    return {
        "num_generations": group,
        "selection_kept": kept_answers,
        "gradient_accumulation_steps": 4 * group,
        "steps_per_generation": 4 * group,
        "at": {
            "cpu": one_update(group),
            "gpu": {"gradient_accumulation_steps": group // 2, "steps_per_generation": group // 2},
        },
    }


def one_update(group: int) -> dict[str, object]:
    """Return batch sizes of eight prompts in one micro-batch."""
    return {
        "per_device_train_batch_size": 8 * group,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 1,
    }


def nano_group(group: int, **selection: object) -> dict[str, object]:
    """Return an arm of 16 prompts a rollout that starts from long answers, most of them right."""
    return in_regime(
        "length-long", num_generations=group, per_device_train_batch_size=2 * group, **selection
    )


def shortest(group: int, kept_answers: int) -> dict[str, object]:
    """Return such an arm that keeps the shortest answers of a group."""
    return nano_group(group, rollout_selection="shortest", selection_kept=kept_answers)


PAPER = Paper(
    slug="gfpo",
    title="Sample More to Think Less: Group Filtered Policy Optimization for Concise Reasoning",
    arxiv="2508.09726",
    family="grpo",
    config=(
        cite("paper objective", loss_type="dapo", rollout_selection="shortest"),
        cite("paper: G of 8, 16 and 24, k at most 8", num_generations=24, selection_kept=8),
        cite("paper", beta=0.001, entropy_coef=0.001, learning_rate=1e-7, temperature=1.0),
        cite("paper", lr_scheduler_type="cosine", warmup_steps=10, max_steps=100),
        cite("paper", max_completion_length=32_768),
        cite("paper: 64 prompts", per_device_train_batch_size=16),
        cite("paper: 64 prompts", gradient_accumulation_steps=96, steps_per_generation=96),
        cite("unstated", epsilon=0.2, scale_rewards="group", use_bias_correction_kl=False),
    ),
    rewards=(Accuracy(),),
    model="microsoft/Phi-4-reasoning",
    data="gfpo-math-72k",
    benchmarks=("aime24", "aime25"),
    reported=(
        *printed(
            TABLE,
            (*columns("aime25"), *columns("aime24"), *columns("Average")),
            "top1",
            {
                "SFT (Phi-4-reasoning)": (64.2, 10.9, None, 72.2, 10.1, None, 69.2, 9.5, None),
                "GRPO": (72.4, 14.8, None, 77.7, 13.3, None, 72.1, 13.0, None),
                "Shortest 6 of 8": (69.2, 14.7, 1.8, None, None, None, 72.7, None, 4.8),
                "Shortest 8 of 16": (70.2, 13.9, 23.8, 77.9, None, 33.0, 73.4, None, 29.7),
                "Shortest 4 of 16": (69.7, 13.3, 38.0, None, None, None, None, None, None),
                "Shortest 8 of 24": (70.4, 12.6, 54.4, None, None, None, None, None, None),
                "Shortest 4 of 24": (70.3, 13.0, 46.1, 76.5, None, 59.8, 72.3, None, 58.2),
                "Token efficiency": (69.5, 12.0, 70.9, 76.4, 10.6, 84.6, 71.7, None, 79.5),
                "Adaptive difficulty": (70.8, 12.8, 50.8, None, None, None, 72.9, None, 46.0),
            },
        ),
    ),
    arms={
        SHORTEST: {"at": {"cpu": one_update(24)}},
        "8-of-16": group_settings(16, 8),
        "4-of-16": group_settings(16, 4),
        "12-of-16": group_settings(16, 12),
        "6-of-8": group_settings(8, 6),
        "token-efficiency": {**group_settings(16, 8), "rollout_selection": "efficient"},
        GRPO: {**group_settings(8, 8), "rollout_selection": "all", "selection_kept": None},
        "8-of-24-long": shortest(24, 8),
        "8-of-16-long": shortest(16, 8),
        "4-of-16-long": shortest(16, 4),
        "12-of-16-long": shortest(16, 12),
        "6-of-8-long": shortest(8, 6),
        "token-efficiency-long": nano_group(16, rollout_selection="efficient", selection_kept=8),
        "grpo-8-long": nano_group(8),
    },
    profiles={
        "cpu": {
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
            "regime": "on",
            "loss_type": "dapo",
            "rollout_selection": "shortest",
            "num_generations": 24,
            "beta": 0.001,
            "rate_factors": (),  # lengths are compared at one rate
        },
        "gpu": {
            "num_generations": 24,
            "gradient_accumulation_steps": 12,
            "steps_per_generation": 12,
        },
    },
    claims=(
        Claim(
            "shorter-at-equal-accuracy",
            "Learning from the shortest 8 of 16 answers ends with shorter ones than GRPO with 8.",
            late(LENGTH).of("8-of-16-long") < late(LENGTH).of("grpo-8-long"),
            mechanism="length",
            acts=LONG,
            expects=Expected(effect=-4.9, spread=8.3),
        ),
        Claim(
            "accuracy-kept",
            "The accuracy stays that of GRPO.",
            SOLVED.of("8-of-16-long").about(SOLVED.of("grpo-8-long"), within=3.0),
            mechanism="length",
            acts=LONG,
            expects=Expected(effect=-2.6, spread=6.3),
        ),
        Claim(
            "retention-ratio",
            "The smaller the share that is kept, the shorter the answers.",
            late(LENGTH).of("4-of-16-long") < late(LENGTH).of("12-of-16-long"),
            mechanism="length",
            acts=LONG,
            expects=Expected(effect=-5.9, spread=6.4),
        ),
        Claim(
            "more-samples-needed",
            "Keeping 6 of 8 answers takes off less of the length than keeping 8 of 24.",
            late(LENGTH).of("6-of-8-long") > late(LENGTH).of("8-of-24-long"),
            mechanism="length",
            acts=LONG,
        ),
        Claim(
            "token-efficiency-best",
            "Keeping the most reward per token takes off more than keeping the shortest.",
            late(LENGTH).of("token-efficiency-long") < late(LENGTH).of("8-of-16-long"),
            mechanism="length",
            acts=LONG,
            expects=Expected(effect=-0.25, spread=4.2),
        ),
        Claim(
            "zero-advantage-rejected",
            "Rejected answers have advantage 0; kept ones have mean 0 and deviation 1, but for the "
            "1e-4 that is added to it.",
            most(
                law("core.laws.reward_shapes:selection_errors", "shortest", 6, 4),
                law("core.laws.reward_shapes:selection_errors", "efficient", 6, 4),
            ).about(0.0, within=1e-3),
        ),
    ),
)
