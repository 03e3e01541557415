"""Pass@K from n samples a problem without bias: 1 - C(n - c, K) / C(n, K) for c right ones.

Where the sources disagree, and what is not the paper's here:

- The paper's test of a program is its unit tests; HumanEval is no benchmark here. The estimator is
  applied to answers of math problems, where the test is their equality.
- Codex cannot be had: the model here is another one, whose scores say nothing of the printed ones.
- The printed numbers are quoted from another source; the abstract says 70.2 for 100 samples where
  the table has 72.31.
- The paper draws 200 samples at temperature 0.8 for pass@100 and at 0.2 for pass@1; here they are
  drawn at both, and the claim on the best temperature compares these two.
"""

from core.claims import START, Claim, Expected, law, least, score
from core.paper import Evaluation, Paper, printed

LAWS = "eval.stats.pass_at_k"
LOW, HIGH = 0.2, 0.8  # temperatures; pass@1 is the mean of all samples
ONE, MANY = (
    {t: score("math500", metric=metric, temperature=t).of(START) for t in (LOW, HIGH)}
    for metric in ("avg@200", "pass@100")
)
EXPECTED, TRUTH = law(f"{LAWS}:expected", 20), law(f"{LAWS}:truth")

PAPER = Paper(
    slug="pass-at-k",
    title="Evaluating Large Language Models Trained on Code",
    arxiv="2107.03374",
    family="evaluation",
    model="Qwen/Qwen2.5-1.5B",
    benchmarks=("math500",),
    evaluations=tuple(
        Evaluation(
            samples=200,
            temperature=temperature,
            top_p=0.95,
            metrics=("pass@10", "pass@100"),
            passage="paper",
        )
        for temperature in (LOW, HIGH)
    ),
    reported=printed(
        "quoted table",
        ("pass@1", "pass@10", "pass@100"),
        "HumanEval",
        {
            ("Codex", "12B"): (28.81, 46.81, 72.31),
            ("Codex", "2.5B"): (21.36, 35.42, 59.5),
            ("Codex", "300M"): (13.17, 20.37, 36.27),
            ("GPT-J", "6B"): (11.62, 15.74, 27.74),
            ("GPT-Neo", "2.7B"): (6.41, 11.27, 21.37),
        },
    ),
    profiles={"cpu": {"twins": {"math500": "pocket-math"}, "eval_limit": 40}},
    claims=(
        Claim(
            "passk-unbiased",
            "The mean of the estimate is the chance that one of K samples is right.",
            EXPECTED.about(TRUTH, within=1e-12),
        ),
        Claim(
            "passk-plugin-biased",
            "The plug-in estimate 1 - (1 - c / n)^K is too low.",
            law(f"{LAWS}:expected_plug_in", 20) < TRUTH,
        ),
        Claim(
            "passk-lower-variance",
            "More than K samples give less variance than K.",
            law(f"{LAWS}:variance", 200) < law(f"{LAWS}:variance", 10),
        ),
        Claim(
            "passk-monotone",
            "Pass@K does not fall with K.",
            law(f"{LAWS}:decreases", 20) == 0,
        ),
        Claim(
            "passk-temperature",
            "The best temperature rises with K: 0.2 for pass@1, 0.8 for pass@100.",
            least(ONE[LOW] - ONE[HIGH], MANY[HIGH] - MANY[LOW]) > 0,
            mechanism="sampling",
            acts=MANY[HIGH] - ONE[HIGH] >= 10.0,
            expects=Expected(effect=11.0, spread=4.0),
        ),
    ),
)
