"""GDPO scales each reward in its group before it adds them, so that none drowns another.

Where the sources disagree, and what is not the paper's here:

- The settings are those of its mathematics runs, accuracy and an answer of at most 4,000 tokens;
  the printed rate and answers per update are of its tool-calling runs, which need tools.
- The authors' code whitens over tokens, so that long answers weigh more; here and in TRL each
  answer counts once. Deviations have the divisor n - 1.
- TRL's entry is the way of adding alone. With one reward that is not GRPO: it is scaled twice.
- The conditioned reward counts the length of right answers alone.
- Every completion of the pocket world has its boxed answer, so the format of the arms with one is
  another there: four lines of working or more, which six of ten completions have. Its limit of
  length is 38 tokens, the middle of the starting model's answers; in the nano world, where the two
  rewards are accuracy and a short answer, the same rule gives 12 tokens.
- `aime` and `amc` of the tables are not said to be of a year; they are no benchmarks here, nor are
  Minerva, OlympiadBench and BFCL.
"""

from core.claims import Claim, Expected, deviation, final, late, law, least
from core.paper import Column, Paper, because, cite, in_regime, printed
from core.rewards import Accuracy, Conditioned, Format, LengthWithin

SHAPES = "core.laws.reward_shapes"
SUMMED, APART, WHOLE = "sum_then_normalize", "normalize_then_only_sum", "normalize_then_sum"
HELD_OUT, RIGHT, SHORT = "held_out/accuracy", "rewards/accuracy/mean", "rewards/length_within/mean"
LIMIT, POCKET_LIMIT, NANO_LIMIT = 4000, 38, 12  # tokens
LINES = Format(r"(?:[^\n]*=[^\n]*\n){4}")
OVER = "over the length target"


def over(benchmark: str) -> Column:
    """Return the column with the share of answers that are too long."""
    return Column(benchmark=benchmark, title=f"{benchmark}, {OVER}", metric=OVER)


def nano_arm(aggregation: str) -> dict[str, object]:
    """Return an arm of the nano world with rewards for accuracy and for a short answer."""
    rewards = (Accuracy(), LengthWithin(NANO_LIMIT))
    return in_regime("length", rewards=rewards, multi_objective_aggregation=aggregation)


def conditioned_rewards(limit: int) -> tuple[Accuracy, Conditioned]:
    """Return the rewards for accuracy, and for the length of correct answers."""
    return Accuracy(), Conditioned(LengthWithin(limit), on=Accuracy())


# Neither reward is paid to nearly all answers, so that both differ within groups.
BOTH_DIFFER = (
    late(RIGHT, 0).of("grpo-length") <= 0.95,
    late(SHORT, 0).of("grpo-length") <= 0.95,
)
TOOLS = ("BFCL-v3 Live", "BFCL-v3 MultiTurn", "BFCL-v3 NonLive", "BFCL-v3 Average")
MATHS = ("MATH", "AIME", "AMC", "Minerva", "OlympiadBench", over("MATH"), over("AIME"))

PAPER = Paper(
    slug="gdpo",
    title="GDPO: Group reward-Decoupled Normalization Policy Optimization for Multi-reward RL "
    "Optimization",
    arxiv="2601.05242",
    family="grpo",
    config=(
        cite("paper", multi_objective_aggregation=WHOLE, loss_type="grpo"),
        cite("paper tool-calling setup", learning_rate=1e-6),
        cite("paper math setup", num_generations=16, max_completion_length=8000, max_steps=500),
        cite("paper math setup: 512 answers", per_device_train_batch_size=16),
        cite("paper math setup: 512 answers", gradient_accumulation_steps=32),
        cite("paper math setup: 512 answers", steps_per_generation=32),
        cite("unstated", beta=0.0, epsilon=0.2, temperature=1.0, lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(), LengthWithin(LIMIT)),
    model="deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",
    data="deepscaler",
    benchmarks=("math500",),
    reported=(
        *printed(
            "tool-calling table",
            (*TOOLS, Column(benchmark="BFCL-v3", title="format", metric="correct format")),
            "mean of 5 runs",
            {
                ("Qwen2.5-Instruct", "1.5B"): (37.89, 0.12, 15.63, 17.88, 4.74),
                ("GRPO", "1.5B"): (50.63, 2.04, 37.87, 30.18, 76.33),
                ("GRPO without std", "1.5B"): (47.19, 1.47, 39.11, 29.26, 0),
                ("GDPO", "1.5B"): (55.36, 2.5, 40.58, 32.81, 80.66),
                ("Qwen2.5-Instruct", "3B"): (63.57, 1.38, 30.75, 31.9, 58.37),
                ("GRPO", "3B"): (69.23, 3.14, 45.24, 39.2, 81.64),
                ("GDPO", "3B"): (71.22, 4.59, 46.79, 40.87, 82.23),
            },
        ),
        *printed(
            "math table",
            MATHS,
            "top1",
            {
                ("R1-Distill", "1.5B"): (84.3, 29.8, 62.0, 38.4, 44.1, None, None),
                ("GRPO, R1-Distill", "1.5B"): (83.6, 23.1, 64.5, 43.5, 44.3, 1.5, 10.8),
                ("GDPO, R1-Distill", "1.5B"): (86.2, 29.4, 69.0, 44.0, 46.6, 0.8, 6.5),
                ("GRPO, R1-Distill", "7B"): (94.1, 50.2, 83.8, 53.2, 60.2, None, 2.1),
                ("GDPO, R1-Distill", "7B"): (93.9, 53.1, 84.0, 53.8, 59.7, None, 0.2),
                ("GRPO, Qwen3-Instruct", "4B"): (None, 54.6, None, None, None, None, 2.5),
                ("GDPO, Qwen3-Instruct", "4B"): (None, 56.9, None, None, None, None, 0.1),
            },
        ),
        *printed(
            "conditioned-reward table",
            ("AIME",),
            "top1",
            {
                ("GRPO, R1-Distill, conditioned length", "7B"): (53.3,),
                ("GDPO, R1-Distill, conditioned length", "7B"): (57.7,),
            },
        ),
    ),
    arms={
        "gdpo": {},
        "grpo": {"multi_objective_aggregation": SUMMED},
        "half-weight": {"reward_weights": [1.0, 0.5]},
        "conditioned": {
            "rewards": conditioned_rewards(LIMIT),
            "at": {"cpu": {"rewards": conditioned_rewards(POCKET_LIMIT)}},
        },
        "gdpo-format": {
            "rewards": (Accuracy(), Format()),
            "at": {"cpu": {"rewards": (Accuracy(), LINES)}},
        },
        "grpo-format": {
            "rewards": (Accuracy(), Format()),
            "multi_objective_aggregation": SUMMED,
            "at": {"cpu": {"rewards": (Accuracy(), LINES)}},
        },
        "no-batch-norm": {
            "rewards": (Accuracy(), Format()),
            "multi_objective_aggregation": APART,
            "at": {"cpu": {"rewards": (Accuracy(), LINES)}},
        },
        "gdpo-length": nano_arm(WHOLE),
        "grpo-length": nano_arm(SUMMED),
        "no-batch-norm-length": nano_arm(APART),
    },
    trl_index={"multi_objective_aggregation": WHOLE},
    trl_reasons=(
        because("The entry names no rewards, and with a single one this way is not GRPO's."),
    ),
    profiles={
        "cpu": {
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
            "regime": "on",
            "loss_type": "grpo",
            "multi_objective_aggregation": WHOLE,
            "rewards": (Accuracy(), LengthWithin(POCKET_LIMIT)),
            "rate_factors": (),  # rewards are compared at one rate
        }
    },
    claims=(
        Claim(
            "advantage-collapse",
            "Two answers that differ in both of two rewards have larger advantages than two that "
            "differ in one, which summed rewards do not tell apart.",
            law(f"{SHAPES}:pair_levels", APART) > law(f"{SHAPES}:pair_levels", SUMMED),
        ),
        Claim(
            "distinct-groups",
            "There are more different groups of advantages than with summed rewards, for 2 to 8 "
            "answers and for 2 to 4 rewards.",
            law(f"{SHAPES}:distinct_groups", APART) > law(f"{SHAPES}:distinct_groups", SUMMED),
        ),
        Claim(
            "all-rewards-rise",
            "With rewards for a short answer and for accuracy, both end at least as high as with "
            "summed ones.",
            least(
                late(SHORT).of("gdpo-length") - late(SHORT).of("grpo-length"),
                late(RIGHT).of("gdpo-length") - late(RIGHT).of("grpo-length"),
            )
            >= 0,
            mechanism="several rewards",
            acts=BOTH_DIFFER,
            expects=Expected(effect=-0.02, spread=0.02),
        ),
        Claim(
            "batch-norm-needed",
            "Without the last division the reward at the end differs more from seed to seed.",
            deviation(late(RIGHT).of("no-batch-norm-length"))
            > deviation(late(RIGHT).of("gdpo-length")),
            mechanism="several rewards",
            acts=BOTH_DIFFER,
            healthy=("gdpo-length",),  # that some trainings fail without it is the claim
        ),
        Claim(
            "easy-reward-dominates",
            "With summed rewards the easy one takes over: the share of right answers ends further "
            "below that of short ones.",
            late(RIGHT).of("gdpo-length") - late(SHORT).of("gdpo-length")
            > late(RIGHT).of("grpo-length") - late(SHORT).of("grpo-length"),
            mechanism="several rewards",
            acts=BOTH_DIFFER,
        ),
        Claim(
            "weights-do-not-save-conflict",
            "A length that counts for right answers alone costs less accuracy than half a weight.",
            final(HELD_OUT).of("conditioned") > final(HELD_OUT).of("half-weight"),
            mechanism="several rewards",
        ),
        Claim(
            "scale-independent-of-number",
            "The advantages of a batch have deviation 1 with one reward as with five.",
            law(f"{SHAPES}:batch_spread", WHOLE).about(1.0, within=1e-3),
        ),
    ),
)
