"""Demystifying long chains of thought: a cosine of the length pays short right answers best.

Where the sources disagree, and what is not the paper's here:

- The paper trains with PPO from a model that learned long chains of thought by imitation; TRL's
  paper index offers its rewards to GRPO, as this module does but for the study of discounts.
- TRL's cosine has other values, from -1 to 1, and none of its own at the limit; its repetition
  penalty is another function, one value of a completion, though it names appendix C.2 too.
- With wrong answers from -10 on, the deviation of a group is mostly theirs.
- How tokens of overlapping repeated windows count is read from the description of the algorithm: at
  most once.
- Rows of table 1: `constructed` chains are put together from prompted steps, `emergent` ones are
  samples of QwQ.
- The small twin cuts answers at 40 tokens and penalises repeated 4-grams; the paper's n-grams of 40
  tokens do not fit into such an answer twice.
"""

from core.claims import Claim, Untestable, final, law
from core.paper import Paper, cite, printed
from core.rewards import Accuracy, CosineLength, DenseRepetition

LIMIT, POCKET_LIMIT = 14_336, 40
POCKET_REWARDS = (CosineLength(POCKET_LIMIT), DenseRepetition(ngram_size=4))
LONG_FIRST = (1.0, 2.0)  # worth of a short and of a long right answer
ACCURACY, COSINE = final("held_out/accuracy"), "core.laws.cosine_reward"
COLUMNS = ("math500", "aime24", "TheoremQA", "MMLU-Pro-1k")
DISCOUNTS = "gamma_c {}, gamma_p {}"

PPO = {
    "family": "ppo",
    "rewards": (CosineLength(LIMIT), DenseRepetition()),
    "lam": 1.0,
    "kl_coef": 0.01,
    "value_learning_rate": 9e-6,
    "penalty_gamma": 0.99,
    "at": {"cpu": {"rewards": POCKET_REWARDS, "value_learning_rate": None}},
}

PAPER = Paper(
    slug="demystifying-long-cot",
    title="Demystifying Long Chain-of-Thought Reasoning in LLMs",
    arxiv="2502.03373",
    family="grpo",
    config=(
        cite("appendix, actor", learning_rate=5e-7),
        cite("appendix, in the reward of PPO", beta=0.01),
        cite("appendix, 512 completions", per_device_train_batch_size=8),
        cite("appendix, 512 completions", gradient_accumulation_steps=64, steps_per_generation=64),
        cite("appendix, 4 to 16", num_generations=8),
        cite("appendix, window of 16K", max_completion_length=LIMIT),
        cite("unstated", loss_type="grpo", epsilon=0.2, temperature=1.0),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    rewards=(CosineLength(LIMIT),),
    model="meta-llama/Llama-3.1-8B",
    data="math",
    benchmarks=("math500", "aime24"),
    reported=(
        *printed(
            "table 1",
            COLUMNS,
            "top1",
            {
                ("SFT, constructed", "8B"): (48.2, 2.9, 21.0, 18.1),
                ("SFT and RL, constructed", "8B"): (52.4, 2.7, 21.0, 19.2),
                ("SFT, emergent", "8B"): (54.1, 3.5, 21.8, 32.0),
                ("SFT and RL, emergent", "8B"): (59.4, 4.0, 25.2, 34.6),
            },
        ),
        *printed(
            "table 5",
            COLUMNS,
            "top1",
            {
                ("SFT", "8B"): (50.4, 3.5, 20.6, 32.4),
                (DISCOUNTS.format(1, 1), "8B"): (55.7, 5.0, 25.7, 34.5),
                (DISCOUNTS.format(1, 0.999), "8B"): (58.0, 4.6, 26.0, 36.5),
                (DISCOUNTS.format(1, 0.99), "8B"): (57.8, 3.8, 24.5, 33.3),
                (DISCOUNTS.format(0.999, 0.999), "8B"): (53.5, 2.1, 19.5, 30.7),
                (DISCOUNTS.format(0.999, 0.99), "8B"): (55.2, 1.7, 18.5, 32.0),
                (DISCOUNTS.format(0.99, 0.99), "8B"): (47.9, 0.2, 15.6, 25.5),
            },
        ),
    ),
    arms={
        "cosine": {},
        "classic": {
            "rewards": (Accuracy(),),
            "at": {"cpu": {"rewards": (Accuracy(),)}},
        },
        "long-pays-more": {
            "rewards": (CosineLength(LIMIT, right=LONG_FIRST),),
            "at": {"cpu": {"rewards": (CosineLength(POCKET_LIMIT, right=LONG_FIRST),)}},
        },
        "repetition-penalty": {
            "rewards": (CosineLength(LIMIT), DenseRepetition()),
            "at": {"cpu": {"rewards": POCKET_REWARDS}},
        },
        "discounted-penalty": PPO,
        "discounted-outcome": PPO | {"gamma": 0.99},
    },
    profiles={
        "cpu": {
            "regime": "tight",
            "loss_type": "grpo",
            "beta": 0.0,
            "rewards": (CosineLength(POCKET_LIMIT),),
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
        }
    },
    claims=(
        Claim(
            "cosine-endpoints",
            "The reward has its printed values at the ends, their middle at half the length, and a "
            "value of its own at the limit.",
            law(f"{COSINE}:endpoints").about(law(f"{COSINE}:closed_form"), within=1e-12),
        ),
        Claim(
            "cosine-orders-groups",
            "Within a group a short right answer comes before a long right one, then a long wrong "
            "one and a short wrong one.",
            law(f"{COSINE}:least_step", "group") > 0.0,
        ),
        Claim(
            "cosine-stabilises-length",
            "Fewer answers are cut at the end than with a reward for the right answer alone.",
            final("completions/clipped_ratio").of("cosine")
            < final("completions/clipped_ratio").of("classic"),
            mechanism="length",
        ),
        Claim(
            "correct-prefers-long-explodes",
            "Answers become longer if long right ones are paid more than short ones.",
            final("completions/mean_length").of("long-pays-more")
            > final("completions/mean_length").of("cosine"),
            mechanism="length",
        ),
        Claim(
            "repetition-penalty-less-repetition",
            "With the repetition penalty fewer n-grams are repeated at the end.",
            final("completions/repetition").of("repetition-penalty")
            < final("completions/repetition").of("cosine"),
            mechanism="length",
        ),
        Claim(
            "discount-the-penalty-not-the-outcome",
            "Discounting the penalty ends more accurate than discounting the outcome.",
            ACCURACY.of("discounted-penalty") > ACCURACY.of("discounted-outcome"),
            mechanism="length",
        ),
        Claim(
            "window-size-nonmonotone",
            "A middle window ends more accurate than a shorter one and a longer one.",
            Untestable("neither a middle nor a long window cuts an answer of the small policies"),
        ),
    ),
)
