"""WPO weighs a pair by how likely the policy is to sample both answers, as if it had done so.

Where the sources disagree, and what is not the paper's here:

- The repository limits the weight of a pair to 1; TRL does not, and an answer of likely tokens then
  counts more than one that is sampled.
- Pairs of another policy are answers that the start gives at temperature 2, right against wrong;
  the paper has answers of many models.
- Where the paper's model answers are judged by GPT-4, here they are right or wrong.
- AdamW forgets the scale of a loss, so that small weights do not shorten updates. Equal steps do
  not mean equal progress: DPO with twice the updates is right more often than WPO, by 11 points on
  average over seeds 100 to 103, at 2.7 times WPO's margin.
- WPO's gain over DPO is on test problems of all kinds. On held-out prompts that have a pair, which
  are easier, both are right equally often (76.7 and 76.9 % over 16 seeds).
- The claim of the two sides allows 2 points between the weight of the rejected answer alone and the
  product; the paper gives no margin.
- An answer has five tokens or fewer, and most of their distributions are narrow: alignments differ
  by less than in a language model.
"""

from core.claims import Claim, Expected, late, least, probability, score
from core.paper import Paper, because, cite, in_regime, printed

WEIGHT, SPREAD = probability("start_log_weight"), probability("start_log_weight_spread")
SOLVED = score("nano-choice", temperature=1.0)
LOGGED, REWARDS = late("weights/log_mean"), late("rewards/margins")
ACTS = (
    LOGGED.of("wpo") <= -1.0,
    WEIGHT.of("wpo") >= -20.0,
    SPREAD.of("wpo") >= 1.0,
    REWARDS.of("wpo") >= 0.2,
)
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
    reported=(
        *printed(
            "tab. 1",
            ("AlpacaEval 2",),
            "length-controlled win rate",
            {
                "SFT, Mistral": (9.5,),
                "ORPO, Mistral": (14.7,),
                "KTO, Mistral": (14.9,),
                "SimPO, Mistral": (21.5,),
                "DPO, Mistral": (20.6,),
                "WPO, Mistral": (24.4,),
                "Llama-3-8B-Instruct": (26.0,),
                "DPO, Llama-3": (28.2,),
                "WPO, Llama-3": (33.8,),
            },
        ),
        *printed(
            "tab. 1",
            ("AlpacaEval 2",),
            "win rate",
            {
                "SFT, Mistral": (5.8,),
                "ORPO, Mistral": (12.6,),
                "KTO, Mistral": (12.3,),
                "SimPO, Mistral": (21.4,),
                "DPO, Mistral": (18.6,),
                "WPO, Mistral": (23.7,),
                "Llama-3-8B-Instruct": (25.3,),
                "DPO, Llama-3": (24.0,),
                "WPO, Llama-3": (31.0,),
            },
        ),
        *printed(
            "tab. 2",
            ("AlpacaEval 2",),
            "length-controlled win rate",
            {
                "sampled alignment": (24.4,),
                "greedy alignment": (23.0,),
                "no alignment": (22.0,),
            },
        ),
        *printed(
            "tab. 3",
            ("AlpacaEval 2",),
            "length-controlled win rate",
            {
                "IPO": (25.0,),
                "IPO, weighted": (29.4,),
                "SimPO": (21.5,),
                "SimPO, weighted": (21.9,),
                "KTO": (14.9,),
                "KTO, weighted": (21.1,),
            },
        ),
    ),
    trl_index={"loss_type": "sigmoid", "use_weighting": True, "beta": 0.01},
    trl_reasons=(because("TRL has no limit of weights, the repository has.", "weighting_clamp"),),
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
        "wpo-own": in_regime(WORLD, **LIMITED),
        "rejected": foreign(**LIMITED, weighting_side="rejected"),
        "chosen": foreign(**LIMITED, weighting_side="chosen"),
        "greedy": foreign(**WEIGHTED, weighting_alignment="greedy"),
        "none": foreign(**WEIGHTED, weighting_alignment="none"),
    },
    profiles={"cpu": {"regime": WORLD, **FOREIGN}},
    claims=(
        Claim(
            "wpo-beats-dpo-offpolicy",
            "On pairs of another policy WPO is right more often than DPO after as many updates.",
            SOLVED.of("wpo") > SOLVED.of("dpo"),
            mechanism="preferences",
            acts=ACTS,
            expects=Expected(effect=3.3, spread=6.0),
        ),
        Claim(
            "weights-near-one-on-policy",
            "Pairs of the start's own samples have a mean log-weight above -1 nat, those of "
            "another policy one that is lower by more than a nat.",
            least(
                1.0 + WEIGHT.of("wpo-own"),
                WEIGHT.of("wpo-own") - WEIGHT.of("wpo") - 1.0,
            )
            > 0,
            mechanism="preferences",
            expects=Expected(effect=0.19, spread=0.02),
        ),
        Claim(
            "rejected-weight-matters",
            "The weight of the rejected answer alone leaves as many right answers as the product, "
            "within 2 points, that of the chosen alone fewer.",
            least(
                2.0 - abs(SOLVED.of("rejected") - SOLVED.of("wpo")),
                SOLVED.of("wpo") - SOLVED.of("chosen"),
            )
            > 0,
            mechanism="preferences",
            acts=ACTS,
            expects=Expected(effect=2.6, spread=5.0),
        ),
        Claim(
            "alignment-order",
            "Sampled alignment leaves more right answers than greedy alignment, and greedy more "
            "than none.",
            least(
                SOLVED.of("wpo") - SOLVED.of("greedy"),
                SOLVED.of("greedy") - SOLVED.of("none"),
            )
            > 0,
            mechanism="preferences",
            acts=(
                LOGGED.of("wpo") - LOGGED.of("greedy") >= 0.2,
                LOGGED.of("greedy") - LOGGED.of("none") >= 0.2,
            ),
            expects=Expected(effect=-0.5, spread=0.6),
        ),
    ),
)
