"""SPPO plays against itself: log-ratios are regressed on the rate of winning against the policy.

Where the sources disagree, and what is not the paper's here:

- The paper reads soft win rates against K samples and averages both terms, as `sppo` does; TRL's
  `sppo_hard` takes certain wins and sums.
- With beta 0.001 an answer would have to move by 500 nats; small models take a larger beta.
- The preference model is PairRM in the paper. Here right answers beat wrong ones, others are even,
  so that the rate of winning against the start rises exactly as the share of right answers does.
"""

from core.claims import Claim, Expected, late, law, least, probability, score
from core.paper import Paper, because, cite, in_regime, printed

GAMES = "core.laws.preference_games"
STATIONARY = "core.laws.preference_optima:stationary_chosen"
CHOSEN, REJECTED = probability("log_ratio/chosen"), probability("log_ratio/rejected")
SOLVED, REWARDS = score("nano-choice", temperature=1.0), late("rewards/margins")
HERE = {"beta": 0.25, "loss_type": "sppo"}


def played(**models: str) -> dict[str, object]:
    """Return an arm that plays a round with this model and data."""
    return in_regime("choice-pairs", **models, **HERE)


def sampled(**models: str) -> dict[str, object]:
    """Return a preparation that makes pairs of this model's samples, with rates of winning."""
    rated = in_regime("choice", num_prompts=1500, num_generations=16, win_rates=True, **models)
    return {"family": "own-pairs", "per_seed": True, **rated}


ROUND_2 = {"model": "prepared:round-1", "data": "prepared:rated-2"}
ROUND_3 = {"model": "prepared:round-2", "data": "prepared:rated-3"}

PAPER = Paper(
    slug="sppo",
    title="Self-Play Preference Optimization for Language Model Alignment",
    arxiv="2405.00675",
    family="dpo",
    config=(
        cite("s5", loss_type="sppo", beta=1e-3, learning_rate=5e-7),
        cite("s5", per_device_train_batch_size=64),
        cite("repository", optim="rmsprop", num_train_epochs=1.0, max_length=1024),
        cite("repository", lr_scheduler_type="linear", warmup_steps=0.1),
    ),
    model="mistralai/Mistral-7B-Instruct-v0.2",
    data="ultrafeedback",
    benchmarks=("gsm8k",),
    reported=printed(
        "tab. 1",
        ("AlpacaEval 2",),
        "length-controlled win rate",
        {
            "Mistral-7B-Instruct-v0.2": (17.11,),
            "SPPO, iteration 1": (24.79,),
            "SPPO, iteration 2": (26.89,),
            "SPPO, iteration 3": (28.53,),
            "iterative DPO, iteration 3": (22.3,),
            "iterative IPO, iteration 3": (20.06,),
        },
    ),
    trl_index={
        "loss_type": "sppo_hard",
        "beta": 1e-3,
        "learning_rate": 5e-7,
        "per_device_train_batch_size": 64,
    },
    trl_reasons=(because("TRL's loss takes certain wins; the paper's reads rates.", "loss_type"),),
    preparations={
        "rated": sampled(),
        "round-1": {"family": "dpo", "per_seed": True, **played(data="prepared:rated")},
        "rated-2": sampled(model="prepared:round-1"),
        "round-2": {"family": "dpo", "per_seed": True, **played(**ROUND_2)},
        "rated-3": sampled(model="prepared:round-2"),
    },
    arms={
        "sppo": {"at": {"cpu": HERE}},
        "dpo": {"loss_type": "sigmoid", "at": {"cpu": {"beta": 0.1, "max_steps": 192}}},
        "sppo-long": in_regime("choice-pairs", data="prepared:rated", max_steps=192, **HERE),
        "second": played(**ROUND_2),
        "third": played(**ROUND_3),
    },
    profiles={"cpu": {"regime": "choice-pairs", "data": "prepared:rated"}},
    claims=(
        Claim(
            "absolute-movement",
            "SPPO makes chosen answers likelier than before and than DPO does, rejected ones less "
            "likely.",
            least(
                CHOSEN.of("sppo-long"),
                CHOSEN.of("sppo-long") - CHOSEN.of("dpo"),
                0.0 - REJECTED.of("sppo-long"),
            )
            > 0,
            mechanism="preferences",
            acts=(REWARDS.of("sppo-long") >= 0.3, REWARDS.of("dpo") >= 0.3),
            expects=Expected(effect=0.6, spread=0.06),
        ),
        Claim(
            "targets",
            "With certain wins the log-ratio of a chosen answer settles at 1 / (2 beta).",
            law(STATIONARY, "sppo_hard").about(0.5, within=1e-6),
        ),
        Claim(
            "iterations-improve",
            "Each round of self-play is right more often than the one before, the second also than "
            "as many updates on the pairs of the first.",
            least(
                SOLVED.of("second") - SOLVED.of("sppo"),
                SOLVED.of("second") - SOLVED.of("sppo-long"),
                SOLVED.of("third") - SOLVED.of("second"),
            )
            > 0,
            mechanism="preferences",
            acts=(REWARDS.of("sppo") >= 0.2, REWARDS.of("third") >= 0.2),
            expects=Expected(effect=15.0, spread=2.0),
        ),
        Claim(
            "nash-on-cyclic-preferences",
            "On a game without a best action the average of the policies becomes hard to exploit, "
            "and the last one does not.",
            least(
                law(f"{GAMES}:of_average", 1) - law(f"{GAMES}:of_average", 1000),
                law(f"{GAMES}:of_last", 1000) - law(f"{GAMES}:of_average", 1000),
            )
            > 0,
        ),
    ),
)
