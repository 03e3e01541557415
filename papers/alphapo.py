"""AlphaPO bends the reward of SimPO by a parameter alpha, which 0 leaves as it is.

Where the sources disagree, and what is not the paper's here:

- The paper proves the limits of alpha, not that anything is monotone in it.
- Settings are those of Mistral-Instruct, the only ones at hand (table 3).
- With beta 2.5 gaps of a few nats leave every pair the same weight; in the world `choice` beta
  is 25, and gamma 1 as in SimPO there.
- How much chosen answers are displaced is compared at equal margin: their log-ratio to the start
  divided by that of the pair.
- In the world of lengths both arms fall by 3 points on the benchmark: that claim is unhealthy.
"""

from core.claims import Claim, Expected, Side, late, law, least, probability, score
from core.paper import Paper, cite, in_regime

LIMIT = "core.laws.reference_free:from_simpo"
CHOSEN, MARGIN = probability("log_ratio/chosen"), probability("pair_margin")
SOLVED, LENGTH = score("nano-choice", temperature=1.0), probability("answer_tokens")
REWARDS = late("rewards/margins")
WIDE = {"loss_type": "simpo", "cpo_alpha": 0.0, "beta": 25.0, "simpo_gamma": 1.0}


def shaped(alpha: float) -> dict[str, object]:
    """Return an arm of the world choice with an alpha; that of 0 is SimPO."""
    return in_regime("choice-pairs", **WIDE, **({"alpha": alpha} if alpha else {}))


def in_length(alpha: float) -> dict[str, object]:
    """Return an arm of the world length with an alpha, and the paper's other settings."""
    shape = {"alpha": alpha} if alpha else {}
    return in_regime(
        "length-pairs", loss_type="simpo", cpo_alpha=0.0, beta=2.5, simpo_gamma=0.1, **shape
    )


def displaced(arm: str) -> Side:
    """Return how far chosen answers rise for each nat of the margin."""
    return CHOSEN.of(arm) / MARGIN.of(arm)


PAPER = Paper(
    slug="alphapo",
    title="AlphaPO: Reward Shape Matters for LLM Alignment",
    arxiv="2501.03884",
    family="cpo",
    config=(
        cite("tab. 3", loss_type="alphapo", alpha=0.25, beta=2.5, simpo_gamma=0.1),
        cite("tab. 3", learning_rate=7e-7),
        cite("unstated", lr_scheduler_type="cosine"),
    ),
    model="mistralai/Mistral-7B-Instruct-v0.2",
    data="ultrafeedback",
    benchmarks=("gsm8k",),
    trl_index={
        "loss_type": "alphapo",
        "alpha": 0.25,
        "beta": 2.5,
        "simpo_gamma": 0.1,
        "learning_rate": 7e-7,
    },
    arms={
        "alphapo": {"at": {"cpu": {**WIDE, "alpha": 0.25}}},
        "simpo": shaped(0.0),
        "alpha-0.5": shaped(0.5),
        "alpha-minus-0.5": shaped(-0.5),
        "alpha-1": shaped(1.0),
        "alphapo-length": in_length(0.25),
        "simpo-length": in_length(0.0),
    },
    profiles={"cpu": {"regime": "choice-pairs"}},
    claims=(
        Claim(
            "alpha-controls-displacement",
            "At equal margin a larger alpha leaves chosen answers likelier.",
            least(
                displaced("alpha-0.5") - displaced("simpo"),
                displaced("simpo") - displaced("alpha-minus-0.5"),
            )
            > 0,
            mechanism="preferences",
            acts=REWARDS.of("simpo") >= 0.5,
            expects=Expected(effect=-0.004, spread=0.008),
        ),
        Claim(
            "moderate-positive-alpha-best",
            "Alpha 0.25 is right more often than 0 and than 1.",
            least(
                SOLVED.of("alphapo") - SOLVED.of("simpo"),
                SOLVED.of("alphapo") - SOLVED.of("alpha-1"),
            )
            > 0,
            mechanism="preferences",
            acts=REWARDS.of("alphapo") >= 0.5,
            expects=Expected(effect=-0.5, spread=0.6),
        ),
        Claim(
            "limit-is-simpo",
            "With alpha 0.001 the loss is within 0.01 of SimPO's, and half of alpha halves the "
            "difference.",
            least(
                0.01 - abs(law(LIMIT, alpha=1e-3)),
                0.01 - abs(law(LIMIT, alpha=1e-3) / law(LIMIT, alpha=5e-4) - 2.0),
            )
            > 0,
        ),
        Claim(
            "no-length-inflation",
            "Answers are as long as SimPO's, within one token.",
            LENGTH.of("alphapo-length").about(LENGTH.of("simpo-length"), within=1.0),
            mechanism="length",
            acts=LENGTH.of("simpo-length") >= 18.0,
            expects=Expected(effect=0.1, spread=0.3),
        ),
    ),
)
