"""RSO trains on pairs of answers that statistical rejection sampling accepts, with a hinge."""

from core.claims import Claim, late, law, least, score
from core.paper import Paper, cite, in_regime, printed
from core.rewards import Scaled, SymbolAccuracy

ACCEPTED = "core.laws.rejection_sampling:accepted_reward"
SOLVED, REWARDS = score("nano-choice", temperature=1.0), late("rewards/margins")
WORLD = "choice-pairs"
HINGE = {"loss_type": "hinge", "beta": 1.0}


def sampled(**changes: object) -> dict[str, object]:
    """Return a preparation that makes pairs of answers of the start, with the graded reward."""
    drawn = in_regime(
        "choice",
        num_prompts=1000,
        rewards=(Scaled(SymbolAccuracy(), by=3.0),),
        pair_by="order",
        **changes,
    )
    return {"family": "own-pairs", "per_seed": True, **drawn}


def accepted(beta: float) -> dict[str, object]:
    """Return a preparation whose pairs are of accepted answers."""
    return sampled(num_generations=32, num_accepted=4, rejection_beta=beta)


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
        "accepted": accepted(0.5),
        "accepted-5": accepted(5.0),
        "accepted-0": accepted(0.0),
        "drawn": sampled(num_generations=4),
        "foreign": sampled(num_generations=4, temperature=2.0),
    },
    arms={
        "rso": {"at": {"cpu": HINGE}},
        "sft-rank": trained("drawn"),
        "direct": trained("foreign"),
        "rso-5": trained("accepted-5"),
        "rso-0": trained("accepted-0"),
        "gamma-0.1": trained(beta=0.1),
        "gamma-10": trained(beta=10.0),
    },
    profiles={"cpu": {"regime": WORLD, "data": "prepared:accepted"}},
    claims=(
        Claim(
            "rejection-sampling-helps",
            "Pairs of accepted answers leave more right answers than pairs of samples, and these "
            "more than pairs of another policy.",
            least(
                SOLVED.of("rso") - SOLVED.of("sft-rank"),
                SOLVED.of("sft-rank") - SOLVED.of("direct"),
            )
            > 0,
            mechanism="preferences",
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
        ),
        Claim(
            "gamma-decoupled",
            "A slope gamma of 1 leaves more right answers than a tenth and than ten times of it.",
            least(
                SOLVED.of("rso") - SOLVED.of("gamma-0.1"),
                SOLVED.of("rso") - SOLVED.of("gamma-10"),
            )
            > 0,
            mechanism="preferences",
        ),
        Claim(
            "sampler-distribution",
            "The mean reward of accepted candidates rises as beta falls.",
            law(ACCEPTED, beta=0.5) > law(ACCEPTED, beta=5.0),
        ),
    ),
)
