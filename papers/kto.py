"""KTO needs no pairs: each answer is good or bad, and gains or loses against a reference point.

Where the sources disagree, and what is not the paper's here:

- The ratio of both labels' weights is from 1 to 3/2 in the paper and to 4/3 in TRL, whose default
  rate is a fifth of the paper's. TRL reads pairs as all good answers, then all bad ones.
- The reference point is the mean log-ratio of answers to other prompts, 0 where that is negative.
  In the world choice it is 0 throughout, since those answers become less likely: KTO is APO-zero of
  single answers there. In the world length an answer may fit many prompts; it acts at beta 4.
- The comparison with DPO is at a beta of 1. At the paper's 0.1 KTO was not above DPO on trial seeds
  (-1.6, +2.1 and -7.0 points).
- DPO sees as many answers, of half as many pairs. Both labels of KTO come from the same pairs.
- A tenth of the good answers are some 100 here and thousands in the paper; each is seen four
  times. Without their larger weight two of four trials ended with no right answer.
- The paper's quality is judged by GPT-4 or read off benchmarks; here it is being right.
"""

from core.claims import Claim, Expected, Untestable, late, score
from core.paper import Paper, because, cite, in_regime, printed

SOLVED = score("nano-choice", temperature=1.0)
LONG_SOLVED = score("nano-length", temperature=1.0)
REWARDS, REFERENCE_POINT = late("rewards/margins"), late("kl")
WORLD = "choice-pairs"
ANSWERS = {"per_device_train_batch_size": 48}  # those of 24 pairs


def labelled(regime: str, *, data: str, **changes: object) -> dict[str, object]:
    """Return an arm in a regime of pairs that trains on labelled answers of a preparation."""
    return in_regime(regime, data=f"prepared:{data}", **ANSWERS, **changes)


PAPER = Paper(
    slug="kto",
    title="KTO: Model Alignment as Prospect Theoretic Optimization",
    arxiv="2402.01306",
    family="kto",
    config=(
        cite("eq. 8", loss_type="kto", beta=0.1, desirable_weight=1.0, undesirable_weight=1.0),
        cite("v5", learning_rate=5e-6, per_device_train_batch_size=32, max_grad_norm=10.0),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    model="HuggingFaceH4/mistral-7b-sft-beta",
    data="ultrafeedback",
    benchmarks=("gsm8k",),
    reported=(
        *printed(
            "v5, Zephyr",
            ("MMLU", "gsm8k", "HumanEval", "BBH"),
            "score",
            {
                "Zephyr-beta SFT": (57.2, 39.0, 30.1, 46.3),
                "+ DPO": (58.2, 40.0, 30.1, 44.1),
                "+ KTO": (58.6, 53.5, 30.9, 52.6),
            },
        ),
        *printed(
            "v5, ablation",
            ("gsm8k", "BBH"),
            "change against KTO",
            {"KTO without z0": (-4.0, -3.6)},
            unit="points",
        ),
        *printed(
            "v5, OASST",
            ("OASST",),
            "win rate",
            {
                "Mistral-7B": (52.5,),
                "Mistral-7B + DPO": (60.0,),
                "Mistral-7B + KTO, all answers of a prompt": (65.2,),
                "Mistral-7B + KTO, one answer of a prompt": (63.1,),
                "Mistral-7B-Instruct": (62.1,),
            },
        ),
        *printed(
            "v5, Llama-3 and Qwen2.5",
            ("AlpacaEval 2", "BBH", "gsm8k"),
            "score",
            {
                ("Llama-3 SFT + KTO, beta 0.05", "8B"): (10.59, 65.15, 60.2),
                ("Llama-3 KTO without SFT, beta 0.1", "8B"): (11.25, 65.26, 57.92),
                ("Llama-3 Instruct + KTO, beta 0.25", "8B"): (18.86, 64.28, 76.42),
                ("Qwen2.5 + KTO", "3B"): (13.01, 32.39, 61.11),
            },
        ),
    ),
    trl_reasons=(because("The entry names the trainer's defaults, whose rate is 1e-6."),),
    preparations={
        "few-good": {
            "family": "own-labels",
            "per_seed": True,
            **in_regime("choice", num_prompts=1500, num_generations=16, desirable_share=0.1),
        },
        "right-and-wrong": {
            "family": "own-pairs",
            "per_seed": True,
            **in_regime("length", num_prompts=1500, num_generations=16),
        },
    },
    arms={
        "kto": {"at": {"cpu": {"beta": 1.0, **ANSWERS}}},
        "dpo": {"family": "dpo", **in_regime(WORLD, beta=1.0, max_steps=96)},
        "tenth": labelled(WORLD, data="few-good", beta=1.0, desirable_weight=13.33),
        "long-kto": labelled("length-pairs", data="right-and-wrong", beta=4.0),
        "long-no-point": labelled(
            "length-pairs", data="right-and-wrong", beta=4.0, loss_type="apo_zero_unpaired"
        ),
    },
    profiles={"cpu": {"regime": WORLD}},
    claims=(
        Claim(
            "imbalance-robust",
            "With a tenth of the good answers and a larger weight of these it is right as often as "
            "DPO on all pairs, or more often.",
            SOLVED.of("tenth") >= SOLVED.of("dpo"),
            mechanism="preferences",
            acts=(REWARDS.of("tenth") >= 0.5, REWARDS.of("dpo") >= 0.5),
            expects=Expected(effect=-9.0, spread=4.5),
        ),
        Claim(
            "reference-point-matters",
            "With its reference point it is right more often than without.",
            LONG_SOLVED.of("long-kto") > LONG_SOLVED.of("long-no-point"),
            mechanism="preferences",
            acts=REFERENCE_POINT.of("long-kto") >= 0.05,
            expects=Expected(effect=-0.3, spread=0.4),
        ),
        Claim(
            "unpaired-matches-paired",
            "On the answers of pairs, without knowing which belong together, it is right as often "
            "as DPO, or more often.",
            SOLVED.of("kto") >= SOLVED.of("dpo"),
            mechanism="preferences",
            acts=(REWARDS.of("kto") >= 0.5, REWARDS.of("dpo") >= 0.5),
            expects=Expected(effect=3.0, spread=1.0),
        ),
        Claim(
            "works-without-sft",
            "From a base model KTO stays stable, where DPO needs fine-tuning first.",
            Untestable(
                "starts here learn from demonstrations alone; before that they answer nothing "
                "rightly, and no pair can be made of their answers"
            ),
        ),
    ),
)
