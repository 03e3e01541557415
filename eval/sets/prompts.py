r"""The wording of DeepSeekMath's evaluation (deepseek-ai/DeepSeek-Math, `evaluation/`).

Instruct and RL models are zero-shot: the question, a newline, and one of these requests.
"""

REQUESTS = {
    ("cot", "en"): r"Please reason step by step, and put your final answer within \boxed{}.",
    ("cot", "zh"): r"请通过逐步推理来解答问题，并把最终答案放置于\boxed{}中。",
    ("tir", "en"): (
        "Please integrate natural language reasoning with programs to solve the problem above, "
        r"and put your final answer within \boxed{}."
    ),
    ("tir", "zh"): r"请结合自然语言和Python程序语言来解答问题，并把最终答案放置于\boxed{}中。",
}
