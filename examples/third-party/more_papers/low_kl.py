"""GRPO with a hundredth of the KL penalty of DeepSeekMath.

- Unpublished: all but the penalty is DeepSeekMath's, and no number was printed.
"""

from core.claims import START, Claim, score
from core.paper import Paper, cite
from core.rewards import Accuracy

PAPER = Paper(
    slug="low-kl",
    title="GRPO with hardly any KL",
    url="",
    family="grpo",
    base="deepseekmath-grpo",
    config=(cite("unstated", beta=0.0004),),
    rewards=(Accuracy(),),
    data="gsm8k+math",
    model="deepseek-ai/deepseek-math-7b-instruct",
    benchmarks=("gsm8k", "math"),
    arms={"low-kl": {}, "usual-kl": {"beta": 0.04}},
    claims=(
        Claim(
            "still-improves",
            "Accuracy rises over the starting model without the penalty's hold, too.",
            score("gsm8k", "math").of("low-kl") > score("gsm8k", "math").of(START),
        ),
        Claim(
            "no-worse",
            "It ends at least as high as with the usual penalty, within a point.",
            (score("gsm8k", "math").of("low-kl") >= score("gsm8k", "math").of("usual-kl")).by(1.0),
        ),
    ),
)
