"""Anchored losses say whether chosen answers become likelier, which DPO leaves open.

Where the sources disagree, and what is not the paper's here:

- The paper makes pairs by minimal revision with a stronger model (CLAIR). Here they are a start's
  own samples; DPO lowers chosen answers when it trains on them for long.
- The rates and the batch are those of the published version, by TRL's index.
- Directions are tested at beta 1. At the paper's beta of 0.1, where the comparison with DPO stands,
  APO-zero lowers chosen answers after all, by 0.5 nats [0.0, 1.1] over 16 seeds, and DPO by 0.9.
- APO-down breaks the model if it goes on: after 96 updates no answer is right, as may be where
  chosen answers are better than the model's. Its directions are tested after 24.
- APO-down also serves chosen answers that are worse than the model's own: right answers never are.
"""

from core.claims import Claim, Expected, Untestable, late, least, probability
from core.paper import Paper, cite, in_regime, printed

CHOSEN, REJECTED = probability("log_ratio/chosen"), probability("log_ratio/rejected")
REWARDS = late("rewards/margins")
WORLD, LONG = "choice-pairs", {"max_steps": 192}  # as long as it takes DPO to lose some

PAPER = Paper(
    slug="apo",
    title="Anchored Preference Optimization and Contrastive Revisions: Addressing "
    "Underspecification in Alignment",
    arxiv="2408.06266",
    family="dpo",
    config=(
        cite("s5.2", loss_type="apo_zero", beta=0.1, learning_rate=2e-7),
        cite("app. B.1", per_device_train_batch_size=64),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    model="meta-llama/Meta-Llama-3-8B-Instruct",
    data="ultrafeedback",
    benchmarks=("gsm8k",),
    reported=printed(
        "abstract",
        ("MixEval-Hard",),
        "gain over the start",
        {"CLAIR and APO": (7.65,)},
    ),
    trl_index={
        "loss_type": "apo_zero",
        "beta": 0.1,
        "learning_rate": 2e-7,
        "per_device_train_batch_size": 64,
    },
    arms={
        "apo-zero": {"at": {"cpu": {"loss_type": "apo_zero", "beta": 1.0, **LONG}}},
        "apo-down": {
            "loss_type": "apo_down",
            "at": {"cpu": {"loss_type": "apo_down", "max_steps": 24}},
        },
        "apo-zero-0.1": in_regime(WORLD, loss_type="apo_zero", **LONG),
        "dpo": in_regime(WORLD, **LONG),
    },
    profiles={"cpu": {"regime": WORLD}},
    claims=(
        Claim(
            "zero-directions",
            "APO-zero makes chosen answers likelier and rejected ones less likely.",
            least(CHOSEN.of("apo-zero"), 0.0 - REJECTED.of("apo-zero")) > 0,
            mechanism="preferences",
            acts=REWARDS.of("apo-zero") >= 0.5,
            expects=Expected(effect=0.95, spread=0.05),
        ),
        Claim(
            "down-directions",
            "APO-down makes both less likely, the rejected ones more.",
            least(0.0 - CHOSEN.of("apo-down"), CHOSEN.of("apo-down") - REJECTED.of("apo-down")) > 0,
            mechanism="preferences",
            acts=REWARDS.of("apo-down") >= 0.05,
            expects=Expected(effect=0.25, spread=0.08),
        ),
        Claim(
            "dpo-underspecified",
            "APO-zero leaves chosen answers likelier than DPO does.",
            CHOSEN.of("apo-zero-0.1") > CHOSEN.of("dpo"),
            mechanism="preferences",
            acts=(REWARDS.of("apo-zero-0.1") >= 0.5, REWARDS.of("dpo") >= 0.5),
            expects=Expected(effect=0.36, spread=0.1),
        ),
        Claim(
            "match-variant-to-data",
            "APO-zero is better where chosen answers are better than the model's, APO-down where "
            "they are worse.",
            Untestable("no pairs here have a chosen answer that is worse than the model's own"),
        ),
    ),
)
