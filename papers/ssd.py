"""SSD samples solutions hot and truncated, verifies none of them, and fine-tunes on them.

Where the sources disagree, and what is not the paper's here:

- The frozen starting model samples, as in the paper; TRL's trainer samples from the model in
  training, which is the arm `moving-sampler`.
- TRL's script has temperature 1.6, the repository 1.5, both with top-p 0.8. TRL's paper index has
  0.6 and 0.95, the settings of an evaluation: a temperature below 1 flattens no head.
- The repository drops the shortest tenth of the answers, TRL the empty ones and short lines. In
  the world `grammar` all strings have 15 letters, and none is dropped.
- The paper does not filter. In the world `grammar`, where samples can be graded, all of them are
  compared with the valid ones, as data of two trainings of equal length. They are sampled once,
  without a limit of 20 tokens.
- The kept tokens are those that temperature, top-k and top-p of the sampling leave of the start's
  distribution, at strings that the start samples at temperature 1.
- Whether decoding alone reaches SSD depends on the forks: at the shares of the demonstrations the
  nucleus keeps five of the six words of a place, so that 125 of 216 valid strings remain.
- LiveCodeBench is no benchmark here; gains on easy and hard problems were read from a summary.
"""

from core.claims import START, Claim, Measure, Side, law, least, most, probability, score
from core.paper import Evaluation, Paper, because, cite, in_regime, printed

LAWS, STRINGS = "core.laws.self_distillation", "nano-grammar"
K = 256  # samples of a problem
HOT = {"rollout_policy": "reference", "temperature": 1.6, "top_k": 20, "top_p": 0.8}
DECODED = (0.7, 0.85, 1.0, 1.2)  # temperatures, without truncation
OUTSIDE, HEAD, TEMPERED = (
    probability(f"kept/{name}") for name in ("outside", "entropy", "tempered_entropy")
)


def valid(temperature: float) -> Measure:
    """Return the measure of valid strings in percent, sampled at a temperature."""
    return score(STRINGS, metric=f"avg@{K}", temperature=temperature)


def varied(arm: str) -> Side:
    """Return the share of different valid strings among 256 in percent, at the best temperature."""
    measures = (score(STRINGS, metric=f"distinct@{K}", temperature=t) for t in DECODED)
    return most(*(measure.of(arm) for measure in measures))


VALID = valid(1.0)
SAMPLES = valid(1.6).of(START)  # truncated, as the data is


PAPER = Paper(
    slug="ssd",
    title="Embarrassingly Simple Self-Distillation Improves Code Generation",
    arxiv="2604.01193",
    family="ssd",
    config=(
        cite("paper", rollout_policy="reference"),
        cite("TRL's script", temperature=1.6, top_k=20, top_p=0.8, lr_scheduler_type="cosine"),
        cite("TRL's script", gradient_accumulation_steps=32, num_train_epochs=1.0),
        cite("repository", max_completion_length=65_536),
        cite("TRL's paper index", learning_rate=5e-6),
        cite("unstated", per_device_train_batch_size=1, filter_empty=True),
    ),
    model="Qwen/Qwen3-4B-Instruct-2507",
    data="rstar-coder-seed",
    benchmarks=("gsm8k",),
    evaluations=(
        Evaluation(),
        *(
            Evaluation(
                samples=K,
                temperature=t,
                metrics=(f"distinct@{K}",),
                scale="cpu",
                passage="unstated",
            )
            for t in DECODED
        ),
        Evaluation(
            samples=K, temperature=1.6, top_k=20, top_p=0.8, scale="cpu", passage="TRL's script"
        ),
    ),
    reported=(
        *printed(
            "abstract",
            ("LiveCodeBench v6",),
            "pass@1",
            {("Qwen3-30B-Instruct", "30B"): (42.4,), ("SSD", "30B"): (55.3,)},
        ),
        *printed(
            "paper, as summarised",
            ("LiveCodeBench v6 easy", "LiveCodeBench v6 hard"),
            "gain in pass@1",
            {("SSD", "30B"): (6.5, 15.3)},
        ),
    ),
    trl_index={
        "temperature": 0.6,
        "top_k": 20,
        "top_p": 0.95,
        "max_completion_length": 65_536,
        "learning_rate": 5e-6,
    },
    trl_reasons=(
        because("A temperature below 1 sharpens, and TRL's own script has 1.6.", "temperature"),
        because("TRL's own script has 0.8.", "top_p"),
    ),
    arms={
        "ssd": {"at": {"cpu": HOT}},
        "moving-sampler": {
            "rollout_policy": "policy",
            "at": {"cpu": {**HOT, "rollout_policy": "policy"}},
        },
        "unfiltered": {"family": "sft", **in_regime("grammar-answers")},
        "filtered": {
            "family": "sft",
            **in_regime("grammar-answers", data="prepared:grammar-right-answers"),
        },
    },
    profiles={"cpu": {"regime": "grammar"}},
    claims=(
        Claim(
            "ssd-temperature-law",
            "Without truncation, the model fitted to samples at T and decoded at T' is the start "
            "decoded at T T'.",
            least(
                1e-12 - law(f"{LAWS}:composed_variation", 1.6, 0.75),
                1e-12 - law(f"{LAWS}:fit_gradients", 1.6),
            )
            > 0,
        ),
        Claim(
            "ssd-tail-removed",
            "The mass outside the start's kept tokens falls.",
            OUTSIDE.of("ssd") < OUTSIDE.of(START),
            mechanism="sampling",
            acts=OUTSIDE.of(START) >= 0.02,
        ),
        Claim(
            "ssd-head-kept",
            "The entropy within the kept tokens does not fall.",
            HEAD.of("ssd") >= HEAD.of(START),
            mechanism="sampling",
            acts=TEMPERED.of(START) - HEAD.of(START) >= 0.02,
        ),
        Claim(
            "ssd-fork-lock",
            "More whole strings of a grammar are valid.",
            VALID.of("ssd") > VALID.of(START),
            mechanism="sampling",
            acts=SAMPLES - VALID.of(START) >= 5.0,
        ),
        Claim(
            "ssd-beats-decoding",
            "No decoding temperature of the start gives as many distinct valid strings.",
            varied("ssd") > varied(START),
            mechanism="sampling",
            acts=varied(START) <= 50.0,
        ),
        Claim(
            "ssd-unverified-ok",
            "Fine-tuning on all samples gives as many valid strings, within 3 points, as on the "
            "valid ones.",
            VALID.of("unfiltered").about(VALID.of("filtered"), within=3.0),
            mechanism="data",
            acts=SAMPLES <= 95.0,
        ),
    ),
)
