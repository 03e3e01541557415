"""AOT makes the rewards of chosen answers dominate those of rejected ones as distributions.

Where the sources disagree, and what is not the paper's here:

- TRL sorts within a micro-batch, and so does this loss unless `batch_scope="step"`; the arms of
  smaller micro-batches train on as many pairs an update.
- TRL's older name for the unpaired loss is `aot_pair`.
- Quantiles of implicit rewards are compared from 5 to 95 %; the mean of their differences is the
  margin itself.
- No table was at hand, so nothing printed stands beside our numbers.
"""

from core.claims import Claim, Expected, late, law, least, most, probability, score
from core.paper import Paper, cite, in_regime

DPO_OF_ONE = "core.laws.preference_optima:from_dpo"
GAP, ORDER = probability("quantile_gap"), probability("pair_accuracy")
SOLVED = score("nano-choice", temperature=1.0)
REWARDS = late("rewards/margins")
UPDATE = 24  # pairs


def sorted_in(pairs: int) -> dict[str, object]:
    """Return an arm that sorts micro-batches of so many pairs, in updates of the same size."""
    return in_regime(
        "choice-pairs",
        loss_type="aot",
        beta=1.0,
        per_device_train_batch_size=pairs,
        gradient_accumulation_steps=UPDATE // pairs,
    )


def shuffled(loss: str) -> dict[str, object]:
    """Return an arm whose rejected answers are those of other prompts."""
    return in_regime("choice-pairs", loss_type=loss, beta=1.0, data="prepared:shuffled")


PAPER = Paper(
    slug="aot",
    title="Distributional Preference Alignment of LLMs via Optimal Transport",
    arxiv="2406.05882",
    family="dpo",
    config=(
        cite("fig. 2", loss_type="aot", beta=0.01),
        cite("unstated", learning_rate=1e-6, lr_scheduler_type="constant"),
    ),
    model="teknium/OpenHermes-2.5-Mistral-7B",
    data="ultrafeedback",
    benchmarks=("gsm8k",),
    trl_index={"loss_type": "aot", "beta": 0.01},
    arms={
        "aot": {"at": {"cpu": {"loss_type": "aot"}}},
        "aot-unpaired": {"loss_type": "aot_unpaired", "at": {"cpu": {"loss_type": "aot_unpaired"}}},
        "dpo": {"loss_type": "sigmoid"},
        "aot-12": sorted_in(12),
        "aot-8": sorted_in(8),
        "shuffled-aot": shuffled("aot_unpaired"),
        "shuffled-dpo": shuffled("sigmoid"),
    },
    preparations={
        "shuffled": {
            "family": "own-pairs",
            "per_seed": True,
            **in_regime("choice", num_prompts=1500, num_generations=16, shuffles_rejected=True),
        }
    },
    profiles={"cpu": {"regime": "choice-pairs", "beta": 1.0}},
    claims=(
        Claim(
            "quantile-dominance",
            "Every quantile of the rewards of chosen answers is above that of rejected ones by "
            "more than with DPO.",
            least(GAP.of("aot"), GAP.of("aot-unpaired")) > GAP.of("dpo"),
            mechanism="preferences",
            acts=(REWARDS.of("aot") >= 0.5, REWARDS.of("dpo") >= 0.5),
            expects=Expected(effect=-0.25, spread=0.3),
        ),
        Claim(
            "batch-size-one-is-dpo",
            "With one pair both losses and their gradients are those of DPO.",
            most(
                abs(law(DPO_OF_ONE, "aot")),
                abs(law(DPO_OF_ONE, "aot_unpaired")),
            ).about(0.0, within=1e-12),
        ),
        Claim(
            "batch-robustness",
            "Sorting 8, 12 or 24 pairs at a time orders as many held-out pairs, within 3 points.",
            most(
                abs(ORDER.of("aot-8") - ORDER.of("aot")),
                abs(ORDER.of("aot-12") - ORDER.of("aot")),
            )
            < 0.03,
            mechanism="preferences",
            acts=REWARDS.of("aot") >= 0.5,
            expects=Expected(effect=0.015, spread=0.005),
        ),
        Claim(
            "unpaired-works",
            "Giving chosen answers the rejected ones of other prompts costs unpaired AOT fewer "
            "right answers than DPO, and leaves it above.",
            least(
                SOLVED.of("shuffled-aot") - SOLVED.of("shuffled-dpo"),
                (SOLVED.of("shuffled-aot") - SOLVED.of("aot-unpaired"))
                - (SOLVED.of("shuffled-dpo") - SOLVED.of("dpo")),
            )
            > 0,
            mechanism="preferences",
            acts=REWARDS.of("shuffled-dpo") >= 0.5,
            expects=Expected(effect=1.3, spread=0.8),
        ),
    ),
)
