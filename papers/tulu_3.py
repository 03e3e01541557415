"""Tulu 3 fine-tunes, trains on pairs by log-ratios a token, and ends with verified rewards.

Where the sources disagree, and what is not the paper's here:

- Its first stage, fine-tuning on a mixture of 939,344 prompts, is not trained.
- The KL coefficient of the 70B model is 0.07 in one source and 0.7 in another; the number of
  episodes is 100,000 in the text and 10 million in the released command.
- The value model starts as a copy of the policy, not as a reward model, and answers without an end
  are wrong instead of having a penalty of their own.
- A verified answer is worth 10. Answers here move by less than a nat in all, so that the paper's
  coefficients of the KL, 0.01 to 0.1, take nothing from it: 1, 5 and 25 are compared.
- The reward is the truth here: a small coefficient cannot optimise it too far, and there is no
  other task that the training could leave unchanged.
- A beta of 5 on the mean of a token is one of 1.8 on the sum of 2.75 tokens, the mean answer of the
  world `choice`, and DPO's 0.1 is one of 0.3 on the mean. A larger beta costs answers there, so
  that LN-DPO and DPO are compared at both.
- LN-DPO and DPO learn lengths from right against wrong answers, of which the right one is longer in
  six of seven pairs; a longer answer is also likelier right. A mean weighs each token of a short
  answer more, its end among them, and most short answers are rejected. Beta hardly acts: losses end
  at 0.52 and 0.64 of 0.69 nats.
- "Improves over the start" is left out: in the world `choice` all three losses do.
"""

from core.claims import Claim, Expected, early, late, least, probability, score
from core.paper import Paper, cite, in_regime, printed
from core.rewards import Accuracy

LENGTH, ORDER = probability("answer_tokens"), probability("pair_accuracy")
DIVERGENCE, SOLVED = late("kl"), score("nano-choice", temperature=1.0)
REWARD, REWARDS = "reward", late("rewards/margins")
WORLD, RIGHT = "choice-pairs", "length-right-pairs"
LN = {"loss_type": "sigmoid_norm", "beta": 5.0}
VERIFIED = (Accuracy(right=10.0),)
# Else there were as many answers as the main arm has pairs.
IN_CHOICE = {
    "model": "prepared:tuned",
    "data": "nano-choice",
    "rewards": VERIFIED,
    "lam": 0.95,
    "max_steps": 80,
}
PRINTED = {  # of the last stage
    "learning_rate": 3e-7,
    "epsilon": 0.2,
    "temperature": 1.0,
    "max_completion_length": 2048,
    "per_device_train_batch_size": 224,
}


def with_kl(kl_coef: float) -> dict[str, object]:
    """Return an arm of the last stage with this coefficient of the KL."""
    return {"family": "ppo", **in_regime("choice", **IN_CHOICE, kl_coef=kl_coef)}


PAPER = Paper(
    slug="tulu-3",
    title="TULU 3: Pushing Frontiers in Open Language Model Post-Training",
    arxiv="2411.15124",
    family="dpo",
    config=(
        cite("paper", **LN, learning_rate=5e-7, num_train_epochs=1.0, max_length=2048),
        cite("paper", per_device_train_batch_size=128),
        cite("paper", lr_scheduler_type="linear", warmup_steps=0.1),
    ),
    model="allenai/Llama-3.1-Tulu-3-8B-SFT",
    data="tulu-3-preferences-8b",
    benchmarks=("gsm8k", "math500"),
    reported=(
        *printed(
            "tab. 23",
            ("gsm8k", "MATH", "IFEval", "development average"),
            "the paper's own evaluation",
            {
                ("Tulu 3 after DPO", "8B"): (84.3, 42.0, 81.1, 64.4),
                ("Tulu 3", "8B"): (87.6, 43.7, 82.4, 64.8),
                ("Tulu 3 after DPO", "70B"): (93.5, None, None, None),
                ("Tulu 3", "70B"): (93.5, None, None, None),
            },
        ),
        *printed(
            "tab. 31, secondary",
            ("development average", "unseen average"),
            "the paper's own evaluation",
            {
                ("Tulu 3 after SFT", "8B"): (64.9, 29.9),
                ("a later checkpoint", "8B"): (68.8, 32.4),
            },
        ),
    ),
    trl_index=LN,
    preparations={"tuned": {"per_seed": True, "at": {"cpu": {"regime": WORLD, **LN}}}},
    arms={
        "ln-dpo": {"at": {"cpu": LN}},
        "rlvr": {
            "family": "ppo",
            "model": "prepared:tuned",
            "data": "tulu-3-rlvr",
            "rewards": VERIFIED,
            "kl_coef": 0.05,
            "gamma": 1.0,
            "lam": 0.95,
            "at": {"paper": PRINTED, "cpu": {"regime": "choice", **IN_CHOICE, "kl_coef": 0.05}},
        },
        "ln-0.3": in_regime(WORLD, loss_type="sigmoid_norm", beta=0.3),
        "dpo": in_regime(WORLD),
        "dpo-1.8": in_regime(WORLD, beta=1.8),
        "simpo": {
            "family": "cpo",
            **in_regime(WORLD, loss_type="simpo", cpo_alpha=0.0, beta=25.0, simpo_gamma=1.0),
        },
        "ln-long": in_regime(WORLD, **LN, max_steps=176),
        "kl-1": with_kl(1.0),
        "kl-5": with_kl(5.0),
        "kl-25": with_kl(25.0),
        "ln-length": in_regime(RIGHT, **LN),
        "dpo-length": in_regime(RIGHT),
    },
    profiles={"cpu": {"regime": WORLD}},
    claims=(
        Claim(
            "ln-dpo-removes-length-bias",
            "Where chosen answers are mostly longer, LN-DPO's answers are shorter than DPO's, at a "
            "pair accuracy that is at most 3 points lower.",
            LENGTH.of("ln-length") < LENGTH.of("dpo-length"),
            mechanism="length",
            acts=(
                REWARDS.of("dpo-length") >= 0.05,
                LENGTH.of("dpo-length") >= 20.0,  # tokens: DPO lengthens
                ORDER.of("ln-length") - ORDER.of("dpo-length") >= -0.03,
            ),
            expects=Expected(effect=-3.2, spread=2.1),
        ),
        Claim(
            "ln-dpo-best-variant",
            "LN-DPO is right as often as DPO, at a small and at a large beta, and as SimPO.",
            least(
                SOLVED.of("ln-0.3") - SOLVED.of("dpo"),
                SOLVED.of("ln-dpo") - SOLVED.of("dpo-1.8"),
                SOLVED.of("ln-dpo") - SOLVED.of("simpo"),
            )
            >= 0,
            mechanism="preferences",
            acts=(REWARDS.of("dpo") >= 0.3, REWARDS.of("simpo") >= 0.5),
            expects=Expected(effect=0.0, spread=0.6),
        ),
        Claim(
            "rlvr-improves-verifiable",
            "PPO on verified answers is right more often than its start, and than as many further "
            "updates of LN-DPO.",
            least(SOLVED.of("rlvr") - SOLVED.of("ln-dpo"), SOLVED.of("rlvr") - SOLVED.of("ln-long"))
            > 0,
            mechanism="learning signal",
            acts=late(REWARD).of("rlvr") - early(REWARD).of("rlvr") >= 0.5,
            expects=Expected(effect=21.0, spread=4.0),
        ),
        Claim(
            "kl-penalty-tradeoff",
            "The smaller the coefficient of the KL, the farther the policy goes and the more often "
            "it is right.",
            least(
                SOLVED.of("kl-1") - SOLVED.of("kl-5"),
                SOLVED.of("kl-5") - SOLVED.of("kl-25"),
            )
            > 0,
            mechanism="KL",
            acts=(
                DIVERGENCE.of("kl-1") / DIVERGENCE.of("kl-5") >= 1.5,
                DIVERGENCE.of("kl-5") / DIVERGENCE.of("kl-25") >= 1.5,
            ),
            expects=Expected(effect=10.4, spread=0.8),
        ),
    ),
)
