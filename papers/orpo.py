"""ORPO fine-tunes and prefers at once: the likelihood of chosen answers, and an odds ratio.

Where the sources disagree, and what is not the paper's here:

- The likelihood includes the prompt, as the authors' code and TRL have it. Prompts here are drawn
  at random, and most of the loss is theirs (1.8 nats a token, 0.4 in fine-tuning, which reads
  answers alone): that ORPO learns less from answers may be that and no more.
- Answers here are a few tokens of which one differs: what makes one likelier makes others less
  likely, so that fine-tuning lowers rejected answers. Long answers share most of their tokens.
- The log of the odds ratio is of mean log-probabilities of a token.
- The paper starts from base models; here from a model that answers one prompt in three rightly.
- Two stages are fine-tuning on chosen answers for half of the updates, then DPO for the other.
"""

from core.claims import Claim, Expected, late, least, probability
from core.paper import Paper, cite, in_regime

CHOSEN, REJECTED = probability("log_ratio/chosen"), probability("log_ratio/rejected")
MARGIN, RANKED = probability("pair_margin"), probability("likelihood_accuracy")
WORLD, HALF = "choice-pairs", {"max_steps": 48, "heldout_every": 24}
ACTS = late("rewards/margins").of("orpo") >= 0.01

PAPER = Paper(
    slug="orpo",
    title="ORPO: Monolithic Preference Optimization without Reference Model",
    arxiv="2403.07691",
    family="orpo",
    config=(
        cite("tab. 7", beta=0.1),
        cite("app. C", learning_rate=5e-6, lr_scheduler_type="inverse_sqrt", warmup_steps=200),
        cite("app. C", num_train_epochs=5.0, per_device_train_batch_size=8),
        cite("repository", max_length=2048),
    ),
    model="mistralai/Mistral-7B-v0.1",
    data="ultrafeedback",
    benchmarks=("gsm8k",),
    trl_index={
        "beta": 0.1,
        "learning_rate": 5e-6,
        "lr_scheduler_type": "inverse_sqrt",
        "warmup_steps": 200,
        "num_train_epochs": 5,
        "per_device_train_batch_size": 8,
    },
    preparations={
        "tuned": {
            "family": "dpo",
            "per_seed": True,
            **in_regime(WORLD, loss_type="sft", **HALF),
        }
    },
    arms={
        "orpo": {},
        "orpo-1": in_regime(WORLD, beta=1.0),
        "sft": {"family": "dpo", **in_regime(WORLD, loss_type="sft")},
        "two-stages": {
            "family": "dpo",
            **in_regime(WORLD, model="prepared:tuned", beta=0.1, **HALF),
        },
    },
    profiles={"cpu": {"regime": WORLD}},
    claims=(
        Claim(
            "sft-raises-rejected",
            "Fine-tuning on chosen answers makes rejected ones likelier too.",
            REJECTED.of("sft") > 0,
            mechanism="preferences",
            expects=Expected(effect=-1.8, spread=0.1),
        ),
        Claim(
            "orpo-separates",
            "ORPO parts chosen from rejected answers further than fine-tuning, and makes rejected "
            "ones less likely.",
            least(MARGIN.of("orpo") - MARGIN.of("sft"), REJECTED.of("sft") - REJECTED.of("orpo"))
            > 0,
            mechanism="preferences",
            acts=ACTS,
            expects=Expected(effect=-0.83, spread=0.05),
        ),
        Claim(
            "lambda-tradeoff",
            "A larger weight of the odds ratio parts them further and leaves chosen ones less "
            "likely.",
            least(MARGIN.of("orpo-1") - MARGIN.of("orpo"), CHOSEN.of("orpo") - CHOSEN.of("orpo-1"))
            > 0,
            mechanism="preferences",
            acts=ACTS,
            expects=Expected(effect=-0.04, spread=0.03),
        ),
        Claim(
            "one-stage-suffices",
            "ORPO ranks as many held-out pairs rightly as fine-tuning and then DPO.",
            RANKED.of("orpo") >= RANKED.of("two-stages"),
            mechanism="preferences",
            acts=ACTS,
            expects=Expected(effect=-0.028, spread=0.017),
        ),
    ),
)
