r"""Normalises the notation of an answer without changing its value.

Full-width characters become ASCII, formula delimiters and spacing commands are removed, `\dfrac`
becomes `\frac`, `10{,}000` becomes `10,000`. Nothing is evaluated.
"""

import re

FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    ord(wide): narrow
    for wide, narrow in zip(
        "　−–—×÷。।、《》【】￥", [*" ---", r"\times ", r"\div ", *"..,<>[]¥"], strict=True
    )
}
WRAPPERS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("`", "`"))
ORDINAL = "(?:st|nd|rd|th|ème)"
REPLACEMENTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        # `\\\\frac`, which models copy from prompts with doubled backslashes
        (r"\\\\(?=(?:[dt]?frac|sqrt|text|pi|cdot|times|left|right|circ|infty|cup|boxed)\b)", r"\\"),
        (r",\s*\\!\s*|\{,\}\s*(?=\d{3})|,\\,\s*(?=\d{3})", ","),
        (
            r"(?<!\\)\\[!,;:> ]|~|\\q?quad(?![A-Za-z])|\\(?:left|right|[bB]igg?)(?![A-Za-z])[.]?",
            " ",
        ),
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"\\(?:mbox|textrm|textbf|textit|mathrm|mathbf|operatorname|text\w*)\s*\{", r"\\text{"),
        (  # 12th, 12^{\text{th}}
            rf"(?<=\d)\s?(?:\^?\s?\\text\s?\{{\s?{ORDINAL}\s?\}}"
            rf"|\^\s?\{{\s?(?:{ORDINAL}|\\text\s?\{{\s?{ORDINAL}\s?\}})\s?\}}"
            rf"|\^?{ORDINAL}(?![A-Za-z])|-(?:[йяе]|го|ый|ой|ая|ое)(?!\w)|[ºª])",
            "",
        ),
        (r"\\(le|ge|ne)q(?:slant)?(?![A-Za-z])", r"\\\1"),
        (r"≤", r"\\le "),
        (r"≥", r"\\ge "),
        (r"(?<![\\A-Za-z])(pi|ln|log|sin|cos|tan)(?![A-Za-z])", r"\\\1 "),
        (r"(?<=[\w)}])(?: \*\* |\*\*)(\d+|[A-Za-z](?![A-Za-z]))", r"^{\1}"),
        (r"(?<=\d)\s*(?:比|∶|\\text\s*\{\s*to\s*\}|\bto\b)\s*(?=\d)", ":"),
        (r"负(?=\s*[\d.\\$])", "-"),
        (r"∪", r"\\cup "),
        (r"∈", r"\\in "),
        (r"±", r"\\pm "),
        (r"(?<=\d) x (?=[$\d])", r"\\times "),
        (r"π", r"\\pi "),
        (r"∞", r"\\infty "),
        (r"√", r"\\sqrt "),
        (
            r"(?<=\d)\s*+\^?\s*+(?:\{\s*+)?(?:\\circ|°(?:[CF]\b)?|\\degree|\^∘)(?![A-Za-z])(?:\s*\})?",
            " ",
        ),
        (r"\s+", " "),
    )
)


def clean(text: str) -> str:
    """Return an answer in normal notation, without formula delimiters and final punctuation."""
    cleaned = text.translate(FULL_WIDTH) if not text.isascii() else text
    for pattern, new in REPLACEMENTS:
        cleaned = pattern.sub(new, cleaned)
    return strip_wrappers(cleaned)


def strip_wrappers(text: str) -> str:
    """Remove formula delimiters, emphasis and final punctuation around the whole text."""
    current = text.strip()
    while True:
        bare = current.rstrip(" .,;:") if not current.endswith("\\!") else current
        for opening, closing in WRAPPERS:
            inner = bare[len(opening) : len(bare) - len(closing)]
            if (
                bare.startswith(opening)
                and bare.endswith(closing)
                and inner
                and opening not in inner
            ):
                bare = inner.strip()
        if bare == current:
            return current
        current = bare
