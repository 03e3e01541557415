r"""The scoring rule of CMATH (arXiv 2306.16636): either of the last two numbers, within 1 %.

Source: XiaoMi/cmath, `utils.py`, with its call of `has_exception` repaired.
"""

import re
from collections import deque
from itertools import chain

from eval.grading.verdict import Verdict

CANDIDATES = 2  # numbers at the end of a reply of which one has to match
TOLERANCE = 1e-2  # relative, unless both numbers are integers
HAN = r"\u4e00-\u9fa5"
VALUE = r"\d+(?:[./]\d*)?%?"
AFTER = rf"[{HAN},，。°℃$}}（]"  # characters that may follow a number
POSITIONS = (  # of numbers in a line, in the order in which the candidates are listed
    re.compile(rf"^({VALUE}) ?(?=[{HAN},，。°℃$])"),
    re.compile(rf"(?<=[{HAN}$:：，＝≈=>{{]) ?({VALUE}) ?(?:{AFTER}|\([^\d\s]|\.$)"),
    re.compile(r"(\d+)分之(\d+)"),
    re.compile(rf"(?<=[{HAN}$:：＝≈=\->]) ?({VALUE})$"),
    re.compile(rf"^({VALUE})$"),
)
FRACTION = "\\frac{"
WITHIN_NUMBER = re.compile(r"(?<=\d)[, ](?=\d)")
TIMEOUT = ("请求", "超时")  # a request, and that it has timed out
FAILURE = re.compile(r"error|异常|失败|content_filter")


def grade_cmath(reply: str, answer: str) -> Verdict:
    """Return the verdict on a reply: right if one of its last two numbers matches the answer.

    `correct` is None for error replies, which the official accuracy leaves out.
    """
    if is_error(reply):
        return Verdict(None, None, "error reply", "left out of the accuracy")
    texts = candidates(reply)[-CANDIDATES:]
    is_right = any(matches(answer, text) for text in texts)
    reason = "one matches" if is_right else "none matches" if texts else "no answer"
    return Verdict(is_right, "; ".join(texts) or None, "last two numbers", reason)


def is_error(reply: str) -> bool:
    """Return whether a reply is empty, timed out, or an error object."""
    is_object = "{" in reply and "}" in reply
    is_failure = is_object and FAILURE.search(reply) is not None
    return not reply.strip() or is_timeout(reply) or is_failure


def is_timeout(reply: str) -> bool:
    """Return whether a line of a reply says that a request has timed out."""
    request, late = TIMEOUT
    return "timeout" in reply or any(
        request in line.rpartition(late)[0] for line in reply.split("\n")
    )


def candidates(reply: str) -> list[str]:
    """Return the numbers of a reply, line by line."""
    lines = WITHIN_NUMBER.sub("", plain_fractions(reply)).splitlines()
    return list(chain.from_iterable(map(line_candidates, lines)))


def plain_fractions(text: str) -> str:
    r"""Return a text with `a/b` for each `\frac{a}{b}`, of which both parts end at the next `}`."""
    parts, done = deque(text.split("}")), list[str]()
    while len(parts) > 1:  # what is before a `}`
        head, fraction, numerator = parts.popleft().partition(FRACTION)
        denominator = parts[0].removeprefix("{") if parts[0].startswith("{") else ""
        if numerator and denominator and len(parts) > 1:
            parts.popleft()
            done.append(f"{head}{numerator}/{denominator}")
        else:
            done.append(head + fraction + numerator + "}")
    return "".join([*done, *parts])


def line_candidates(line: str) -> list[str]:
    """Return the numbers of a line, by the patterns in `POSITIONS`; `b分之a` as `a/b`."""
    texts = [
        "/".join(reversed(match.groups()))
        for pattern in POSITIONS
        for match in pattern.finditer(line)
    ]
    return [text for text in texts if not text.endswith("/")]


def matches(answer: str, candidate: str) -> bool:
    """Return whether two numbers are equal: integers exactly, others within 1 %."""
    gold, number = value_of(answer), value_of(candidate)
    if gold is None or number is None:
        return False
    if isinstance(gold, int) and isinstance(number, int):
        return gold == number
    return abs(gold - number) / (min(abs(gold), abs(number)) + 1e-6) < TOLERANCE


def value_of(text: str) -> int | float | None:
    """Return the value of an integer, decimal, percentage or fraction; None for other texts.

    A fraction over 0 has the value 0.
    """
    stripped = text.strip()
    try:
        if stripped.endswith("%"):
            return float(stripped.replace("%", "")) / 100
        if "/" in stripped:
            over, under = map(float, stripped.split("/"))
            return over / under if under else 0
        return float(stripped) if "." in stripped else int(stripped)
    except ValueError:
        return None
