"""RSO trains on pairs of answers that statistical rejection sampling accepts, with a hinge.

Where the sources disagree, and what is not the paper's here:

- The paper draws 64 candidates, accepts 8, and makes a pair of every two that are accepted; here 4
  of 32 are accepted, and the first two of different rewards are the pair of a prompt.
- The reward is 3 times the share of right digits, so that with a beta of 0.5 half of the candidates
  pass the first comparison with the best one. The paper learns a reward model; here it is known,
  and what counts in the end is the share of answers whose digits are all right.
- Equal rewards make no pair, which is common among accepted answers and unknown to the paper. All
  arms therefore have about 500 pairs, of 525 to 2,130 prompts: the more is rejected, the harder are
  the prompts that are left. With 1,000 prompts for each arm, accepted answers lose 8 points to
  samples instead of 2.5 (seeds 100 to 103), as they make fewer pairs.
- gamma is 0.1 and not 0.05, with a tenth and ten times of it: log-ratios move by a few nats here.
  At 1 the hinge of all pairs is 0 after a third of the updates, at 0.01 it never ends.
- Pairs that are given are labelled by people in the paper; here they are answers that the start
  gives at temperature 2.
- TRL's `hinge` is hinge-norm, its `sigmoid` is sigmoid-norm; it has no rejection sampling.
"""

from core.claims import Claim, Expected, late, law, least, score
from core.paper import Paper, cite, in_regime, printed
from core.rewards import Scaled, SymbolAccuracy

ACCEPTED = "core.laws.rejection_sampling:accepted_reward"
SOLVED, REWARDS = score("nano-choice", temperature=1.0), late("rewards/margins")
HINGES = late("loss").of("rso")  # the mean over pairs: 1 at the start, 0 beyond the margin
ACTS = (REWARDS.of("rso") >= 0.3, HINGES >= 0.1, HINGES <= 0.9)
WORLD = "choice-pairs"
HINGE = {"loss_type": "hinge", "beta": 0.1}


def sampled(prompts: int, **changes: object) -> dict[str, object]:
    """Return a preparation that makes some 500 pairs of answers to this number of prompts."""
    drawn = in_regime(
        "choice",
        num_prompts=prompts,
        rewards=(Scaled(SymbolAccuracy(), by=3.0),),
        pair_by="order",
        **changes,
    )
    return {"family": "own-pairs", "per_seed": True, **drawn}


def accepted(prompts: int, beta: float) -> dict[str, object]:
    """Return a preparation whose pairs are of accepted answers."""
    return sampled(prompts, num_generations=32, num_accepted=4, rejection_beta=beta)


def trained(pairs: str = "accepted", **changes: object) -> dict[str, object]:
    """Return an arm that trains on such pairs."""
    return in_regime(WORLD, data=f"prepared:{pairs}", **HINGE | changes)


PAPER = Paper(
    slug="rso",
    title="Statistical Rejection Sampling Improves Preference Optimization",
    arxiv="2309.06657",
    family="dpo",
    config=(
        cite("s5", loss_type="hinge", beta=0.05, learning_rate=1e-5),
        cite("s5", per_device_train_batch_size=32, optim="adafactor"),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    model="google-t5/t5-large",
    data="anthropic-hh",
    benchmarks=("gsm8k",),
    reported=(
        *printed(
            "tab. 1",
            ("Reddit TL;DR, gold reward", "Anthropic HH, gold reward"),
            "win rate",
            {
                "DPO, given pairs": (76.09, 36.13),
                "sigmoid-norm, SFT samples": (78.14, 58.65),
                "sigmoid-norm, RSO": (82.22, 59.15),
                "hinge-norm, RSO": (83.45, 57.75),
                "SLiC, given pairs": (79.76, 27.56),
            },
        ),
        *printed(
            "tab. 1",
            ("Reddit TL;DR, gold reward",),
            "win rate",
            {
                "SLiC, SFT samples": (80.19,),
                "hinge, RSO": (84.4,),
                "hinge-norm, given pairs": (76.43,),
                "hinge-norm, SFT samples": (76.57,),
            },
        ),
        *printed(
            "human evaluation",
            ("Reddit TL;DR, judged by people",),
            "chosen as best",
            {"DPO": (21.0,), "RSO": (48.0,)},
        ),
    ),
    trl_index={"loss_type": "hinge", "beta": 0.05},
    preparations={
        "accepted": accepted(1000, 0.5),
        "accepted-5": accepted(700, 5.0),
        "accepted-0": accepted(2130, 0.0),
        "drawn": sampled(667, num_generations=4),
        "foreign": sampled(525, num_generations=4, temperature=2.0),
    },
    arms={
        "rso": {"at": {"cpu": HINGE}},
        "sft-rank": trained("drawn"),
        "direct": trained("foreign"),
        "rso-5": trained("accepted-5"),
        "rso-0": trained("accepted-0"),
        "gamma-0.01": trained(beta=0.01),
        "gamma-1": trained(beta=1.0),
    },
    profiles={"cpu": {"regime": WORLD, "data": "prepared:accepted"}},
    claims=(
        Claim(
            "rejection-sampling-helps",
            "Pairs of accepted answers leave more right answers than as many pairs of samples, and "
            "these more than pairs of another policy.",
            least(
                SOLVED.of("rso") - SOLVED.of("sft-rank"),
                SOLVED.of("sft-rank") - SOLVED.of("direct"),
            )
            > 0,
            mechanism="preferences",
            acts=(*ACTS, REWARDS.of("sft-rank") >= 0.3, REWARDS.of("direct") >= 0.2),
            expects=Expected(effect=-2.5, spread=1.7),
        ),
        Claim(
            "beta-limits",
            "A rejection beta of 0.5 leaves more right answers than one of 5, which accepts nearly "
            "as it samples, and than 0, which accepts the best.",
            least(
                SOLVED.of("rso") - SOLVED.of("rso-5"),
                SOLVED.of("rso") - SOLVED.of("rso-0"),
            )
            > 0,
            mechanism="preferences",
            acts=(*ACTS, REWARDS.of("rso-5") >= 0.3, REWARDS.of("rso-0") >= 0.3),
            expects=Expected(effect=-3.5, spread=4.0),
        ),
        Claim(
            "gamma-decoupled",
            "A slope gamma of 0.1 leaves more right answers than a tenth and than ten times of it.",
            least(
                SOLVED.of("rso") - SOLVED.of("gamma-0.01"),
                SOLVED.of("rso") - SOLVED.of("gamma-1"),
            )
            > 0,
            mechanism="preferences",
            acts=ACTS,
            expects=Expected(effect=4.2, spread=5.5),
        ),
        Claim(
            "sampler-distribution",
            "The mean reward of accepted candidates rises as beta falls.",
            law(ACCEPTED, beta=0.5) > law(ACCEPTED, beta=5.0),
        ),
    ),
)
