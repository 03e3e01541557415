"""Online DPO trains on pairs that the policy has just sampled, with the losses of fixed pairs.

Where the sources disagree, and what is not the paper's here:

- The paper's annotator is a language model that reads both answers. Here it is the truth, right
  above wrong, or a judge that prefers the shorter answer.
- The judge that prefers short answers costs right ones, in a world where longer ones are right more
  often: on two trial seeds 8 and 32 % are right after it, 12 and 16 % before, and 42 and 47 % after
  the judge of the truth alone.
- TRL counts the first of two equally good answers as the better, which is noise. Here pairs of two
  right or two wrong answers are left out, as they are of fixed pairs.
- beta is 1 for IPO and 0.002 for SLiC in the paper, for log-ratios of long answers. Here both have
  a margin of 1 nat, so that pairs pass it.
- Fixed pairs are right against wrong of 16 answers of the start, some 1,100 pairs, each of which an
  arm sees six times. Sampled ones are of the same prompts, six times each too.
"""

from collections.abc import Mapping

from core.claims import Claim, late, least, score
from core.paper import Paper, cite, in_regime, printed
from core.rewards import Judged
from eval.judging.judges import Brief, InOrder, Judge, Truth

SOLVED = score("nano-choice", temperature=1.0)
LENGTH = "completions/mean_length"
HALF = {"max_steps": 96}
LONG = {"max_steps": 192, "per_device_train_batch_size": 32}
UNTIED = {"tied_pairs": "skipped"}
SAMPLED = {**LONG, **UNTIED, "data": "prepared:choice-pairs"}  # the prompts of the fixed pairs
ACTS = (late("objective/kl").of("online") >= 0.5, late("rewards/margins").of("offline") >= 0.5)
LOSSES: Mapping[str, tuple[str, float]] = {  # of the online trainer and of DPO's, with their beta
    "": ("sigmoid", 0.1),
    "-ipo": ("ipo", 0.5),
    "-slic": ("hinge", 1.0),
}


def offline(suffix: str, **changes: object) -> dict[str, object]:
    """Return an arm that trains on fixed pairs."""
    name, beta = LOSSES[suffix]
    loss = {"loss_type": "ipo_sum" if name == "ipo" else name, "beta": beta}
    return {"family": "dpo", **in_regime("choice-pairs", **loss, **{**LONG, **changes})}


def online(suffix: str, **changes: object) -> dict[str, object]:
    """Return an arm that samples its pairs."""
    name, beta = LOSSES[suffix]
    return in_regime("choice-online", loss_type=name, beta=beta, **{**SAMPLED, **changes})


def annotated(judge: Judge) -> dict[str, object]:
    """Return an arm in the world of longer and shorter right answers."""
    here = {"steps_per_generation": 1, "learning_rate": 1e-4, "max_steps": 48, **UNTIED}
    sizes = {"per_device_train_batch_size": 32, "heldout_every": 24, "logging_steps": 4}
    return in_regime("length", rewards=(Judged(judge),), **here, **sizes)


PAPER = Paper(
    slug="online-dpo",
    title="Direct Language Model Alignment from Online AI Feedback",
    arxiv="2402.04792",
    family="online_dpo",
    config=(
        cite("secondary", loss_type="sigmoid", beta=0.1, learning_rate=5e-7),
        cite("secondary", per_device_train_batch_size=128, optim="adafactor"),
    ),
    model="EleutherAI/pythia-2.8b",
    data="gsm8k",
    benchmarks=("gsm8k",),
    reported=printed(
        "secondary",
        ("TL;DR", "HH helpful", "HH harmless"),
        "human evaluation against the fixed pairs",
        {
            "online DPO, wins": (63.74, 58.6, 60.26),
            "online DPO, ties": (28.57, 21.2, 35.9),
            "online DPO, losses": (7.69, 20.2, 3.84),
        },
    )
    + printed(
        "secondary",
        ("TL;DR",),
        "human evaluation against the fixed pairs",
        {"online IPO, wins": (64.81,), "online SLiC, wins": (71.43,)},
    ),
    arms={
        "online": {"at": {"cpu": SAMPLED}},
        **{f"online{suffix}": online(suffix) for suffix in LOSSES if suffix},
        **{f"offline{suffix}": offline(suffix) for suffix in LOSSES},
        "online-half": online("", **HALF),
        "offline-half": offline("", **HALF),
        "truthful": annotated(Truth()),
        "brief": annotated(InOrder(Truth(), Brief())),
    },
    profiles={"cpu": {"regime": "choice-online"}},
    claims=(
        Claim(
            "online-beats-offline",
            "With each of three losses, pairs that are sampled anew leave more right answers than "
            "fixed ones.",
            least(
                *(SOLVED.of(f"online{name}") - SOLVED.of(f"offline{name}") for name in LOSSES),
            )
            > 0,
            mechanism="preferences",
            acts=ACTS,
        ),
        Claim(
            "offline-overfits",
            "From 96 to 192 updates fixed pairs gain fewer right answers than sampled ones.",
            SOLVED.of("offline") - SOLVED.of("offline-half")
            < SOLVED.of("online") - SOLVED.of("online-half"),
            mechanism="preferences",
            acts=ACTS,
        ),
        Claim(
            "annotator-steerable",
            "A judge that prefers the shorter one of two even answers shortens answers.",
            late(LENGTH).of("brief") < late(LENGTH).of("truthful"),
            mechanism="preferences",
        ),
    ),
)
