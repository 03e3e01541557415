"""Identity preference optimisation: a squared loss whose margin has a target.

Where the sources disagree, and what is not the paper's here:

- The paper sums log-probabilities over an answer (eq. 17, `ipo_sum`); TRL's `ipo` divides them by
  its length, as the authors are said to do. Papers run the paper's form here.
- The paper has no language model: its policies are tables of two or three actions. The batch of 90
  and the rate of 0.01 that TRL's index gives belong to these.
- Model, data and rate at the scales of a language model are those of DPO.
"""

from core.claims import Claim, Expected, late, law, probability
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
            "ipo-does-not-collapse",
            "If one of two actions wins every pair, IPO stops at sigma(1 / (2 tau)).",
            law(WINNER, "ipo_sum", tau=1.0).about(0.6224593312018546, within=1e-6),
        ),
        Claim(
            "dpo-collapses",
            "There DPO takes the winner's probability to 1.",
            law(WINNER, "sigmoid", tau=1.0) > 0.99,
        ),
        Claim(
            "tau-holds-ipo",
            "A larger tau leaves IPO closer to the reference.",
            law(DISTANCE, "ipo_sum", tau=1.0) < law(DISTANCE, "ipo_sum", tau=0.1),
        ),
        Claim(
            "tau-does-not-hold-dpo",
            "DPO moves as far with any tau.",
            law(DISTANCE, "sigmoid", tau=1.0).about(law(DISTANCE, "sigmoid", tau=0.1), within=1e-3),
        ),
        Claim(
            "never-chosen-action-survives",
            "An action that never wins keeps more of its probability under IPO than under DPO.",
            law(NEVER, "ipo_sum", tau=1.0) > law(NEVER, "sigmoid", tau=1.0),
        ),
        Claim(
            "margin-regression",
            "With consistent labels the margin comes near its target, 1 / (2 tau), here 1 nat.",
            MARGIN.of("ipo").about(1.0, within=0.3),
            mechanism="preferences",
            acts=late("rewards/margins").of("ipo") >= 0.1,
            expects=Expected(effect=-0.2, spread=0.05),
        ),
        Claim(
            "margin-bounded",
            "There the margin of IPO is smaller than that of DPO, which has no target.",
            MARGIN.of("ipo") < MARGIN.of("dpo"),
            mechanism="preferences",
            acts=late("rewards/margins").of("dpo") >= 0.5,
            expects=Expected(effect=-3.0, spread=0.3),
        ),
    ),
)
