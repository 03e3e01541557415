"""Identity preference optimisation: a squared loss whose margin has a target.

Where the sources disagree, and what is not the paper's here:

- The paper sums log-probabilities over an answer (eq. 17, `ipo_sum`); TRL's `ipo` divides them by
  its length, as the authors are said to do. Papers run the paper's form here.
- The paper has no language model: its policies are tables of two or three actions. The batch of 90
  and the rate of 0.01 that TRL's index gives belong to these.
- Model, data and rate at the scales of a language model are those of DPO.
"""

from core.claims import Claim, Expected, late, law, least, probability
from core.paper import Paper, because, cite

OPTIMA = "core.laws.preference_optima"
WINNER, DISTANCE = f"{OPTIMA}:winner", f"{OPTIMA}:total_variation"
NEVER = f"{OPTIMA}:never_winning"
MARGIN = probability("pair_margin")
IPO = {"loss_type": "ipo_sum", "beta": 0.5}

PAPER = Paper(
    slug="ipo",
    title="A General Theoretical Paradigm to Understand Learning from Human Preferences",
    arxiv="2310.12036",
    family="dpo",
    config=(
        cite("eq. 17", loss_type="ipo_sum"),
        cite("unstated", beta=0.1, learning_rate=1e-6, per_device_train_batch_size=64),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    model="EleutherAI/pythia-2.8b",
    data="anthropic-hh",
    benchmarks=("gsm8k",),
    trl_index={"loss_type": "ipo", "learning_rate": 1e-2, "per_device_train_batch_size": 90},
    trl_reasons=(
        because("The paper's equation sums log-ratios, TRL's loss divides them.", "loss_type"),
        because(
            "TRL's numbers train tables of two actions, and would break a language model.",
            "learning_rate",
            "per_device_train_batch_size",
        ),
    ),
    arms={
        "ipo": {"at": {"cpu": IPO}},
        "dpo": {"loss_type": "sigmoid", "at": {"cpu": {"beta": 0.5}}},
    },
    profiles={"cpu": {"regime": "choice-pairs"}},
    claims=(
        Claim(
            "dpo-collapses-ipo-does-not",
            "If one of two actions wins every pair, DPO takes its probability to 1; IPO stops at "
            "sigma(1 / (2 tau)).",
            least(
                law(WINNER, "sigmoid", tau=1.0) - 0.99,
                0.01 - abs(law(WINNER, "ipo_sum", tau=1.0) - 0.622459),
                0.01 - abs(law(WINNER, "ipo_sum", tau=0.1) - 0.993307),
            )
            > 0,
        ),
        Claim(
            "tau-monotone",
            "A larger tau leaves IPO closer to the reference, and DPO as far from it.",
            least(
                law(DISTANCE, "ipo_sum", tau=0.1) - law(DISTANCE, "ipo_sum", tau=1.0),
                0.001 - abs(law(DISTANCE, "sigmoid", tau=0.1) - law(DISTANCE, "sigmoid", tau=1.0)),
            )
            > 0,
        ),
        Claim(
            "never-chosen-action-survives",
            "An action that never wins keeps more of its probability under IPO than under DPO.",
            law(NEVER, "ipo_sum", tau=1.0) > law(NEVER, "sigmoid", tau=1.0),
        ),
        Claim(
            "margin-regression",
            "With consistent labels the margin comes within 0.3 of its target, here 1 nat; that of "
            "DPO goes beyond.",
            least(0.3 - abs(MARGIN.of("ipo") - 1.0), MARGIN.of("dpo") - 1.3) > 0,
            mechanism="preferences",
            acts=late("rewards/margins").of("ipo") >= 0.1,
            expects=Expected(effect=0.1, spread=0.05),
        ),
    ),
)
