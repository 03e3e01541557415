"""Labels of steps train a reward model that prefers right reasoning, labels of answers less so.

Where the sources disagree, and what is not the paper's here:

- All tables were read in notes that transcribe them. Few-shot majority voting is 41.5 in one and
  41.4 in the other, SFT with a vote weighted by a reward model 14.8 (ORM) and 14.1 (PRM) in one and
  14.1 in the other.
- TRL's paper index says that the paper gives no hyper-parameters; the notes have the learning rate
  of the process reward model. TRL's default rate is 1e-5.
- The paper's models name one of two words after each step; here, as in TRL, a head of two labels
  reads the last token of a step. The paper's process reward model starts from the trained outcome
  model, which is trained on other solutions; here both start from the policy.
- People labelled the paper's steps. Those of the world `digits` are sums that a program judges: a
  step is right if no step up to it is wrong.
- A vote of 16 is the mean over four draws from 64 solutions of a problem, at temperature 0.7 in
  place of 1. The error of traces is measured on the pick of a weighted vote of 4.
- At that temperature a vote of 16 is right less often than the greedy solution in the world
  `digits`, by 0 to 13 points in each seed: by this `rm-vote-beats-majority` ends as it does,
  whatever the reward model adds to a vote.
- Abstention by the mass of a vote needs no reward model: it is judged on the same solutions.
- The arms `expert-*` are one round of expert iteration: fine-tuning on one of eight solutions of
  each problem, the one that a reward model scores best, whole, where the paper picks each step by
  the model of steps. The reward models have seen other solutions of two fifths of these problems.
  `expert-any` is fine-tuned on one solution of each problem. No claim reads these arms.
- Whether a predicted label agrees is judged at a probability of 1/2.
"""

from core.claims import Claim, Comparison, Expected, Untestable, least, probability
from core.paper import Paper, because, cite, in_regime, printed

GREEDY, VOTE, CLEAR_VOTE, WEIGHTED = (
    probability(f"solutions/{name}")
    for name in ("greedy", "vote_of_16", "clear_vote_of_16", "weighted_vote_of_16")
)
ORDER, AGREEMENT = (
    probability(f"solutions/{name}") for name in ("ordered_pairs", "agreement_spread")
)
TRACE_ERROR, PICKED_TRACE_ERROR = (
    probability(f"solutions/{name}") for name in ("trace_error", "trace_error_of_weighted_4")
)
DIFFERING, AS_STEPS, AS_OUTCOME = (
    probability(f"steps/{name}") for name in ("differing_labels", "as_steps", "as_outcome")
)
ERRORS = ("trace error", "final-answer error")


def judging(*arms: str) -> tuple[Comparison, ...]:
    """Return the gates that arms tell right from wrong solutions of one problem."""
    return tuple(ORDER.of(arm) >= 0.55 for arm in arms)


def tuned(data: str) -> dict[str, object]:
    """Return an arm that is fine-tuned on the solutions of a preparation."""
    return {"family": "sft", **in_regime("digits-answers", data=data, max_steps=96)}


PAPER = Paper(
    slug="prm",
    title="Solving math word problems with process- and outcome-based feedback",
    arxiv="2211.14275",
    family="prm",
    config=(
        cite("TRL's paper index", step_separator="\n", train_on_last_step_only=False),
        cite("notes on the paper", learning_rate=1e-7),
        cite("unstated", max_length=1024, lr_scheduler_type="constant", num_train_epochs=1.0),
    ),
    model="Qwen/Qwen2.5-1.5B",
    data="gsm8k-step-labels",
    reported=(
        *printed(
            "table 1",
            ERRORS,
            "error",
            {
                "Few-shot": (None, 41.5),
                "Few-shot + final-answer RL": (19.8, 23.5),
                "SFT": (11.4, 22.3),
                "SFT + final-answer RL": (12.1, 20.2),
            },
            block="majority voting",
        ),
        *printed(
            "table 1",
            ERRORS,
            "error",
            {
                "Few-shot": (None, 27.8),
                "Few-shot + final-answer RL": (12.4, 16.6),
                "SFT + final-answer RL": (3.7, 14.2),
                "SFT": (4.4, 14.8),
                "Few-shot + ORM-RL": (5.5, 13.8),
                "SFT + ORM-RL": (3.4, 12.7),
            },
            block="ORM reranking",
        ),
        *printed(
            "table 1",
            ERRORS,
            "error",
            {"SFT": (3.5, 14.1), "SFT + PRM-RL": (3.8, 12.9)},
            block="PRM reranking",
        ),
        *printed(
            "table 3",
            ("greedy", "majority voting", "reward-model weighted"),
            "final-answer error",
            {
                "SFT": (41.1, 22.3, 14.1),
                "SFT + ORM-RL": (31.2, 17.8, 12.7),
                "SFT + PRM-RL": (34.4, 17.6, 12.9),
                "Few-shot": (54.3, 41.4, 27.8),
            },
        ),
        *printed(
            "text",
            ("final-answer error",),
            "error",
            {"SFT + ORM-RL, ORM selection, abstaining on 30 %": (2.7,)},
        ),
        *printed(
            "text",
            ("labels of steps", "labels of outcomes"),
            "agreement",
            {"ORM": (85.0, 77.0)},
            block="predicted steps",
        ),
        *printed(
            "abstract",
            ERRORS,
            "error",
            {"previous best": (14.0, 16.8), "best": (3.4, 12.7)},
        ),
    ),
    trl_index={"step_separator": "\n", "train_on_last_step_only": False},
    trl_reasons=(
        because(
            "TRL 1.13 multiplies loss and gradient by the accumulation steps, here a batch has one "
            "loss however it is split."
        ),
    ),
    arms={
        "prm": {},
        "orm": in_regime("digits-steps", data="prepared:digits-outcomes"),
        "expert-prm": tuned("prepared:digits-picked-by-prm"),
        "expert-orm": tuned("prepared:digits-picked-by-orm"),
        "expert-any": tuned("prepared:digits-unpicked"),
    },
    profiles={"cpu": {"regime": "digits-steps"}},
    claims=(
        Claim(
            "rm-vote-beats-majority",
            "A vote weighted by a reward model beats a majority vote, which beats greedy decoding.",
            least(WEIGHTED.of("prm") - VOTE.of("prm"), VOTE.of("prm") - GREEDY.of("prm")) > 0,
            mechanism="sampling",
            acts=judging("prm"),
            healthy=(),
            expects=Expected(effect=0.05, spread=0.02),
        ),
        Claim(
            "prm-trace-error",
            "Among right answers that a weighted vote picks, labels of steps leave fewer solutions "
            "with a wrong step than labels of answers do.",
            PICKED_TRACE_ERROR.of("prm") < PICKED_TRACE_ERROR.of("orm"),
            mechanism="sampling",
            acts=(*judging("prm", "orm"), TRACE_ERROR.of("prm") >= 0.05),
            healthy=(),
            expects=Expected(effect=-0.03, spread=0.015),
        ),
        Claim(
            "outcome-same-final",
            "Outcome and process supervision end close in final-answer error.",
            Untestable(
                "no room: what the outcome reward model picks is no better than any solution. It "
                "orders 0.52 of the pairs of a problem on seeds 20 to 23; on a trial seed, where "
                "it orders 0.58 and the model of steps 0.62, one round from 46.7 % of right "
                "greedy answers ends at 44.9 % with its picks, 52.0 % with those of the model of "
                "steps, and 46.7 % with one random solution of each problem"
            ),
        ),
        Claim(
            "orm-emulates-prm",
            "Steps that an outcome reward model predicts agree more with true labels of steps than "
            "with the labels of answers that it learns from.",
            AS_STEPS.of("orm") > AS_OUTCOME.of("orm"),
            mechanism="sampling",
            acts=(*judging("orm"), DIFFERING.of("orm") >= 0.1),
            healthy=(),
            expects=Expected(effect=-0.02, spread=0.05),
        ),
        Claim(
            "selective-prediction",
            "A majority vote errs less often on the 70 % of problems with the clearest votes than "
            "on all.",
            CLEAR_VOTE.of("prm") > VOTE.of("prm"),
            mechanism="sampling",
            acts=AGREEMENT.of("prm") >= 0.1,
            healthy=(),
            expects=Expected(effect=0.115, spread=0.02),
        ),
    ),
)
