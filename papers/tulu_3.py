"""Tulu 3 fine-tunes, trains on pairs by log-ratios a token, and ends with verified rewards.

Where the sources disagree, and what is not the paper's here:

- Its first stage, fine-tuning on a mixture of 939,344 prompts, is not trained.
- The KL coefficient of the 70B model is 0.07 in one source and 0.7 in another; the number of
  episodes is 100,000 in the text and 10 million in the released command.
- The value model starts as a copy of the policy, not as a reward model, and answers without an end
  are wrong instead of having a penalty of their own.
- A verified answer is worth 10. Answers here move by less than a nat in all, so that the paper's
  coefficients of the KL, 0.01 to 0.1, take nothing from it: they are compared at 1, 5 and 25.
- The reward is the truth here: a small coefficient cannot optimise it too far, and there is no
  other task that the training could leave unchanged.
- A beta of 5 on the mean of a token is one of 1.8 on the sum of 2.75 tokens, the mean answer of the
  world `choice`. LN-DPO is compared with DPO at the paper's beta of 0.1 and at 1.
- LN-DPO and DPO learn lengths from right against wrong answers, of which the right one is longer in
  six of seven pairs; a longer answer is also likelier right. The beta of the sum that corresponds
  to 5 is 0.25 there.
- "Improves over the start" is left out: in the world `choice` all three losses do.
"""

from core.claims import Claim, early, late, least, most, probability, score
from core.paper import Paper, cite, in_regime, printed
from core.rewards import Accuracy

LENGTH, ORDER = probability("answer_tokens"), probability("pair_accuracy")
DIVERGENCE, SOLVED = probability("kl_to_start"), score("nano-choice", temperature=1.0)
REWARD, REWARDS = "reward", late("rewards/margins")
WORLD, RIGHT = "choice-pairs", "length-right-pairs"
LN = {"loss_type": "sigmoid_norm", "beta": 5.0}
VERIFIED = {"family": "ppo", "rewards": (Accuracy(right=10.0),)}
IN_CHOICE = {"regime": "choice", "model": "prepared:tuned", "lam": 0.95}


def with_kl(kl_coef: float) -> dict[str, object]:
    """Return an arm of the last stage with this coefficient of the KL."""
    return {**VERIFIED, **in_regime(**IN_CHOICE, rewards=VERIFIED["rewards"], kl_coef=kl_coef)}


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
            **VERIFIED,
            "model": "prepared:tuned",
            "data": "tulu-3-rlvr",
            "learning_rate": 3e-7,
            "kl_coef": 0.05,
            "epsilon": 0.2,
            "lam": 0.95,
            "gamma": 1.0,
            "temperature": 1.0,
            "max_completion_length": 2048,
            "per_device_train_batch_size": 224,
            "at": {"cpu": {**IN_CHOICE, **VERIFIED, "kl_coef": 0.05}},
        },
        "dpo": in_regime(WORLD),
        "dpo-1": in_regime(WORLD, beta=1.0),
        "simpo": {
            "family": "cpo",
            **in_regime(WORLD, loss_type="simpo", cpo_alpha=0.0, beta=25.0, simpo_gamma=1.0),
        },
        "ln-long": in_regime(WORLD, **LN, max_steps=256),
        "kl-1": with_kl(1.0),
        "kl-5": with_kl(5.0),
        "kl-25": with_kl(25.0),
        "ln-length": in_regime(RIGHT, **LN),
        "dpo-length": in_regime(RIGHT),
        "dpo-length-0.25": in_regime(RIGHT, beta=0.25),
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
        ),
        Claim(
            "ln-dpo-best-variant",
            "LN-DPO is right as often as DPO and SimPO, or more often.",
            SOLVED.of("ln-dpo") >= most(SOLVED.of("dpo"), SOLVED.of("dpo-1"), SOLVED.of("simpo")),
            mechanism="preferences",
            acts=(REWARDS.of("dpo") >= 0.3, REWARDS.of("simpo") >= 0.5),
        ),
        Claim(
            "rlvr-improves-verifiable",
            "PPO on verified answers is right more often than its start, and than as many further "
            "updates of LN-DPO.",
            least(SOLVED.of("rlvr") - SOLVED.of("ln-dpo"), SOLVED.of("rlvr") - SOLVED.of("ln-long"))
            > 0,
            mechanism="learning signal",
            acts=late(REWARD).of("rlvr") - early(REWARD).of("rlvr") >= 0.3,
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
        ),
    ),
)
