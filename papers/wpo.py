"""WPO weighs a pair by how likely the policy is to sample both answers, as if it had done so.

Where the sources disagree, and what is not the paper's here:

- The repository limits the weight of a pair to 1; TRL does not, and an answer of likely tokens then
  counts more than one that is sampled.
- Pairs of another policy are answers of the start at temperature 2, right against wrong. They are
  as far from the policy as from its start, while those of other models may be near it in parts.
- Where the paper's model answers are judged by GPT-4, here they are right or wrong.
- Weights of 0.03 on average shorten no update of AdamW, which forgets the scale of a loss. What
  they leave of the number of pairs that count is less; DPO with half and with twice the updates
  stands beside WPO for that.
- Training on one's own samples has weights near 1, and is not compared with DPO.
"""

from core.claims import Claim, late, least, probability, score
from core.paper import Paper, cite, in_regime

WEIGHT, SPREAD = probability("start_log_weight"), probability("start_log_weight_spread")
SOLVED = score("nano-choice", temperature=1.0)
LOGGED, REWARDS = late("weights/log_mean"), late("rewards/margins")
WORLD, FOREIGN = "choice-pairs", {"data": "prepared:foreign"}
WEIGHTED = {"use_weighting": True}
LIMITED = {**WEIGHTED, "weighting_clamp": 1.0}


def foreign(**changes: object) -> dict[str, object]:
    """Return an arm that trains on pairs of another policy."""
    return in_regime(WORLD, **FOREIGN, **changes)


PAPER = Paper(
    slug="wpo",
    title="WPO: Enhancing RLHF with Weighted Preference Optimization",
    arxiv="2406.11827",
    family="dpo",
    config=(
        cite("TRL's paper index", loss_type="sigmoid", use_weighting=True),
        cite("repository", weighting_clamp=1.0, max_length=2048),
        cite("s4", beta=0.01, per_device_train_batch_size=128, num_train_epochs=1.0),
        cite("repository", learning_rate=5e-7, lr_scheduler_type="cosine", warmup_steps=0.1),
    ),
    model="HuggingFaceH4/mistral-7b-sft-beta",
    data="ultrafeedback",
    benchmarks=("gsm8k",),
    trl_index={"loss_type": "sigmoid", "use_weighting": True, "beta": 0.01},
    preparations={
        "foreign": {
            "family": "own-pairs",
            "per_seed": True,
            **in_regime("choice", num_prompts=1500, num_generations=16, temperature=2.0),
        }
    },
    arms={
        "wpo": {"at": {"cpu": LIMITED}},
        "dpo": {"use_weighting": False, "weighting_clamp": None},
        "dpo-half": foreign(max_steps=48),
        "dpo-double": foreign(max_steps=192),
        "wpo-own": in_regime(WORLD, **LIMITED),
        "rejected": foreign(**LIMITED, weighting_side="rejected"),
        "chosen": foreign(**LIMITED, weighting_side="chosen"),
        "greedy": foreign(**WEIGHTED, weighting_alignment="greedy"),
        "none": foreign(**WEIGHTED, weighting_alignment="none"),
    },
    profiles={"cpu": {"regime": WORLD, **FOREIGN}},
    claims=(
        Claim("a", "b", least(*((SPREAD.of(a) - WEIGHT.of(a)) for a in ("wpo", "wpo-own"))) > 0),
        Claim(
            "c",
            "d",
            least(
                *(
                    SOLVED.of(a) - SOLVED.of("dpo")
                    for a in (
                        "wpo",
                        "dpo-half",
                        "dpo-double",
                        "rejected",
                        "chosen",
                        "greedy",
                        "none",
                    )
                )
            )
            > 0,
        ),
    ),
)
