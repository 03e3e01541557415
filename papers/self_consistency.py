"""Self-consistency: the most frequent answer of many sampled chains of thought, without training.

Where the sources disagree, and what is not the paper's here:

- The paper names no rule for ties: here tied answers share the vote. Samples without an answer cast
  none.
- It averages 10 runs of 40 samples; a vote of fewer than the 40 samples is here its mean over all
  subsets.
- Top-k 40 and temperature 0.7 are those of PaLM; GPT-3 has no top-k, UL2 and LaMDA have 0.5.
- The weights are probabilities under the model at temperature 1. Within a problem of the judged
  runs the logarithms of those of whole chains spread by 1.3 to 1.4 nats, of normalised ones by
  0.034 (standard deviations over 40 samples): a vote by the latter is nearly the unweighted one.
- Whether agreement tells right answers is measured on the samples that vote.
- lm-evaluation-harness has a task of this name with 64 samples at temperature 0.2, and DeepSeekMath
  and ToRA vote among 32 and 50: none of these compares with 40.
"""

from core.claims import START, Claim, Expected, law, least, score
from core.paper import Evaluation, Paper, printed

TASKS = ("gsm8k", "SVAMP", "AQuA", "ASDiv", "MultiArith", "AddSub", "CommonsenseQA")
TASKS += ("StrategyQA", "ARC-challenge")
CHAINS_OF_PALM = (56.5, 79.0, 35.8, 74.0, 94.7, 91.9, 79.0, 75.3, 85.2)
VOTES_OF_PALM = (74.4, 86.6, 48.3, 81.9, 99.3, 93.7, 80.7, 81.6, 88.7)
LAWS = "eval.stats.vote_laws"
TEMPERATURE = 0.7
METRICS = ("maj@1", "maj@5", "maj-prob@40", "maj-norm@40", "maj-upper@40", "maj-lower@40")
GREEDY = score("gsm8k").of(START)
VOTE1, VOTE5, VOTE40, BY_PROBABILITY, NORMALISED, UPPER, LOWER, ANY = (
    score("gsm8k", metric=metric, temperature=TEMPERATURE).of(START)
    for metric in (
        *("maj@1", "maj@5", "maj@40", "maj-prob@40", "maj-norm@40"),
        *("maj-upper@40", "maj-lower@40", "pass@40"),
    )
)
ROOM = ANY - GREEDY >= 10.0

PAPER = Paper(
    slug="self-consistency",
    title="Self-Consistency Improves Chain of Thought Reasoning in Language Models",
    arxiv="2203.11171",
    family="evaluation",
    model="Qwen/Qwen2.5-1.5B",
    benchmarks=("gsm8k",),
    evaluations=(
        Evaluation(passage="s3.2"),
        Evaluation(samples=40, temperature=TEMPERATURE, top_k=40, metrics=METRICS, passage="s3.1"),
    ),
    reported=(
        *printed("main tables", TASKS, "top1", {"PaLM-540B": CHAINS_OF_PALM}),
        *printed("main tables", TASKS, "maj@40", {"PaLM-540B": VOTES_OF_PALM}, block="vote"),
        *printed(
            "main tables",
            TASKS[:5],
            "top1",
            {"code-davinci-002": (60.1, 75.8, 39.8, 80.1, 96.2)},
        ),
        *printed(
            "main tables",
            TASKS[:5],
            "maj@40",
            {"code-davinci-002": (78.0, 86.8, 52.0, 87.8, 100.0)},
            block="vote",
        ),
        *printed(
            "main tables",
            ("gsm8k",),
            "top1",
            {"code-davinci-001": (14.6,), "LaMDA-137B": (17.1,), "UL2-20B": (4.1,)},
        ),
        *printed(
            "main tables",
            ("gsm8k",),
            "maj@40",
            {"code-davinci-001": (23.4,), "LaMDA-137B": (27.7,), "UL2-20B": (7.3,)},
            block="vote",
        ),
        *printed("table 1", ("gsm8k",), "maj@40", {"PaLM-540B, unweighted": (74.4,)}),
        *printed("table 1", ("gsm8k",), "maj-prob@40", {"PaLM-540B, unnormalised": (59.9,)}),
        *printed("zero-shot", ("gsm8k",), "top1", {"PaLM-540B, zero-shot": (43.0,)}),
        *printed("zero-shot", ("gsm8k",), "maj@40", {"PaLM-540B, zero-shot vote": (69.2,)}),
    ),
    profiles={"cpu": {"eval_limit": 500}},
    claims=(
        Claim(
            "sc-beats-greedy",
            "A majority vote of 40 sampled chains beats greedy decoding.",
            VOTE40 > GREEDY,
            mechanism="sampling",
            acts=ROOM,
            expects=Expected(effect=3.1, spread=1.5),
        ),
        Claim(
            "sc-grows-with-m",
            "Accuracy rises with the number of voting samples: 40 over 5 over 1.",
            least(VOTE40 - VOTE5, VOTE5 - VOTE1) > 0,
            mechanism="sampling",
            acts=ROOM,
            expects=Expected(effect=4.0, spread=1.5),
        ),
        Claim(
            "sc-unweighted-equals-normalised",
            "Votes weighted by length-normalised probabilities are as good as unweighted ones.",
            NORMALISED.about(VOTE40, within=1.0),
            mechanism="sampling",
            acts=ROOM,
            expects=Expected(effect=-0.2, spread=0.4),
        ),
        Claim(
            "sc-unnormalised-worse",
            "Votes weighted by the probabilities of whole chains are worse than unweighted ones.",
            BY_PROBABILITY < VOTE40,
            mechanism="sampling",
            acts=ROOM,
            expects=Expected(effect=1.2, spread=1.0),
        ),
        Claim(
            "sc-consistency-calibrated",
            "The more samples agree on an answer, the likelier it is right.",
            UPPER > LOWER,
            mechanism="sampling",
            acts=ROOM,
            expects=Expected(effect=39.0, spread=5.0),
        ),
        Claim(
            "sc-not-pass-k",
            "Maj@m is never above Pass@m.",
            law(f"{LAWS}:excess", 8) <= 1e-12,
        ),
    ),
)
