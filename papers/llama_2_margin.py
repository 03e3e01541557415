"""Llama 2's reward models must tell clear preferences apart by a larger margin than doubtful ones.

Where the sources disagree, and what is not the paper's here:

- Annotators graded preferences on a scale of four, the lowest of which has the margin 0. Pairs of
  the world `digits` have three grades, by how many digits the rejected answer has wrong more than
  the chosen one; a grade without an order would have an accuracy of 50 % by construction.
- TRL has no setting of margins: they are a column of the data, and each arm has data of its own.
- Meta's helpfulness preferences are not public, and neither is their mixture with other data.
- A margin is a gap that the loss asks for, 3 of clear pairs here. That it widens their gap could
  hardly come out otherwise; the effect says how much of the margin is reached.
- Clusters of scores are those of chosen and of rejected answers: Ashman's D is their distance in
  standard deviations.
"""

from core.claims import Claim, Comparison, Expected, law, probability
from core.paper import Paper, cite, in_regime, printed

PAIRS = "nano-digits-pairs"
CLEAR, CLOSE = probability("pairs_clear/accuracy"), probability("pairs_close/accuracy")
GAP, CLUSTERS = probability("pairs_clear/margin"), probability("rewards/bimodality")
GRADES = ("significantly better", "better", "slightly better", "negligibly better or unsure")


def healthy(*arms: str) -> tuple[Comparison, ...]:
    """Return the gates that arms order three of four clear pairs rightly."""
    return tuple(CLEAR.of(arm) >= 0.75 for arm in arms)


PAPER = Paper(
    slug="llama-2-margin",
    title="Llama 2: Open Foundation and Fine-Tuned Chat Models",
    arxiv="2307.09288",
    family="reward",
    config=(
        cite("unstated", learning_rate=1e-5, lr_scheduler_type="cosine"),
        cite("unstated", num_train_epochs=1.0),
    ),
    model="meta-llama/Llama-2-7b-hf",
    data="llama-2-helpfulness",
    reported=printed(
        "tab. 28",
        (*GRADES, "average"),
        "pair accuracy",
        {
            "no margin": (79.1, 66.9, 59.8, 54.5, 62.5),
            "small margin": (80.4, 67.3, 60.4, 55.0, 63.0),
            "large margin": (80.7, 67.5, 60.5, 54.3, 62.9),
        },
    ),
    arms={
        "large-margin": {"at": {"cpu": {"data": f"{PAIRS}-large"}}},
        "small-margin": in_regime("digits", data=f"{PAIRS}-small"),
        "no-margin": in_regime("digits"),
    },
    profiles={"cpu": {"regime": "digits"}},
    claims=(
        Claim(
            "margin-gap",
            "A large margin widens the gap of the rewards of clear pairs.",
            GAP.of("large-margin") > GAP.of("no-margin"),
            mechanism="preferences",
            acts=healthy("large-margin", "no-margin"),
            expects=Expected(effect=2.0, spread=0.5),
        ),
        Claim(
            "margin-clear-accuracy",
            "With a small margin as many clear pairs are in order as without one, or more.",
            CLEAR.of("small-margin") >= CLEAR.of("no-margin"),
            mechanism="preferences",
            acts=healthy("small-margin", "no-margin"),
            expects=Expected(effect=0.0, spread=0.04),
        ),
        Claim(
            "margin-large-hurts-close",
            "With a large margin at most as many close pairs are in order as with a small one.",
            CLOSE.of("large-margin") <= CLOSE.of("small-margin"),
            mechanism="preferences",
            acts=healthy("large-margin", "small-margin"),
            expects=Expected(effect=0.08, spread=0.05),
        ),
        Claim(
            "margin-bimodal",
            "With a large margin the rewards of chosen and of rejected answers are further apart.",
            CLUSTERS.of("large-margin") > CLUSTERS.of("no-margin"),
            mechanism="preferences",
            acts=healthy("large-margin", "no-margin"),
            expects=Expected(effect=0.8, spread=0.5),
        ),
        Claim(
            "margin-zero-equivalence",
            "A column of margins of 0 trains the same weights as no column.",
            law("core.laws.reward_models:margin_changes", margin=0.0) == 0,
        ),
    ),
)
