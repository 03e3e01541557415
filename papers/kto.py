"""KTO trains on single answers, each labelled desirable or not, against a common baseline.

Where the sources disagree, and what is not the paper's here:

- The baseline is the mean log-ratio of answers to other prompts of a batch, at least 0; TRL gives a
  last batch of one row its own answer.
- The rates of desirable and undesirable answers, and beta, differ between models in the paper; the
  rate is 2 to 10 times that of DPO there. Here both losses train at one rate.
- Answers are the two of each pair that DPO trains on, as many of them in an update.
- The loss without the baseline is TRL's `apo_zero_unpaired`.
"""

from core.claims import Claim, Expected, Untestable, late, score
from core.paper import Paper, cite, in_regime, printed

SOLVED = score("nano-choice", temperature=1.0)
REWARDS, BASELINE = late("rewards/margins"), late("kl")
WORLD = "choice-pairs"
ANSWERS = {"per_device_train_batch_size": 48, "train_sampling_strategy": "random", "beta": 1.0}

PAPER = Paper(
    slug="kto",
    title="KTO: Model Alignment as Prospect Theoretic Optimization",
    arxiv="2402.01306",
    family="kto",
    config=(
        cite("eq. 8", loss_type="kto", desirable_weight=1.0, undesirable_weight=1.0),
        cite("s4.3", beta=0.1, learning_rate=5e-6, per_device_train_batch_size=32),
        cite("s4.3", max_grad_norm=10.0),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    model="HuggingFaceH4/mistral-7b-sft-beta",
    data="ultrafeedback",
    benchmarks=("gsm8k",),
    reported=printed(
        "tab. 2",
        ("GSM8K",),
        "accuracy",
        {
            "Zephyr-beta SFT": (39.0,),
            "Zephyr-beta SFT + DPO": (40.0,),
            "Zephyr-beta SFT + KTO": (53.5,),
        },
    ),
    arms={
        "kto": {"at": {"cpu": ANSWERS}},
        "no-baseline": in_regime(WORLD, loss_type="apo_zero_unpaired", **ANSWERS),
        "dpo": {"family": "dpo", **in_regime(WORLD, beta=1.0, max_steps=96)},
    },
    profiles={"cpu": {"regime": WORLD}},
    claims=(
        Claim(
            "imbalance-robust",
            "With a tenth of the desirable answers, weighed up, KTO does at least as well as DPO "
            "on all pairs.",
            Untestable("no preparation here drops answers of one label"),
        ),
        Claim(
            "reference-point-matters",
            "Without the baseline answers are right less often.",
            SOLVED.of("kto") > SOLVED.of("no-baseline"),
            mechanism="preferences",
            acts=(BASELINE.of("kto") >= 0.05, REWARDS.of("kto") >= 0.5),
            expects=Expected(effect=0.0, spread=1.0),
        ),
        Claim(
            "unpaired-matches-paired",
            "On the answers of pairs, taken one by one, KTO is right as often as DPO on the pairs, "
            "or more often.",
            SOLVED.of("kto") >= SOLVED.of("dpo"),
            mechanism="preferences",
            acts=(REWARDS.of("kto") >= 0.5, REWARDS.of("dpo") >= 0.5),
            expects=Expected(effect=0.0, spread=1.0),
        ),
        Claim(
            "works-without-sft",
            "From a base model KTO does better than DPO, and answers at shorter length.",
            Untestable("no starting model here is one before fine-tuning"),
        ),
    ),
)
