"""GSPO-token keeps the value of an answer's ratio and gives each token an advantage of its own.

Where the sources disagree, and what is not the paper's here:

- The paper defines the variant and shows what it is equal to; it reports no experiment with it.
  All settings are those of GSPO, in the same paper.
- TRL had it as an experimental trainer up to 1.13.0, which took one advantage for an answer and so
  was GSPO; its paper index only points to that trainer. TRL 1.16 has none.
- Without the stop-gradient on the answer's ratio it would be another method: that is where
  `sequence_token` differs from `sequence` once advantages differ within an answer.
- With one advantage for an answer it is GSPO's training, and so it is here: the reward is of whole
  answers.
"""

from core.claims import Claim, law
from core.paper import Evaluation, Paper, because, cite
from core.rewards import Accuracy

GAP = "core.laws.gradients:loss_gap"
MOVED, PARTLY = "core.laws.ratios:idle_tokens_moved", "core.laws.ratios:clipped_in_part"
LEVEL = {"importance_sampling_level": "sequence_token"}

PAPER = Paper(
    slug="gspo-token",
    title="Group Sequence Policy Optimization (token-level variant, GSPO-token)",
    arxiv="2507.18071",
    family="grpo",
    base="gspo",
    config=(cite("definition of GSPO-token", **LEVEL),),
    rewards=(Accuracy(),),
    model="Qwen/Qwen3-30B-A3B-Base",
    data="gspo-queries",
    benchmarks=("aime24",),
    evaluations=(Evaluation(samples=32, temperature=1.0, passage="as GSPO"),),
    arms={"gspo-token": {}},
    profiles={"cpu": LEVEL},
    trl_reasons=(
        because(
            "The entry of GSPO points to an experimental trainer, which takes one advantage for an "
            "answer and is no part of TRL 1.16."
        ),
    ),
    claims=(
        Claim(
            "identical-to-gspo",
            "With one advantage for an answer, loss and gradient are those of GSPO.",
            law(GAP, "gspo-token", "gspo", 1e-3).about(0.0, within=1e-12),
        ),
        Claim(
            "token-advantage-moves-token",
            "A token whose advantage is 0 has no gradient; GSPO, which takes the answer's mean, "
            "moves all of them.",
            law(MOVED, "gspo") - law(MOVED, "gspo-token") == 1.0,
        ),
        Claim(
            "clip-by-sequence",
            "At the same clip fewer answers are clipped in part than with ratios of tokens.",
            law(PARTLY, "gspo-token") < law(PARTLY, "grpo"),
        ),
    ),
)
