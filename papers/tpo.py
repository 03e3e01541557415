"""TPO trains on a gold answer and a pair at once: its likelihood, and a loss without a reference.

Where the sources disagree, and what is not the paper's here:
"""

from core.claims import Claim, late, probability, score
from core.paper import Paper, cite, in_regime

GOLD, SOLVED = probability("log_ratio/gold"), score("nano-choice", temperature=1.0)
LENGTH, RIGHT = probability("answer_tokens"), score("nano-length", temperature=1.0)
REWARDS = late("rewards/margins")
WORLD, LONG = "choice-triples", {"max_steps": 192}
HALF = {"max_steps": 96}
SIMPO = {"loss_type": "simpo", "cpo_alpha": 0.0, "beta": 25.0, "simpo_gamma": 1.0}
TRIPLES = {"data": "prepared:length-triples", "tpo_alpha": 1.0}

PAPER = Paper(
    slug="tpo",
    title="Triple Preference Optimization: Achieving Better Alignment using a Single Step "
    "Optimization",
    arxiv="2405.16681",
    family="tpo",
    config=(
        cite("s3", loss_type="sigmoid", tpo_alpha=1.0),
        cite("tab. 6", beta=0.01, learning_rate=5e-7),
        cite("TRL's paper index", num_train_epochs=1.0, max_length=1024),
    ),
    model="meta-llama/Meta-Llama-3-8B",
    data="prepared:triples",
    benchmarks=("gsm8k",),
    preparations={
        "triples": {"family": "own-triples", "data": "gsm8k"},
        "tuned": {
            "family": "dpo",
            "per_seed": True,
            **in_regime(WORLD, loss_type="sft", **HALF),
        },
        "length-triples": {
            "family": "own-triples",
            "per_seed": True,
            **in_regime("length", num_prompts=1500, num_generations=16),
        },
    },
    arms={
        "tpo": {"at": {"cpu": {"beta": 1.0, **LONG}}},
        "no-gold": in_regime(WORLD, beta=1.0, tpo_alpha=0.0, **LONG),
        "no-gold-half": in_regime(WORLD, beta=1.0, tpo_alpha=0.0, **HALF),
        "tpo-0.1": in_regime(WORLD, beta=0.1, **LONG),
        "no-gold-0.1": in_regime(WORLD, beta=0.1, tpo_alpha=0.0, **LONG),
        "chosen": {"family": "cpo", **in_regime(WORLD, beta=1.0, cpo_alpha=1.0, **LONG)},
        "sft": {"family": "dpo", **in_regime(WORLD, loss_type="sft", **LONG)},
        "sft-simpo": {
            "family": "cpo",
            **in_regime(WORLD, model="prepared:tuned", **SIMPO, **HALF),
        },
        "tpo-length": in_regime("length-pairs", beta=0.1, **TRIPLES),
        "tpo-l-length": in_regime(
            "length-pairs", loss_type="tpo-l", beta=2.0, tpo_l_gamma=0.5, **TRIPLES
        ),
    },
    profiles={"cpu": {"regime": WORLD}},
    claims=(
        Claim("a", "x", GOLD.of("tpo") > GOLD.of("no-gold")),
        Claim("a2", "x", GOLD.of("tpo") > GOLD.of("no-gold-half")),
        Claim("a3", "x", GOLD.of("tpo-0.1") > GOLD.of("no-gold-0.1")),
        Claim("l", "x", LENGTH.of("tpo-length") >= LENGTH.of("tpo-l-length")),
    ),
)
