"""DoRA trains the length of each weight vector apart from its direction, which LoRA changes.

Where the sources disagree, and what is not the paper's here:

- The paper takes the norm of columns of a (d, k) weight; its code and peft, which is used here,
  that of rows of an (out, in) weight: one number for each output.
- The norm is a constant in the backward pass (s4.3).
- With dropout, code and peft also scale what the base weight makes of the dropped input.
- Alpha, dropout and modules were not seen: they are the defaults here.
"""

from core.claims import Claim, Untestable, law
from core.paper import Paper, cite, printed

WEIGHTS = "core.laws.adapted_weights"
RANK = 4
SOLVED = Untestable("what the starting models are trained on here they solve before any training")
TASKS = ("average of 8 commonsense tasks",)

PAPER = Paper(
    slug="dora",
    title="DoRA: Weight-Decomposed Low-Rank Adaptation",
    arxiv="2402.09353",
    family="sft",
    config=(
        cite("TRL's paper index", use_peft=True, use_dora=True),
        cite("paper: half of LoRA's rank", lora_r=16),
        cite("repository", learning_rate=2e-4),
        cite("unstated", lora_alpha=32, lora_dropout=0.05),
    ),
    model="huggyllama/llama-7b",
    data="commonsense-170k",
    benchmarks=("gsm8k",),
    reported=(
        *printed(
            "table of commonsense reasoning",
            TASKS,
            "accuracy",
            {
                ("LLaMA, LoRA r 32", "7B"): (76.3,),
                ("LLaMA, DoRA r 16", "7B"): (77.5,),
                ("LLaMA, DoRA r 32", "7B"): (78.4,),
                ("LLaMA2, LoRA", "7B"): (77.6,),
                ("LLaMA2, DoRA r 16", "7B"): (80.5,),
                ("LLaMA2, DoRA r 32", "7B"): (79.7,),
                ("LLaMA3, LoRA", "8B"): (80.8,),
                ("LLaMA3, DoRA r 16", "8B"): (85.0,),
                ("LLaMA3, DoRA r 32", "8B"): (85.2,),
            },
        ),
        *printed(
            "ablation of ranks, as quoted",
            TASKS,
            "accuracy",
            {
                ("LLaMA, LoRA r 4", "7B"): (39.5,),
                ("LLaMA, LoRA r 8", "7B"): (40.7,),
                ("LLaMA, LoRA r 16", "7B"): (70.9,),
                ("LLaMA, LoRA r 64", "7B"): (65.8,),
                ("LLaMA, DoRA r 4", "7B"): (61.9,),
                ("LLaMA, DoRA r 8", "7B"): (77.9,),
                ("LLaMA, DoRA r 16", "7B"): (77.5,),
                ("LLaMA, DoRA r 64", "7B"): (76.8,),
            },
        ),
    ),
    arms={"dora": {}, "lora": {"use_dora": False, "lora_r": 32}},
    claims=(
        Claim(
            "dora-identity-init",
            "New adapters leave the logits as they are; the magnitudes are the norms of the rows.",
            law(f"{WEIGHTS}:dora_start_errors") == 0,
        ),
        Claim("dora-low-rank-gain", "At rank 2 DoRA ends below LoRA's loss.", SOLVED),
        Claim("dora-half-rank", "DoRA at half the rank is no worse than LoRA.", SOLVED),
        Claim("dora-rank-robust", "Over ranks DoRA's loss varies less than LoRA's.", SOLVED),
        Claim(
            "dora-extra-params",
            "DoRA trains one number more for each output of a matrix.",
            (
                law(f"{WEIGHTS}:trained_numbers", "dora", RANK)
                - law(f"{WEIGHTS}:trained_numbers", "lora", RANK)
            )
            == law(f"{WEIGHTS}:outputs", RANK),
        ),
        Claim(
            "dora-decorrelated-updates",
            "Changes of length and direction correlate less with DoRA.",
            Untestable("a run does not keep how far lengths and directions of weights moved"),
        ),
    ),
)
