"""CPO drops the reference of DPO and adds the likelihood of the chosen answer.

Where the sources disagree, and what is not the paper's here:

- The paper trains adapters on translations, of which a metric chooses the best of three, a
  reference among them; here right answers of the start are chosen. No registered data set has its
  triples.
- The sum of log-probabilities is compared; the likelihood is a mean over the tokens of an update.
- The theorem bounds DPO's loss with the best policy as its reference only up to a constant.
- Fine-tuning is the same likelihood of the same chosen answers alone.
- Time and memory are those of the trainers here: processor seconds of a step of 8 pairs, and the
  peak memory of the whole process, for a random Llama of 20 million parameters. DPO's reference is
  a second model in the process. Computed beforehand it takes no part in a step, which is then no
  dearer: `reports/speed.md` has 0.52 processor seconds for 32 pairs, and 0.50 for SimPO's loss.
- Four measurements of the memory decide little: CPO takes 0.14 GB less [0.03, 0.24] in a first set
  of four, and 0.13 [-0.15, 0.42] in a second. Peaks scatter by up to 0.3 GB, so there are 16.
"""

from core.claims import Claim, Expected, Side, late, law, least, score, timed
from core.paper import Paper, cite, in_regime, printed

BOUND = "core.laws.reference_free:above_ideal_reference"
SOLVED = score("nano-choice", temperature=1.0)
REWARDS = late("rewards/margins")
ACTS = REWARDS.of("cpo") >= 0.5
SFT = {"family": "dpo", **in_regime("choice-pairs", loss_type="sft")}


def cost(trainer: str, what: str) -> Side:
    """Return the seconds or the peak memory of a step of a trainer."""
    return timed("core.bench.large_steps:cost", trainer, what, seeds=16)


PAPER = Paper(
    slug="cpo",
    title="Contrastive Preference Optimization: Pushing the Boundaries of LLM Performance in "
    "Machine Translation",
    arxiv="2401.08417",
    family="cpo",
    config=(
        cite("s3", loss_type="sigmoid", cpo_alpha=1.0),
        cite("s4.2", beta=0.1, num_train_epochs=1.0, max_length=512, warmup_steps=0.01),
        cite("repository", learning_rate=1e-4, lr_scheduler_type="inverse_sqrt"),
        cite("secondary", per_device_train_batch_size=128),
    ),
    model="haoranxu/ALMA-13B",
    data="ultrafeedback",
    benchmarks=("gsm8k",),
    reported=printed(
        "secondary",
        ("WMT21/22 from English, KIWI-22",),
        "score",
        {
            "gold reference": (82.05,),
            "GPT-4": (82.94,),
            "ALMA-13B-LoRA": (82.48,),
            "+ SFT on preferred": (82.57,),
            "+ DPO": (82.27,),
            "+ CPO (ALMA-13B-R)": (83.34,),
        },
    ),
    trl_index={
        "loss_type": "sigmoid",
        "cpo_alpha": 1.0,
        "beta": 0.1,
        "learning_rate": 1e-4,
        "lr_scheduler_type": "inverse_sqrt",
        "num_train_epochs": 1,
        "max_length": 512,
    },
    arms={
        "cpo": {"at": {"cpu": {"beta": 1.0}}},
        "pairs-alone": in_regime("choice-pairs", beta=1.0, cpo_alpha=0.0),
        "sft": SFT,
        "dpo": {"family": "dpo", **in_regime("choice-pairs", beta=1.0)},
    },
    profiles={"cpu": {"regime": "choice-pairs"}},
    claims=(
        Claim(
            "both-terms-needed",
            "With both terms answers are right more often than with the loss of pairs alone, and "
            "than with the likelihood alone.",
            least(SOLVED.of("cpo") - SOLVED.of("pairs-alone"), SOLVED.of("cpo") - SOLVED.of("sft"))
            > 0,
            mechanism="preferences",
            acts=ACTS,
            expects=Expected(effect=2.2, spread=1.4),
        ),
        Claim(
            "cpo-beats-sft-and-dpo",
            "CPO is right more often than fine-tuning on chosen answers and than DPO.",
            least(SOLVED.of("cpo") - SOLVED.of("sft"), SOLVED.of("cpo") - SOLVED.of("dpo")) > 0,
            mechanism="preferences",
            acts=ACTS,
            expects=Expected(effect=2.2, spread=1.5),
        ),
        Claim(
            "memory",
            "A step of CPO takes less memory and time than one of DPO.",
            least(*(cost("DPO", what) - cost("CPO", what) for what in ("seconds", "peak"))) > 0,
        ),
        Claim(
            "upper-bound",
            "The loss without a reference is at least DPO's with the best policy as reference, "
            "less a constant of the rejected answer.",
            law(BOUND) >= 0,
        ),
    ),
)
