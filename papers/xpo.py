"""XPO adds to online DPO a bonus that makes answers of the reference less likely.

Where the sources disagree, and what is not the paper's here:

- The paper minimises over all pairs so far; TRL's trainer and ours over those of the update.
- The paper names no alpha. At TRL's 1e-5 the bonus is nothing beside the loss of pairs; here alpha
  is 0.003, beside slopes of that loss of at most 0.05.
- A pair is an answer of the policy and one of the reference, in the arm without the bonus too.
- Pairs of two right or two wrong answers are left out; TRL takes the policy's as the better one.
- The bonus lowers what it is measured by. What could come out otherwise is whether the pairs, which
  move both likelihoods further, leave room for it.
- The bandit is ours, see `core.laws.bandit`, with the paper's history of pairs. On two blocks of 20
  other seeds the answer is found within 600 rounds in 7 of 40 without the bonus, in 29 with it or
  a third of it, in 18 and 11 with 3 and 10 times as much. The bonus alone, where the judge draws
  lots, finds it in 12.
"""

from core.claims import Claim, late, law, simulated
from core.paper import Paper, cite, in_regime

MASS = late("logps/reference")
WORLD, LONG = "choice-online", {"max_steps": 192, "tied_pairs": "skipped"}
FOUND_AFTER = {
    with_bonus: simulated("core.laws.bandit:rounds_to_find", alpha, seeds=20)
    for with_bonus, alpha in ((True, 3e-3), (False, 0.0))
}

PAPER = Paper(
    slug="xpo",
    title="Exploratory Preference Optimization: Harnessing Implicit Q*-Approximation for "
    "Sample-Efficient RLHF",
    arxiv="2405.21046",
    family="xpo",
    config=(
        cite("s3", loss_type="sigmoid"),
        cite("TRL 1.13", alpha=1e-5, beta=0.1),
    ),
    model="meta-llama/Meta-Llama-3-8B-Instruct",
    data="gsm8k",
    benchmarks=("gsm8k",),
    arms={
        "xpo": {"at": {"cpu": {"alpha": 3e-3, **LONG}}},
        "xpo-0": in_regime(WORLD, alpha=0.0, **LONG),
    },
    profiles={"cpu": {"regime": WORLD}},
    claims=(
        Claim(
            "bonus-explores",
            "On a bandit whose best answer is rare in the reference, XPO finds it sooner.",
            FOUND_AFTER[True] < FOUND_AFTER[False],
        ),
        Claim(
            "reference-mass-falls",
            "Answers of the reference become less likely with the bonus than without it.",
            MASS.of("xpo") < MASS.of("xpo-0"),
            mechanism="preferences",
            acts=late("loss/xpo").of("xpo") <= -0.005,
        ),
        Claim(
            "alpha-zero-is-online-dpo",
            "Without the bonus the loss and its gradient are those of online DPO.",
            law("core.laws.nash_games:bonus_of_no_weight").about(0.0, within=1e-12),
        ),
    ),
)
