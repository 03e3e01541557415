"""CMATH: word problems of Chinese primary schools by grade, up to which a model gets by.

Where the sources disagree, and what is not the paper's here:

- The paper has 1,700 problems, its repository 600 for development; the benchmark here is the set of
  1,098 that DeepSeekMath is evaluated on, graded strictly.
- The official script takes either of the last two numbers, within one per cent, and leaves errors
  out of the denominator. Its call of `has_exception` fails until it is repaired. `repro score`
  prints this score beside the strict one.
- The 60 stories with 0 to 5 distractors are in the paper's repository alone. At the small scale
  they are Chinese stories of the pocket world, equal but for their distractors; other scales do not
  score them. The starts have learned from stories with at most one distractor, and one costs them
  3 points (57.6 to 54.2 %, three seeds), two 24 and five 48: most of the loss is that of stories
  unlike any that they know.
- Accuracies by grade are plots, of which the abstract says that GPT-4 alone reaches 60 in all. The
  numbers are those of DeepSeekMath's table 5 and of its released results.
- Of the grades 1 to 6 the claim on them compares 3 and 5, which pocket CMATH has too.
"""

from core.claims import START, Claim, Expected, law, score
from core.paper import Evaluation, Paper, printed

LAWS = "core.laws.official_rules"
DISTRACTED = tuple(f"cmath-distractors-{count}" for count in range(6))
SCORED_ELSEWHERE = {"benchmarks": ("cmath",)}

PAPER = Paper(
    slug="cmath",
    title="CMATH: Can Your Language Model Pass Chinese Elementary School Math Test?",
    arxiv="2306.16636",
    family="evaluation",
    model="deepseek-ai/deepseek-math-7b-instruct",
    benchmarks=("cmath", *DISTRACTED),
    evaluations=(Evaluation(by=("level",), passage="abstract"),),
    reported=(
        *printed(
            "DeepSeekMath table 5", ("cmath",), "top1", {"GPT-4": (86.0,), "GPT-3.5": (73.8,)}
        ),
        *printed(
            "DeepSeekMath table 5",
            ("cmath",),
            "top1",
            {
                ("DeepSeek-LLM-Chat", "67B"): (80.3,),
                ("MetaMath", "70B"): (70.9,),
                ("WizardMath-v1.0", "70B"): (65.4,),
                ("DeepSeekMath-Instruct", "7B"): (84.6,),
                ("DeepSeekMath-RL", "7B"): (88.8,),
            },
        ),
        *printed(
            "DeepSeekMath table 5",
            ("cmath",),
            "top1",
            {
                ("DeepSeek-LLM-Chat", "67B"): (85.4,),
                ("ToRA", "34B"): (53.4,),
                ("DeepSeekMath-Instruct", "7B"): (84.3,),
                ("DeepSeekMath-RL", "7B"): (87.6,),
            },
            block="tool",
        ),
        *printed(
            "released results of DeepSeek-Math",
            ("cmath",),
            "few-shot",
            {("DeepSeekMath-Base", "7B"): (71.6758,)},
        ),
    ),
    profiles={
        "cpu": {
            "twins": {
                "cmath": "pocket-cmath",
                **{name: name.replace("cmath", "pocket") for name in DISTRACTED},
            }
        },
        "gpu": SCORED_ELSEWHERE,
        "paper": SCORED_ELSEWHERE,
    },
    claims=(
        Claim(
            "cmath-grade-order",
            "Accuracy falls with the grade.",
            score("cmath", level=3).of(START) > score("cmath", level=5).of(START),
            mechanism="data",
        ),
        Claim(
            "cmath-distractors",
            "Five distractors in each story lower accuracy.",
            score(DISTRACTED[5]).of(START) < score(DISTRACTED[0]).of(START),
            mechanism="data",
            acts=score(DISTRACTED[0]).of(START) >= 10.0,
            expects=Expected(effect=-45.0, spread=5.0),
        ),
        Claim(
            "cmath-lenient-scoring",
            "Scoring the last two numbers gives at least the accuracy of scoring the last one.",
            law(f"{LAWS}:cmath_accuracy", 2) >= law(f"{LAWS}:cmath_accuracy", 1),
        ),
        Claim(
            "cmath-error-denominator",
            "Leaving errors out of the denominator never lowers the printed accuracy.",
            law(f"{LAWS}:gain_without_errors", 60) >= 0.0,
        ),
    ),
)
