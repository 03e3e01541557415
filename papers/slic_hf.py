"""SLiC-HF trains pairs up to a margin, without a reference, and keeps a likelihood beside it.

Where the sources disagree, and what is not the paper's here:

- The margin delta of summed log-probabilities is that of `hinge` with beta 1 / delta. TRL's index
  names the `hinge` of DPO, which compares with a reference and has no likelihood.
- The likelihood is a mean over the tokens of an update, of the chosen answers; in the paper it is a
  sum, of a fine-tuning target or of the best of 8 samples. Its weight is that of a public
  configuration.
- The rate and the batch are those of the first version; the published one has 1e-4 and 512.
- Answers are ranked by being right instead of by a trained ranker.
- Fine-tuning is the same likelihood of the same chosen answers, with as many updates.
"""

from core.claims import Claim, early, late, score
from core.paper import Paper, because, cite, in_regime, printed

SOLVED = score("nano-choice", temperature=1.0)
MARGIN, ACTIVE, CHOSEN = late("rewards/margins"), late("active_pairs"), early("logps/chosen")
WORLD, LONG = "choice-pairs", {"max_steps": 192}
HINGE = {"loss_type": "hinge", "beta": 1.0, "cpo_alpha": 0.3, **LONG}
SFT = {"family": "dpo", **in_regime(WORLD, loss_type="sft", **LONG)}

PAPER = Paper(
    slug="slic-hf",
    title="SLiC-HF: Sequence Likelihood Calibration with Human Feedback",
    arxiv="2305.10425",
    family="cpo",
    config=(
        cite("s2.3", loss_type="hinge", beta=1.0),
        cite("repository", cpo_alpha=0.1),
        cite("secondary", learning_rate=1e-5, per_device_train_batch_size=32),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    model="google-t5/t5-large",
    data="ultrafeedback",
    benchmarks=("gsm8k",),
    reported=printed(
        "tab. 1, secondary",
        ("Reddit TL;DR",),
        "win rate against the reference",
        {
            "SFT": (44.96,),
            "continued SFT on best-ranked samples": (65.43,),
            "SLiC-HF on human pairs": (82.92,),
            "SLiC-HF on ranked samples": (86.21,),
            "the same, likelihood of another target": (85.51,),
            "SLiC-HF on samples ranked by a reward model": (82.42,),
            "the same with a reward model, likelihood of another target": (83.52,),
        },
    ),
    trl_index={"loss_type": "hinge", "per_device_train_batch_size": 512, "learning_rate": 1e-4},
    trl_reasons=(
        because("The published version's.", "per_device_train_batch_size", "learning_rate"),
    ),
    preparations={
        "flat-pairs": {
            "family": "own-pairs",
            "per_seed": True,
            **in_regime("choice", num_prompts=1500, num_generations=16, temperature=1.5),
        }
    },
    arms={
        "slic": {"at": {"cpu": HINGE}},
        "logistic": in_regime(WORLD, **{**HINGE, "loss_type": "sigmoid"}),
        "pairs-alone": in_regime(WORLD, **{**HINGE, "cpo_alpha": 0.0}),
        "foreign": in_regime(WORLD, data="prepared:flat-pairs", **HINGE),
        "sft": {"family": "dpo", **in_regime(WORLD, loss_type="sft", **LONG)},
        "sft-half": {"family": "dpo", **in_regime(WORLD, loss_type="sft", max_steps=96)},
        "sft-twice": {"family": "dpo", **in_regime(WORLD, loss_type="sft", max_steps=384)},
    },
    profiles={"cpu": {"regime": WORLD}},
    claims=(
        Claim(
            "calibrated-beats-sft",
            "Calibration is right more often than fine-tuning on the chosen answers.",
            SOLVED.of("slic") > SOLVED.of("sft"),
            mechanism="preferences",
        ),
    ),
)
