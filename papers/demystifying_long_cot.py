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
- The pocket world cuts answers at 40 tokens, the nano world at 64, or at 16, where it cuts many.
  Both penalise repeated 4-grams: n-grams of 40 tokens do not fit into such an answer twice.
- The paper adds the repetition penalty to the cosine; here, where policies repeat little by that
  reward, the nano world adds it to the accuracy.
- The paper's windows are 4k, 8k and 16k tokens; here they are 16, 32 and 64, and all policies are
  scored with answers of up to 64.
"""

from core.claims import Claim, Expected, late, law, least, score
from core.paper import Paper, cite, in_regime, printed
from core.rewards import Accuracy, CosineLength, DenseRepetition

LIMIT, POCKET_LIMIT, NANO_LIMIT, SHORT_LIMIT = 14_336, 40, 64, 16
POCKET_REWARDS = (CosineLength(POCKET_LIMIT), DenseRepetition(ngram_size=4))
LONG_FIRST = (1.0, 2.0)  # worth of a short and of a long right answer
COSINE = "core.laws.cosine_reward"
SOLVED, LENGTH = score("nano-length", temperature=1.0), "completions/mean_length"
CUT, REPEATED = "completions/clipped_ratio", "completions/repetition"
# In the pocket world few answers are cut, and all have nearly one length.
CUTS = late(CUT, 0).of("window-16") >= 0.1
REPEATS = late(REPEATED, 0).of("window-16") >= 0.05
LONG = late(LENGTH, 0).of("discounted-outcome-length") >= 20  # 0.99 ** 20 is 0.82
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

NANO_COSINE, PENALTY = CosineLength(NANO_LIMIT), DenseRepetition(ngram_size=4)
NANO_PPO = {"rewards": (NANO_COSINE, PENALTY), "lam": 1.0, "penalty_gamma": 0.99}


def window(limit: int, **changes: object) -> dict[str, object]:
    """Return an arm whose answers are cut at a limit in training, and at 64 when it is scored."""
    return in_regime("length", max_completion_length=limit, **changes)


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
        "cosine-length": in_regime("length", rewards=(NANO_COSINE,)),
        "long-pays-more-length": in_regime(
            "length", rewards=(CosineLength(NANO_LIMIT, right=LONG_FIRST),)
        ),
        "discounted-penalty-length": {"family": "ppo", **in_regime("length", **NANO_PPO)},
        "discounted-outcome-length": {
            "family": "ppo",
            **in_regime("length", **NANO_PPO, gamma=0.99),
        },
        "window-16": window(SHORT_LIMIT),
        "window-32": window(2 * SHORT_LIMIT),
        "window-64": in_regime("length"),
        "cosine-16": window(SHORT_LIMIT, rewards=(CosineLength(SHORT_LIMIT),)),
        "repetition-penalty-16": window(SHORT_LIMIT, rewards=(Accuracy(), PENALTY)),
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
            late(CUT).of("cosine-16") < late(CUT).of("window-16"),
            mechanism="length",
            acts=CUTS,
        ),
        Claim(
            "correct-prefers-long-explodes",
            "Answers become longer if long right ones are paid more than short ones.",
            late(LENGTH).of("long-pays-more-length") > late(LENGTH).of("cosine-length"),
            mechanism="length",
            expects=Expected(effect=15.0, spread=2.9),
        ),
        Claim(
            "repetition-penalty-less-repetition",
            "With the repetition penalty fewer n-grams are repeated at the end.",
            late(REPEATED).of("repetition-penalty-16") < late(REPEATED).of("window-16"),
            mechanism="length",
            acts=REPEATS,
        ),
        Claim(
            "discount-the-penalty-not-the-outcome",
            "Discounting the penalty ends more accurate than discounting the outcome.",
            SOLVED.of("discounted-penalty-length") > SOLVED.of("discounted-outcome-length"),
            mechanism="length",
            acts=LONG,
        ),
        Claim(
            "window-size-nonmonotone",
            "A middle window ends more accurate than one of half and one of twice its length.",
            least(
                SOLVED.of("window-32") - SOLVED.of("window-16"),
                SOLVED.of("window-32") - SOLVED.of("window-64"),
            )
            > 0,
            mechanism="length",
            acts=CUTS,
        ),
    ),
)
