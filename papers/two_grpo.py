"""Two answers to each of eight times as many prompts do what groups of 16 do, for less sampling.

Where the sources disagree, and what is not the paper's here:

- The paper's deviation has the divisor n, so that a mixed pair has advantages of +1 and -1; TRL's
  has n - 1, +0.7071 and -0.7071. The 1e-4 beside the deviation makes them 0.9998 here.
- TRL's paper index sets the group and the loss alone: without eight times as many prompts and as
  high a rate the comparison is not the paper's.
- The number of answers in an update is the same, 512. An update of the whole rollout has ratio 1,
  so the clip, which the paper raises, never binds.
- Arms compare at equal prompts seen, as printed, and the paper's means over 32 samples are of
  several benchmarks; ours are greedy. Its abstract prints 97.6 %, and 98.1 % in its version 2.
- With resampling (RS in print) groups of equal rewards are replaced; that arm is not here.
- At cpu the groups of 16 are the baseline that papers share, with the divisor n - 1: 3 % smaller.
- How little "changes the score little" is, is read off the claim's own numbers: 3 points.
- In the nano world pairs have the rate of the groups, and the paper's 32 prompts are 4.
"""

from core.claims import Claim, Expected, late, law, most, score, spread, whole
from core.paper import Column, Paper, cite, in_regime, printed
from core.rewards import Accuracy

BASELINES = "core.laws.baselines"
SOLVED = score("nano-choice", temperature=1.0)
PAIRS, GROUPS = "groups-of-2", "groups-of-16"
PAIRS_CHOICE, GROUPS_CHOICE = "pairs-choice", "groups-of-16-choice"
# The share of groups without signal, which is larger in small groups.
SILENT = late("frac_reward_zero_std", 0).of(PAIRS_CHOICE) >= 0.3
TRAINED = ("math500", "Average")
HOURS = Column(benchmark="training time", unit="hours", metric="time")


def few(size: int) -> dict[str, object]:
    """As many prompts as the groups of 16 with fewer answers each: a smaller update."""
    return {
        "num_generations": size,
        "learning_rate": 1e-6,
        "per_device_train_batch_size": 16,
        "gradient_accumulation_steps": 2 * size,
        "steps_per_generation": 2 * size,
        "at": {
            "cpu": {
                "scale_rewards": "group",
                "learning_rate": 2e-4,
                "per_device_train_batch_size": 8 * size,
                "gradient_accumulation_steps": 1,
                "steps_per_generation": 1,
            },
            "gpu": {"gradient_accumulation_steps": size, "steps_per_generation": size},
        },
    }


def four_prompts(size: int) -> dict[str, object]:
    """As many prompts as the groups of 16 of the nano world with fewer answers each."""
    return in_regime("choice", num_generations=size, per_device_train_batch_size=4 * size)


PAPER = Paper(
    slug="two-grpo",
    title="It Takes Two: Your GRPO Is Secretly DPO",
    arxiv="2510.00977",
    family="grpo",
    config=(
        cite("TRL's paper index", loss_type="grpo"),
        cite("paper, group z-score", scale_rewards="population"),
        cite("paper setup", num_generations=2, learning_rate=8e-6, temperature=1.0),
        cite("paper setup", epsilon=0.2, epsilon_high=0.28, num_train_epochs=10.0),
        cite("paper setup", max_completion_length=4096, warmup_steps=10),
        cite("paper setup: 512 answers", per_device_train_batch_size=16),
        cite("paper setup: 512 answers", gradient_accumulation_steps=32, steps_per_generation=32),
        cite("unstated", beta=0.0, lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(),),
    model="Qwen/Qwen2.5-Math-1.5B",
    data="math",
    benchmarks=("math500",),
    reported=(
        *printed(
            "table 1",
            (*TRAINED, HOURS),
            "avg@32",
            {
                ("Qwen2.5-Math", "1.5B"): (None, 18.1, None),
                ("16-GRPO, MATH", "1.5B"): (70.24, 34.31, 8.53),
                ("2-GRPO, MATH", "1.5B"): (69.28, 33.37, 2.05),
                ("2-GRPO+RS, MATH", "1.5B"): (71.36, 34.58, 3.71),
                ("16-GRPO, DAPO-Sub", "1.5B"): (70.66, 35.87, 13.3),
                ("2-GRPO, DAPO-Sub", "1.5B"): (68.81, 33.89, 2.12),
                ("2-GRPO+RS, DAPO-Sub", "1.5B"): (71.64, 36.96, 4.53),
                ("Qwen2.5-Math", "7B"): (None, 21.27, None),
                ("16-GRPO, MATH", "7B"): (75.9, 39.94, 9.3),
                ("2-GRPO, MATH", "7B"): (75.23, 40.43, 2.43),
                ("2-GRPO+RS, MATH", "7B"): (76.89, 40.1, 5.78),
                ("16-GRPO, DAPO-Sub", "7B"): (77.35, 42.92, 17.68),
                ("2-GRPO, DAPO-Sub", "7B"): (77.43, 41.73, 3.63),
                ("2-GRPO+RS, DAPO-Sub", "7B"): (77.14, 43.01, 7.55),
            },
        ),
        *printed(
            "group-size ablation",
            ("Average",),
            "avg@32",
            {
                ("GRPO, 32 prompts x 2, MATH", "1.5B"): (32.88,),
                ("GRPO, 32 prompts x 4, MATH", "1.5B"): (33.65,),
                ("GRPO, 32 prompts x 8, MATH", "1.5B"): (33.11,),
                ("GRPO, 32 prompts x 16, MATH", "1.5B"): (34.15,),
            },
        ),
        *printed("abstract", ("share of 16-GRPO's score",), "ratio", {"2-GRPO": (97.6,)}),
    ),
    arms={
        PAIRS: {},
        GROUPS: {
            "num_generations": 16,
            "learning_rate": 1e-6,
            "at": {"cpu": {"scale_rewards": "group", "learning_rate": 2e-4}},
        },
        "32-prompts-x-2": few(2),
        "32-prompts-x-4": few(4),
        "32-prompts-x-8": few(8),
        GROUPS_CHOICE: in_regime("choice"),
        PAIRS_CHOICE: in_regime("choice", num_generations=2, scale_rewards="population"),
        "4-prompts-x-2-choice": four_prompts(2),
        "4-prompts-x-4-choice": four_prompts(4),
        "4-prompts-x-8-choice": four_prompts(8),
    },
    trl_index={"num_generations": 2, "loss_type": "grpo"},
    profiles={
        "cpu": {
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
            "regime": "on",
            "loss_type": "grpo",
            "scale_rewards": "population",
            "num_generations": 2,
            "learning_rate": 1.6e-3,
        },
        "gpu": {"num_generations": 2, "learning_rate": 8e-6},
    },
    claims=(
        Claim(
            "pair-advantages",
            "In a pair with rewards of 0 and 1 the advantages are the difference to the other's "
            "reward, but for the 1e-4 that is added to the deviation.",
            law(f"{BASELINES}:pair_advantages", "population").about(
                law(f"{BASELINES}:pair_closed_form"), within=3e-4
            ),
        ),
        Claim(
            "expected-advantage",
            "The expected advantage of a reward x at a success rate p is x - p in pairs, and (x - "
            "p) / sqrt(p (1 - p)) in large groups, here of 1024.",
            most(
                abs(
                    law(f"{BASELINES}:expected_advantage", "population", 2)
                    - law(f"{BASELINES}:expected_of_pair")
                ),
                abs(
                    law(f"{BASELINES}:expected_advantage", "population", 1024)
                    - law(f"{BASELINES}:expected_of_many")
                ),
            ).about(0.0, within=0.01),
        ),
        Claim(
            "matches-large-group",
            "With as many answers in an update pairs end at more than nine tenths of the accuracy "
            "of groups of 16.",
            SOLVED.of(PAIRS_CHOICE) / SOLVED.of(GROUPS_CHOICE) > 0.9,
            mechanism="sampling",
            acts=SILENT,
            expects=Expected(effect=0.05, spread=0.017),
        ),
        Claim(
            "fewer-rollouts",
            "With as many completions pairs learn faster: their reward is higher, on average over "
            "the training.",
            whole("reward").of(PAIRS_CHOICE) > whole("reward").of(GROUPS_CHOICE),
            mechanism="sampling",
            acts=SILENT,
            expects=Expected(effect=-0.009, spread=0.009),
        ),
        Claim(
            "small-group-beats-at-equal-prompts",
            "With as many prompts in an update the accuracy depends little on the group.",
            spread(
                SOLVED,
                "4-prompts-x-2-choice",
                "4-prompts-x-4-choice",
                "4-prompts-x-8-choice",
                GROUPS_CHOICE,
            )
            < 3,
            mechanism="sampling",
            acts=late("frac_reward_zero_std", 0).of("4-prompts-x-2-choice") >= 0.3,
        ),
        Claim(
            "discard-rate",
            "More pairs than groups of 16 have equal rewards, which teach nothing.",
            law(f"{BASELINES}:silent_share", 2) > law(f"{BASELINES}:silent_share", 16),
        ),
        Claim(
            "dpo-direction",
            "The gradient of a mixed pair at ratio 1 has the direction of that of a difference of "
            "log-probabilities per token.",
            law(f"{BASELINES}:pair_direction", "population").about(1.0, within=1e-12),
        ),
    ),
)
