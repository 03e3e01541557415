"""MGSM: 250 problems of GSM8K in ten other languages, in which models reason as they do in English.

Where the sources disagree, and what is not the paper's here:

- The table by language was not seen. Of the text the average of PaLM-540B stands here and its
  bounds do not; numbers of PaLM 62B are those of another report.
- The official rule here is that of simple-evals, which reads the last number after the language's
  word for "Answer" and loses its sign; `repro score` prints it beside the strict score.
  DeepSeekMath extracts answers in its own way.
- The paper asks with 6 worked examples in the language. Here models answer without examples.
- At 250 problems one standard error at 79.6 is 2.5 points.
- At the small scale the languages are English and Chinese, with the same stories of the pocket
  world in both. PaLM and GPT-3 are not asked here: the model is another one.
"""

from core.claims import START, Claim, Expected, Untestable, score
from core.paper import Evaluation, Paper, printed

ENGLISH, CHINESE = score("mgsm_en"), score("mgsm_zh")

PAPER = Paper(
    slug="mgsm",
    title="Language Models are Multilingual Chain-of-Thought Reasoners",
    arxiv="2210.03057",
    family="evaluation",
    model="Qwen/Qwen2.5-1.5B-Instruct",
    benchmarks=("mgsm_en", "mgsm_zh"),
    evaluations=(Evaluation(passage="unstated"),),
    reported=(
        *printed("abstract", ("MGSM",), "top1", {("PaLM, best prompting", "540B"): (55.0,)}),
        *printed(
            "Nemotron-4 report",
            ("MGSM", "mgsm_zh"),
            "top1",
            {("PaLM", "62B"): (18.9, 24.8)},
        ),
        *printed(
            "DeepSeekMath table 5",
            ("mgsm_zh",),
            "top1",
            {
                ("DeepSeek-LLM-Chat", "67B"): (74.0,),
                ("MetaMath", "70B"): (66.4,),
                ("SeaLLM-v2", "7B"): (64.8,),
                ("WizardMath-v1.0", "70B"): (64.8,),
                ("DeepSeekMath-Instruct", "7B"): (73.2,),
                ("DeepSeekMath-RL", "7B"): (79.6,),
            },
        ),
        *printed(
            "DeepSeekMath table 5",
            ("mgsm_zh",),
            "top1",
            {
                ("DeepSeek-LLM-Chat", "67B"): (76.4,),
                ("ToRA", "34B"): (41.2,),
                ("DeepSeekMath-Instruct", "7B"): (72.0,),
                ("DeepSeekMath-RL", "7B"): (78.4,),
            },
            block="tool",
        ),
    ),
    profiles={"cpu": {"twins": {"mgsm_en": "pocket-gsm8k", "mgsm_zh": "pocket-mgsm-zh"}}},
    claims=(
        Claim(
            "mgsm-cot-beats-direct",
            "Chain of thought beats direct answers in every language.",
            Untestable("no start answers directly: 0 to 0.7 % right, so there is no room"),
        ),
        Claim(
            "mgsm-en-cot",
            "Reasoning in English is at least as good as reasoning in the question's language.",
            Untestable("needs a model that reasons in another language than it is asked in"),
        ),
        Claim(
            "mgsm-language-frequency-weak",
            "Accuracy hardly depends on how often a language occurs in pretraining.",
            Untestable("needs many languages with known shares of the pretraining data"),
        ),
        Claim(
            "mgsm-english-gap",
            "Accuracy on English problems is at least that on their translations.",
            ENGLISH.of(START) >= CHINESE.of(START),
            mechanism="data",
            expects=Expected(effect=-8.6, spread=3.0),
        ),
    ),
)
