"""Iterative RPO alternates sampling pairs of solutions with DPO and their winners' likelihood.

Where the sources disagree, and what is not the paper's here:

- The likelihood is a mean over the tokens of each winner, `sft_mean`; TRL's `sft` is one over all
  tokens of a micro-batch.
- The paper makes 10 pairs a problem of 30 solutions, gold ones among the winners; here a start
  answers each prompt 16 times, and at most one pair is made.
- A later round trains the model of the round before, which is also its reference.
- Whether fine-tuning raises losing answers is tested in the world `length`, whose answers share
  most of their tokens, as solutions do. In the world `choice` one token tells answers apart, so
  that what makes one likelier makes the other less likely (by 2.5 nats on seeds 100 to 103).
- The comparison with DPO is at 192 updates, after which chosen answers fall. Fewer updates do not
  save DPO, which is right as often after 96; a beta of 1 gains it 4 points (see `dpo`).
- The arms `pocket` and `pocket-dpo` are one round with and without the likelihood in the pocket
  world, for its GSM8K beside the printed one; no claim reads them.
- One round on twice the pairs takes as many updates as two rounds. The third round is compared with
  the second alone, which had fewer updates.
"""

from core.claims import Claim, Expected, late, least, probability, score
from core.paper import Paper, because, cite, in_regime, printed
from core.rewards import Accuracy

CHOSEN, REJECTED = probability("log_ratio/chosen"), probability("log_ratio/rejected")
MARGIN, SOLVED = probability("pair_margin"), score("nano-choice", temperature=1.0)
REWARDS = late("rewards/margins")
WORLD, LONG = "choice-pairs", {"max_steps": 192}  # as long as it takes DPO to lose some
MIXED = {"loss_type": ["sigmoid", "sft_mean"], "loss_weights": [1.0, 1.0]}
PROMPTS = 1000


def sampled(prompts: int = PROMPTS, **models: str) -> dict[str, object]:
    """Return a preparation that makes pairs of a model's solutions to this number of prompts."""
    drawn = in_regime("choice", num_prompts=prompts, num_generations=16, **models)
    return {"family": "own-pairs", "per_seed": True, **drawn}


ROUND_1 = in_regime(WORLD, data="prepared:pairs-1", **MIXED)
ROUND_2 = in_regime(WORLD, model="prepared:round-1", data="prepared:pairs-2", **MIXED)
ROUND_3 = in_regime(WORLD, model="prepared:round-2", data="prepared:pairs-3", **MIXED)

PAPER = Paper(
    slug="iterative-rpo",
    title="Iterative Reasoning Preference Optimization",
    arxiv="2404.19733",
    family="dpo",
    config=(
        cite("TRL's paper index", loss_type=["sigmoid", "sft_mean"]),
        cite("paper", loss_weights=[1.0, 1.0], beta=0.1, learning_rate=7e-7),
        cite("paper", per_device_train_batch_size=16, max_steps=5000),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    model="meta-llama/Llama-2-70b-chat-hf",
    data="prepared:pairs",
    benchmarks=("gsm8k",),
    reported=printed(
        "tab. 1",
        ("GSM8K",),
        "accuracy",
        {
            "Llama-2-70B-Chat": (55.6,),
            "iteration 1": (73.1,),
            "iteration 2": (78.0,),
            "iteration 3": (81.1,),
            "iteration 4": (81.6,),
            "DPO": (61.8,),
            "SFT on gold solutions": (63.5,),
            "STaR, one iteration": (65.2,),
            "one iteration, twice the data": (74.8,),
        },
    ),
    trl_index={"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, 1.0], "beta": 0.1},
    trl_reasons=(because("TRL's likelihood is a mean over the micro-batch.", "loss_type"),),
    preparations={
        "pairs": {
            "family": "own-pairs",
            "data": "gsm8k",
            "rewards": (Accuracy(),),
            "num_generations": 30,
            "temperature": 0.8,
        },
        "pairs-1": sampled(),
        "round-1": {"family": "dpo", "per_seed": True, **ROUND_1},
        "pairs-2": sampled(model="prepared:round-1"),
        "round-2": {"family": "dpo", "per_seed": True, **ROUND_2},
        "pairs-3": sampled(model="prepared:round-2"),
        "pairs-twice": sampled(2 * PROMPTS),
        "long-pairs": {
            "family": "own-pairs",
            "per_seed": True,
            **in_regime("length", num_prompts=PROMPTS, num_generations=16),
        },
    },
    arms={
        "irpo": {"at": {"cpu": {"data": "prepared:pairs-1", **MIXED}}},
        "irpo-long": in_regime(WORLD, **MIXED, **LONG),
        "dpo": {
            "loss_type": "sigmoid",
            "loss_weights": None,
            "at": {"cpu": {"loss_type": "sigmoid", **LONG}},
        },
        "sft": in_regime(WORLD, loss_type="sft_mean", **LONG),
        "sft-length": in_regime("length-pairs", data="prepared:long-pairs", loss_type="sft_mean"),
        "second": ROUND_2,
        "third": ROUND_3,
        "pocket": in_regime("pairs", **MIXED),
        "pocket-dpo": in_regime("pairs", loss_type="sigmoid", loss_weights=None),
        "twice-the-pairs": in_regime(WORLD, data="prepared:pairs-twice", **MIXED, **LONG),
    },
    profiles={"cpu": {"regime": WORLD}},
    claims=(
        Claim(
            "nll-raises-chosen",
            "With the likelihood term winners become likelier, with DPO alone less likely, while "
            "both margins grow.",
            least(
                CHOSEN.of("irpo-long"),
                0.0 - CHOSEN.of("dpo"),
                MARGIN.of("irpo-long"),
                MARGIN.of("dpo"),
            )
            > 0,
            mechanism="preferences",
            acts=(REWARDS.of("irpo-long") >= 0.3, REWARDS.of("dpo") >= 0.3),
            expects=Expected(effect=1.0, spread=0.9),
        ),
        Claim(
            "nll-improves-accuracy",
            "Answers are right more often with both terms than with DPO alone, and than with the "
            "likelihood alone.",
            least(
                SOLVED.of("irpo-long") - SOLVED.of("dpo"), SOLVED.of("irpo-long") - SOLVED.of("sft")
            )
            > 0,
            mechanism="preferences",
            acts=(REWARDS.of("irpo-long") >= 0.3, REWARDS.of("dpo") >= 0.3),
            expects=Expected(effect=4.4, spread=1.7),
        ),
        Claim(
            "iterations-help",
            "Each round is right more often than the one before by a smaller gain, and two rounds "
            "more often than one on twice the pairs.",
            least(
                SOLVED.of("third") - SOLVED.of("second"),
                (SOLVED.of("second") - SOLVED.of("irpo"))
                - (SOLVED.of("third") - SOLVED.of("second")),
                SOLVED.of("second") - SOLVED.of("twice-the-pairs"),
            )
            > 0,
            mechanism="preferences",
            acts=(REWARDS.of("irpo") >= 0.2, REWARDS.of("third") >= 0.1),
            expects=Expected(effect=1.6, spread=0.4),
        ),
        Claim(
            "sft-raises-rejected",
            "Fine-tuning on winners alone makes losing answers likelier, too.",
            REJECTED.of("sft-length") > 0,
            mechanism="preferences",
            expects=Expected(effect=-0.3, spread=0.1),
        ),
    ),
)
