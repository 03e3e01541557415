"""GSM8K: a trained verifier that picks one of 100 sampled solutions beats fine-tuning alone.

Where the sources disagree, and what is not the paper's here:

- The paper prints its main results as a plot. The numbers of its models are counted in the released
  solutions, about 1 % of which suffer from failures of the calculator.
- The official rule takes the first `#### N` as text; `repro score` prints this score beside the
  strict one. The released solutions have `A: N` in its place.
- Whether the verifier's output is trained with a squared error was not checked by the source here.
- The generator and its 2 epochs, the verifier and the calculator are not here, and the claims about
  them are not tested. The model is another one, scored greedily as test@1.
- Numbers of DeepSeekMath are extracted by other rules, worth several points.
"""

from core.claims import Claim, Untestable
from core.paper import Evaluation, Paper, printed

VERIFIER = Untestable("needs a trained verifier, which is not here")

PAPER = Paper(
    slug="gsm8k-verifiers",
    title="Training Verifiers to Solve Math Word Problems",
    arxiv="2110.14168",
    family="evaluation",
    model="Qwen/Qwen2.5-1.5B",
    benchmarks=("gsm8k",),
    evaluations=(Evaluation(passage="s4"),),
    reported=(
        *printed(
            "s4.1",
            ("gsm8k",),
            "top1",
            {("GPT-3", "6B"): (20.6,), ("GPT-3, answers alone", "6B"): (5.2,)},
            block="text",
        ),
        *printed(
            "released solutions of grade-school-math",
            ("gsm8k",),
            "top1",
            {
                ("GPT-3 fine-tuned", "6B"): (21.683,),
                ("GPT-3 with verifier", "6B"): (39.045,),
                ("GPT-3 fine-tuned", "175B"): (34.723,),
                ("GPT-3 with verifier", "175B"): (56.255,),
            },
        ),
        *printed(
            "DeepSeekMath table 5",
            ("gsm8k",),
            "top1",
            {("DeepSeekMath-Instruct", "7B"): (82.9,), ("DeepSeekMath-RL", "7B"): (88.2,)},
        ),
        *printed(
            "DeepSeekMath table 5",
            ("gsm8k",),
            "top1",
            {
                ("DeepSeekMath-Instruct", "7B"): (83.7,),
                ("DeepSeekMath-RL", "7B"): (86.7,),
            },
            block="tool",
        ),
        *printed(
            "DeepSeekMath table 5",
            ("gsm8k",),
            "top1",
            {"GPT-4 Code Interpreter": (97.0,)},
            block="tool",
        ),
    ),
    claims=(
        Claim(
            "gsm-steps-help",
            "Training on solutions with steps gives a higher accuracy than on answers alone.",
            Untestable("needs models trained to sum digits with and without steps"),
        ),
        Claim(
            "gsm-verifier-beats-greedy",
            "The best of 100 solutions by a verifier beats greedy decoding.",
            VERIFIER,
        ),
        Claim(
            "gsm-coverage-grows",
            "Pass@100 still grows late in fine-tuning, when test@1 saturates or falls.",
            Untestable("needs a generator in early and late epochs; pass@64 of the start is 87 %"),
        ),
        Claim(
            "gsm-more-samples-then-worse",
            "Selection by a verifier gets worse with very many samples.",
            VERIFIER,
        ),
        Claim(
            "gsm-vote-top",
            "A vote of the verifier's best few is at least as good as its single best.",
            VERIFIER,
        ),
    ),
)
