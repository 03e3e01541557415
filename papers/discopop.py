"""DiscoPOP blends the logistic with an exponential loss; language models proposed it as code.

Where the sources disagree, and what is not the paper's here:

- Equation 4 of the paper prints sigma - 1 for 1 - sigma; equation 5 and the code have it right.
- The search by a language model, and its other losses, are not repeated.
- The betas that the paper calls moderate, 0.025 to 0.1, belong to log-ratios of tens of nats. Here
  they move by a few nats, so that 20 times these betas are compared, and the extremes as printed.
"""

from core.claims import Claim, Expected, Side, final, late, law, least, mean_along, probability
from core.paper import Paper, cite, in_regime, printed

SLOPE = "core.laws.preference_optima:slope"
DRIFT, RIGHT = "held_out/kl_to_start", "held_out/accuracy"
ORDER, REWARDS = probability("pair_accuracy"), late("rewards/margins")
MODERATE, EXTREME = (0.5, 1.0, 2.0), (0.01, 2.5)
WATCHED = {"heldout_kl": True, "heldout_every": 8}


def arms_of(loss: str, name: str) -> dict[str, dict[str, object]]:
    """Return the arms of a loss by beta."""
    return {
        f"{name}-{beta:g}": in_regime("choice-pairs", loss_type=loss, beta=beta, **WATCHED)
        for beta in (*MODERATE, *EXTREME)
    }


def above_at(beta: float) -> Side:
    """Return how much more often DiscoPOP is right than DPO, over divergences that both reach."""
    arms = f"discopop-{beta:g}", f"dpo-{beta:g}"
    reached = least(*(final(DRIFT).of(arm) for arm in arms))
    ours, theirs = (mean_along(RIGHT, DRIFT, reached).of(arm) for arm in arms)
    return ours - theirs


PAPER = Paper(
    slug="discopop",
    title="Discovering Preference Optimization Algorithms with and for Large Language Models",
    arxiv="2406.08414",
    family="dpo",
    config=(
        cite("app. B.1", loss_type="discopop", beta=0.05, learning_rate=5e-7),
        cite("app. B.1", per_device_train_batch_size=64, num_train_epochs=2.0),
        cite("app. E", discopop_tau=0.05),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    model="HuggingFaceH4/zephyr-7b-gemma-sft-v0.1",
    data="ultrafeedback",
    benchmarks=("gsm8k",),
    reported=printed(
        "repository",
        ("MT-Bench",),
        "score",
        {
            "DPO": (7.888,),
            "DPO (official checkpoint)": (7.81,),
            "SLiC": (7.881,),
            "KTO": (7.603,),
            "DBAQL": (7.978,),
            "AQL": (7.953,),
            "PADLL": (7.941,),
            "AQFL": (7.931,),
            "CELL": (7.925,),
            "LRML (DiscoPOP)": (7.916,),
            "PFL": (7.9,),
        },
    ),
    trl_index={
        "loss_type": "discopop",
        "discopop_tau": 0.05,
        "beta": 0.05,
        "learning_rate": 5e-7,
        "per_device_train_batch_size": 64,
    },
    arms={
        "discopop": {},
        **arms_of("discopop", "discopop"),
        **arms_of("sigmoid", "dpo"),
    },
    profiles={"cpu": {"regime": "choice-pairs"}},
    claims=(
        Claim(
            "non-convex-curve",
            "The loss falls at -0.5, rises at 0 and falls at 0.5 of the scaled margin.",
            least(
                0.0 - law(SLOPE, "discopop", at=-0.5),
                law(SLOPE, "discopop", at=0.0),
                0.0 - law(SLOPE, "discopop", at=0.5),
            )
            > 0,
        ),
        Claim(
            "imdb-frontier",
            "At equal divergence and each moderate beta DiscoPOP is right as often as DPO, or more "
            "often.",
            least(*map(above_at, MODERATE)) >= 0,
            mechanism="KL",
            acts=tuple(REWARDS.of(f"discopop-{beta:g}") >= 0.3 for beta in MODERATE),
            expects=Expected(effect=-1.0, spread=1.0),
        ),
        Claim(
            "beta-failure",
            "For a very small and a very large beta it orders fewer held-out pairs than DPO.",
            least(*(ORDER.of(f"dpo-{beta:g}") - ORDER.of(f"discopop-{beta:g}") for beta in EXTREME))
            > 0,
            mechanism="preferences",
            expects=Expected(effect=0.1, spread=0.05),
        ),
    ),
)
