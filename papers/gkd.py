"""GKD trains a student on its own samples, by a divergence between forward and reverse KL.

Where the sources disagree, and what is not the paper's here:

- The paper takes the mean over the tokens of each sequence, TRL over those of the batch; here it is
  the paper's. TRL's divergence has temperature 1 at any temperature of sampling.
- The paper draws between samples and data for each batch, and so does this code for each rollout,
  alike on all processes; TRL draws for each micro-batch of each process.
- D_beta is 0 at both ends, where TRL and this code have the forward and the reverse KL instead:
  a rate of beta = 0.1 is ten times too large at beta = 0.
- A law judges what the divergence alone decides. The student of two laws is one Gaussian on 65
  points, at the least divergence from a teacher with two modes; the logits of the third are those
  of two tokens.
- Runs are in the world `chain`, with digits whose right sums are even. The data is right answers of
  the teacher's kind, so that nothing in it shows how to go on after a wrong sum, which is odd.
  Nearly all arms answer rightly in the end: what is compared is the reverse KL in factors of 2, on
  a student's own samples or behind wrong sums in the samples of its start, which all arms of a
  seed share.
- Some of a difference between objectives is the divergence's own: each comparison is of arms with
  one divergence.
- The numbers but for the abstract's are as others quote them.
- Settings of XSum; its limit of 64 tokens is `max_new_tokens` in TRL.
"""

from core.claims import START, Claim, Expected, Side, law, least, log2, probability, whole
from core.paper import Column, Paper, cite, in_regime, printed

STUDENTS = "core.laws.gaussian_students"
QUOTED = "paper, as others quote it"
WORLD, TAUGHT = "chain-even", {"roles": {"teacher": "prepared:chain-even-teacher"}}
KL, GONE = probability("kl_to_teacher"), probability("kl_to_teacher/gone")
FIRST, SECOND = (probability(f"kl_to_teacher/{half}_half") for half in ("first", "second"))
GOES_WRONG = probability("share_gone").of(START) >= 0.1
FORWARD, REVERSE = {"beta": 0.0}, {"beta": 1.0}
ON, OFF = {"lmbda": 1.0}, {"lmbda": 0.0}


def loss(beta: float) -> Side:
    """Return the mean D_beta of two tokens."""
    return law("core.laws.divergence_estimators:mean_divergence", beta)


PAPER = Paper(
    slug="gkd",
    title="On-Policy Distillation of Language Models: Learning from Self-Generated Mistakes",
    arxiv="2306.13649",
    family="gkd",
    config=(
        cite("s3", lmbda=0.5, beta=0.5),
        cite("s2", normalize="sequence"),
        cite("table A.1", learning_rate=3e-4, max_steps=40_000, warmup_steps=2000),
        cite("table A.1", per_device_train_batch_size=32, max_completion_length=64),
        cite("appendix A", temperature=1.0),
        cite("TRL's default", disable_dropout=True, seq_kd=False),
    ),
    model="google/flan-t5-base",
    data="xsum",
    benchmarks=("gsm8k",),
    reported=(
        *printed(
            "abstract",
            ("XSum", "WMT", "GSM8K"),
            "ratio of gains",
            {"GKD against common distillation": (2.1, 1.7, 1.9)},
            unit="x",
        ),
        *printed(
            QUOTED,
            ("GSM8K",),
            "greedy",
            {"FLAN T5-XL, the teacher": (27.9,), "FLAN T5-base": (10.16,)},
        ),
        *printed(
            QUOTED,
            (
                Column(benchmark="GSM8K", metric="gain, up to", unit="points"),
                Column(benchmark="WMT14 en-de", metric="gain", unit="BLEU"),
                Column(benchmark="BBH", metric="gain, about", unit="points"),
                Column(benchmark="MMLU", metric="gain, about", unit="points"),
            ),
            "gain",
            {
                "GKD, forward KL": (8.8, None, None, None),
                "GKD of T5-small, beta 0.1": (None, 0.85, None, None),
                "GKD of T5-base, beta 0.1": (None, 0.71, None, None),
                "GKD of FLAN T5-base": (None, None, 2.0, 1.0),
            },
            block="gains",
        ),
    ),
    arms={
        "mixed": {"at": {"cpu": FORWARD}},
        "off-forward": in_regime(WORLD, **TAUGHT, **OFF, **FORWARD),
        "on-reverse": in_regime(WORLD, **TAUGHT, **ON, **REVERSE),
        "off-reverse": in_regime(WORLD, **TAUGHT, **OFF, **REVERSE),
        "on-few": in_regime(WORLD, **TAUGHT, data="nano-chain-even-few", **ON, **FORWARD),
    },
    profiles={
        "cpu": {"regime": WORLD, **TAUGHT},
        "gpu": {"roles": {"teacher": "Qwen/Qwen2.5-1.5B-Instruct"}},
        "paper": {"roles": {"teacher": "google/flan-t5-xl"}},
    },
    claims=(
        Claim(
            "gkd-onpolicy-better",
            "Trained by the reverse KL on its own samples a student is nearer to its teacher on "
            "them than trained by it on the data, at equal steps.",
            log2(KL.of("on-reverse")) < log2(KL.of("off-reverse")),
            mechanism="distillation",
            acts=(GOES_WRONG, GONE.of("on-reverse") / GONE.of("off-reverse") <= 0.5),
            expects=Expected(effect=-0.58, spread=0.26),
        ),
        Claim(
            "gkd-mixed-better",
            "With half of the batches from the student it is nearer to its teacher behind wrong "
            "sums than with the data alone.",
            log2(GONE.of("mixed")) < log2(GONE.of("off-forward")),
            mechanism="distillation",
            acts=(
                GOES_WRONG,
                whole("on_policy_fraction").of("mixed") >= 0.25,
                whole("on_policy_fraction").of("mixed") <= 0.75,
            ),
            expects=Expected(effect=-1.36, spread=0.2),
        ),
        Claim(
            "gkd-reverse-less-diverse",
            "A student too small for its teacher is less diverse at the least reverse KL than at "
            "the least forward KL.",
            law(f"{STUDENTS}:entropy", 1.0) < law(f"{STUDENTS}:entropy", 0.0),
        ),
        Claim(
            "gkd-mode-seeking-quality",
            "The teacher finds samples of such a student likelier at the least D_0.9 than at the "
            "least D_0.1.",
            law(f"{STUDENTS}:teacher_logp", 0.9) > law(f"{STUDENTS}:teacher_logp", 0.1),
        ),
        Claim(
            "gkd-exposure-bias",
            "On the student's own samples the divergence is lower after training on its samples, "
            "and the ratio of both grows from the first half of the answer to the second.",
            least(
                log2(KL.of("off-reverse") / KL.of("on-reverse")),
                log2(SECOND.of("off-reverse") / SECOND.of("on-reverse"))
                - log2(FIRST.of("off-reverse") / FIRST.of("on-reverse")),
            )
            > 0,
            mechanism="distillation",
            acts=GOES_WRONG,
            expects=Expected(effect=-1.31, spread=0.55),
        ),
        Claim(
            "gkd-data-efficient",
            "On its own samples 77 prompts, a twentieth of those of all steps, do what all do with "
            "the data, up to 0.4 factors of 2.",
            (log2(KL.of("on-few")) <= log2(KL.of("off-forward"))).by(0.4),
            mechanism="distillation",
            acts=GOES_WRONG,
            expects=Expected(effect=0.07, spread=0.26),
        ),
        Claim(
            "gkd-beta-scale-jump",
            "The loss of one pair of models is more than ten times as large at beta 0 as at 0.1, "
            "and at 1 as at 0.9.",
            least(loss(0.0) / loss(0.1), loss(1.0) / loss(0.9)) > 10,
        ),
    ),
)
