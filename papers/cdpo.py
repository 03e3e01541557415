"""Conservative DPO smooths the labels of pairs, so that margins have a target.

Where the sources disagree, and what is not the paper's here:

- A note of an author of DPO, without experiments. It recommends no smoothing; the README of its
  repository speaks of 0.1.
- TRL had it as `sigmoid` with `label_smoothing` up to 0.28, and ignores that since.
- Model, data and rate are those of DPO.
- Its remarks are about many epochs; 96 updates here read each pair about three times.
"""

from math import log

from core.claims import Claim, Expected, late, law, least, probability
from core.paper import Paper, cite

STATIONARY = "core.laws.preference_optima:stationary_chosen"
FLIPPED, LOST = "choice-flipped-30", 0.3
ORDER = probability("pair_accuracy")

PAPER = Paper(
    slug="cdpo",
    title="A note on DPO with noisy preferences & relationship to IPO",
    url="https://ericmitchell.ai/cdpo.pdf",
    family="dpo",
    config=(
        cite("eq. 3", loss_type="cdpo"),
        cite("repository", label_smoothing=0.1, beta=0.1, learning_rate=5e-7),
        cite("repository", per_device_train_batch_size=64, max_length=512),
        cite("repository", optim="rmsprop", warmup_steps=150),
        cite("unstated", lr_scheduler_type="constant_with_warmup"),
    ),
    model="EleutherAI/pythia-2.8b",
    data="anthropic-hh",
    benchmarks=("gsm8k",),
    arms={
        "cdpo": {"at": {"cpu": {"beta": 1.0, "loss_type": "cdpo", "label_smoothing": LOST}}},
        "dpo": {"loss_type": "sigmoid", "label_smoothing": 0.0, "at": {"cpu": {"beta": 1.0}}},
    },
    profiles={"cpu": {"regime": FLIPPED}},
    claims=(
        Claim(
            "finite-margin",
            "Smoothing by e gives the scaled margin the target log((1 - e) / e); DPO has none.",
            least(
                1e-6 - abs(law(STATIONARY, "cdpo", label_smoothing=0.1) - log(9)),
                law(STATIONARY, "sigmoid") - 30.0,
            )
            > 0,
        ),
        Claim(
            "noise-robustness",
            "Where labels are flipped, cDPO orders held-out pairs no worse than DPO.",
            ORDER.of("cdpo") >= ORDER.of("dpo"),
            mechanism="preferences",
            acts=late("rewards/margins").of("dpo") >= 0.5,
            expects=Expected(effect=-0.07, spread=0.02),
        ),
    ),
)
