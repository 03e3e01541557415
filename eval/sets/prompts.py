r"""The wording of DeepSeekMath's evaluation (deepseek-ai/DeepSeek-Math, `evaluation/`).

Instruct and RL models are zero-shot: the question, a newline, and one of these requests. That of
direct answers is the last part of the others'; the model continues the beginning of such an answer.
Untooled answers are asked like those with tools.
"""

DIRECT = "direct"  # the mode of an answer without reasoning
BEGUN = r"\boxed{"  # its beginning; it ends with its line
UNTOOLED = "untooled"  # the mode of an answer with programs that are not run
REQUESTS = {
    ("cot", "en"): r"Please reason step by step, and put your final answer within \boxed{}.",
    ("cot", "zh"): r"请通过逐步推理来解答问题，并把最终答案放置于\boxed{}中。",
    (DIRECT, "en"): r"Please put your final answer within \boxed{}.",
    (DIRECT, "zh"): r"请把最终答案放置于\boxed{}中。",
    ("tir", "en"): (
        "Please integrate natural language reasoning with programs to solve the problem above, "
        r"and put your final answer within \boxed{}."
    ),
    ("tir", "zh"): r"请结合自然语言和Python程序语言来解答问题，并把最终答案放置于\boxed{}中。",
}
REQUESTS |= {(UNTOOLED, language): REQUESTS["tir", language] for language in ("en", "zh")}


def with_request(question: str, language: str = "en", mode: str = "cot") -> str:
    """Append the request for a boxed answer to a question, in Chinese or English."""
    return f"{question}\n{REQUESTS[mode, request_language(language)]}"


def request_language(language: str) -> str:
    """Return the language of the request: "zh" for Chinese problems, else "en"."""
    return "zh" if language == "zh" else "en"
