"""GOLD distils between models with different tokenizers: it aligns text, merges tokens, and sorts.

Where the sources disagree, and what is not the paper's here:

- There is no paper of GOLD. The arXiv number is that of the Universal Logit Distillation loss,
  which compares position by position; the settings are defaults of TRL, whose code is the source.
- Of a group of several tokens "observed", TRL's default, multiplies its first distribution by the
  probabilities of the later tokens, "bayesian" the last one by those of the earlier, as the chain
  rule does. TRL's "observed" also reads token k's probability from the logits of token k + 1.
- TRL has groups with tokens that have no text, such as those of the end; here no group has any.
- The hybrid loss weighs matched entries by their share of the teacher's vocabulary. Their D_beta is
  not of distributions: at beta 1, the value of TRL's index, it falls below 0 when mass leaves them.
- TRL adds the cross-entropy of the student's own samples, too; here it is of data alone.
- Runs are in the world `tokens`, off-policy with cross-entropy of weight 0.5 on right answers, and
  D_beta at TRL's default, 0.5. Cross-entropy alone does as well there: on a seed that is not judged
  49.2 % of samples are right with it, 44.9 % with the hybrid loss and 35.7 % with all sorted.
- A sorted loss says how sure a teacher is, not of what: beside a sure one it makes tokens surer.
- The scores of the project's page are as others quote them.
"""

from core.claims import Claim, Expected, Untestable, late, law, least, score
from core.paper import Evaluation, Paper, cite, in_regime, printed

LOGITS = "core.laws.logit_transport"
WORLD, TAUGHT = "tokens", {"roles": {"teacher": "prepared:tokens-teacher"}}
SOLVED = score("nano-chain", temperature=1.0)

PAPER = Paper(
    slug="gold",
    title="Towards Cross-Tokenizer Distillation: the Universal Logit Distillation Loss for LLMs",
    arxiv="2402.12030",
    family="gold",
    config=(
        cite("TRL's page of the trainer", use_uld_loss=True, uld_use_hybrid_loss=True),
        cite("TRL's paper index", lmbda=1.0, beta=1.0),
        cite("TRL's default", use_extended_uld=True, uld_token_merge_strategy="observed"),
        cite("TRL's default", uld_crossentropy_weight=0.0, uld_distillation_weight=1.0),
        cite("TRL's default", temperature=0.9, top_p=0.95, max_completion_length=128),
        cite("TRL's default", learning_rate=1e-7),
    ),
    model="meta-llama/Llama-3.2-1B-Instruct",
    data="countdown-gold",
    evaluations=(
        Evaluation(temperature=1.0, passage="unstated"),
        Evaluation(passage="unstated"),
    ),
    arms={
        "hybrid": {"at": {"cpu": {"uld_use_hybrid_loss": True}}},
        "aligned": in_regime(WORLD, **TAUGHT),
    },
    profiles={
        "cpu": {"regime": WORLD, **TAUGHT},
        "gpu": {"roles": {"teacher": "Qwen/Qwen2.5-1.5B-Instruct"}},
        "paper": {"roles": {"teacher": "Qwen/Qwen3-4B-Instruct-2507"}},
    },
    reported=(
        *printed(
            "project page, as others quote it",
            ("teacher's performance",),
            "share recovered",
            {"GOLD": (60.0,), "ULD": (10.0,)},
        ),
        *printed(
            "project page, as others quote it",
            ("task performance",),
            "relative advantage",
            {"GOLD against GRPO": (20.0,)},
            block="rewards",
        ),
    ),
    claims=(
        Claim(
            "gold-beats-uld",
            "Between tokenizers alignment by text gives a better student than by position.",
            Untestable(
                "no room with a sure teacher: where its mean entropy is 0.03 nats, 35.7 % of the "
                "student's samples are right with alignment by text and 36.3 % without, on a seed "
                "that is not judged; beside a teacher of several right answers, in the regime "
                "tokens-many, 22.7 and 19.5 %, which differ by less than two standard errors"
            ),
        ),
        Claim(
            "gold-hybrid",
            "With equal entries of both vocabularies compared directly more sampled answers are "
            "right than with all entries sorted, beside cross-entropy on data.",
            SOLVED.of("hybrid") > SOLVED.of("aligned"),
            mechanism="distillation",
            acts=(
                late("uld/matched_mass").of("hybrid") >= 0.3,
                late("uld/merged_share").of("hybrid") >= 0.2,
            ),
            expects=Expected(effect=9.2, spread=5.0),
        ),
        Claim(
            "uld-permutation-invariant",
            "A permutation of the vocabulary does not change the sorted distance.",
            law(f"{LOGITS}:permutation_changes") == 0,
        ),
        Claim(
            "uld-zero-wrong",
            "A student that swaps two tokens has no sorted distance from its teacher, but a KL.",
            least(1e-15 - law(f"{LOGITS}:swapped", "sorted"), law(f"{LOGITS}:swapped", "kl") - 1e-4)
            > 0,
        ),
        Claim(
            "bayesian-chain-rule",
            "The mass of a group's bayesian merge is the probability of its earlier tokens, by the "
            "chain rule; that of the observed merge is not.",
            least(
                1e-15 - law(f"{LOGITS}:merge_errors", "bayesian"),
                law(f"{LOGITS}:merge_errors", "observed") - 1e-3,
            )
            > 0,
        ),
    ),
)
