r"""Normalises the notation of an answer without changing its value.

Full-width characters become ASCII, formula delimiters and spacing commands are removed, `\dfrac`
becomes `\frac`, `10{,}000` becomes `10,000`. Nothing is evaluated.
"""

import re
import unicodedata

FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    ord(wide): narrow
    for wide, narrow in zip(
        "　−–—‐‑‒﹣×÷。।、《》【】￥", [*" -------", r"\times ", r"\div ", *"..,<>[]¥"], strict=True
    )
}
WRAPPERS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("`", "`"))
SUPERSCRIPT = re.compile(r"(?<=[\d)}])[⁺⁻]?[⁰¹²³⁴-⁹]+|(?<=(?<![A-Za-z])[A-Za-z])[⁺⁻]?[⁰¹²³⁴-⁹]+")
ENDS = r"[^\[\](),;]+[,;][^\[\](),;]+"  # of an interval
ORDINAL = "(?:st|nd|rd|th|ème)"
ANSWER_IS = r"(?:the\s)?(?:final\s|correct\s)?answer\s?(?:is|:|=)"
CODE = r"(?:Rs|USD|EUR|GBP|INR|CNY|RMB|JPY|K?[Ss]h|Tsh|Tk|Rp)\.?"
DOLLARS = "(?:US|CA|AU|NZ|HK|NT|MX|R|A|C|S)"  # before the sign, as in R$42
REPLACEMENTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        # `\\\\frac`, which models copy from prompts with doubled backslashes
        (r"\\\\(?=(?:[dt]?frac|sqrt|text|pi|cdot|times|left|right|circ|infty|cup|boxed)\b)", r"\\"),
        (r",\s*\\!\s*|\{,\}\s*(?=\d{3})|,\\,\s*(?=\d{3})", ","),
        (
            r"(?<!\\)\\(?:[!,;:> ]|\Z)|~|\\q?quad(?![A-Za-z])"
            r"|\\(?:left|right|[bB]igg?[lrm]?)(?![A-Za-z])[.]?",
            " ",
        ),
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"<<[^<>]*>>|</?(?:b|i|u|p|em|strong|code|span)>", ""),  # <<6*7=42>>42, <b>42</b>
        (  # \text{The answer is } 42
            rf"(?i)\A\s*(?:\\text\w*\s*\{{\s*{ANSWER_IS}?\s?\}}\s*:?|{ANSWER_IS}(?=\s*[-\d\\$(]))",
            "",
        ),
        (r"\\(?:qty|SI)\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"\1 \\text{\2}"),
        (r"\\(?:unit|si)\s*\{", r"\\text{"),
        # colours, fonts and styles
        (r"\\(?:text)?color\s*\{[^{}]*\}|\\(?:display|text|script)style(?![A-Za-z])", ""),
        (
            r"\\(?:underline|boldsymbol|bm|mathit|mathsf|emph|ensuremath|num)\s*(?=\{)"
            r"|\\(?:[lL]arge|LARGE|[hH]uge|normalsize|small)(?![A-Za-z])",
            "",
        ),
        (r"\\mathrm\s*\{\s*([dei])\s*\}", r"\1"),
        (r"\\rm\s*\{|\{\s*\\rm(?![A-Za-z])", r"\\text{"),
        (r"\\(?:rm|bf|it|sf|tt)(?![A-Za-z])", ""),
        (r"\\(?:mbox|textrm|textbf|textit|mathrm|mathbf|operatorname|text\w*)\s*\{", r"\\text{"),
        (  # 12th, 12^{\text{th}}
            rf"(?<=\d)\s?(?:\^?\s?\\text\s?\{{\s?{ORDINAL}\s?\}}"
            rf"|\^\s?\{{\s?(?:{ORDINAL}|\\text\s?\{{\s?{ORDINAL}\s?\}})\s?\}}"
            rf"|\^?{ORDINAL}(?![A-Za-z])|-(?:[йяе]|го|ый|ой|ая|ое)(?!\w)|[ºª])",
            "",
        ),
        (r"\\(le|ge|ne)q(?:slant)?(?![A-Za-z])", r"\\\1"),
        (r"\\text\s*\{\s*([-+,:])\s*\}", r"\1"),
        (  # 60\frac{km}{h}
            r"(?<=\d)\s*\\frac\s*\{\s?(\\text\s?\{[A-Za-z ]+\})\s?\}"
            r"\s?\{\s?(\\text\s?\{[A-Za-z ]+\})\s?\}",
            r" \1/\2",
        ),
        (r"≤", r"\\le "),
        (r"≥", r"\\ge "),
        (r"(?<![\\A-Za-z])(pi|ln|log|sin|cos|tan)(?![A-Za-z])", r"\\\1 "),
        (r"(?<=[\w)}])(?: \*\* |\*\*)(\d+|[A-Za-z](?![A-Za-z]))", r"^{\1}"),
        (r"(?<=\d)\s*(?:比|∶|\\text\s*\{\s*to\s*\}|\bto\b)\s*(?=\d)", ":"),
        (r"负(?=\s*[\d.\\$])", "-"),
        (r"(?<=\d)又(?=\d+\s*/|\\frac)", " "),
        (r"\\varnothing(?![A-Za-z])|∅|\\\{\s*\\\}", r"\\emptyset"),
        (r"(?<=[,(\[])\s*([-+]?)(?:inf(?:inity)?|oo)(?=\s*[,)\]])", r"\1\\infty "),
        (r"\\text\s*\{\s*(\\?[$€£¥₹])\s*\}", r"\1"),
        (r"\\(?:pounds|text(?:sterling|euro)|euro)(?![A-Za-z])", "£"),
        (
            rf"(?<![A-Za-z\\{{])(?:\\text\s*\{{\s*{CODE}\s*\}}|{CODE})\s*(?=\d)",
            "",
        ),
        (  # 42 (apples)
            r"(?<=\d)\s\((?!(?:hundred|thousand|million|billion|dozen|base)\b)"
            r"[a-z]{3,}(?: [a-z]+)*\)\Z",
            "",
        ),
        (rf"(?<![A-Za-z]){DOLLARS}(?=\\?\$\s?\d)", ""),
        (r"([$€£]\s?\d[\d,.]*)\s?[kK](?![A-Za-z])", r"\1 thousand"),
        (r"([$€£]\s?\d[\d,.]*)\s?[mM](?![A-Za-z])", r"\1 million"),
        (r"∪", r"\\cup "),
        (r"∈", r"\\in "),
        (r"±", r"\\pm "),
        (r"(?<=\d) x (?=[$\d])", r"\\times "),
        (r"π", r"\\pi "),
        (r"∞", r"\\infty "),
        (r"√\s*\(([^()]*)\)|√\s*(\d+(?:\.\d+)?)", r"\\sqrt{\1\2}"),
        (r"√", r"\\sqrt "),
        (
            r"(?<=\d)\s*+\^?\s*+(?:\{\s*+)?(?:\\circ|°(?:[CF]\b)?|[℃℉]|\\degree|\^∘)"
            r"(?![A-Za-z])(?:\s*\})?(?:\s*[CF]\b)?",
            " ",
        ),
        (  # 0.1666...
            r"(\.\d{0,15})([1-9])\2\2\s?(?:\.{3}|…|\\[lc]?dots(?![A-Za-z]))",
            r"\1\\overline{\2}",
        ),
        (rf"\]({ENDS})\[", r"(\1)"),  # ]1,2[
        (rf"\]({ENDS})\]", r"(\1]"),
        (rf"\[({ENDS})\[", r"[\1)"),
        (r"\s+", " "),
    )
)


def clean(text: str) -> str:
    """Return an answer in normal notation, without formula delimiters and final punctuation."""
    cleaned = text if text.isascii() else SUPERSCRIPT.sub(as_power, text.translate(FULL_WIDTH))
    for pattern, new in REPLACEMENTS:
        cleaned = pattern.sub(new, cleaned)
    return strip_wrappers(cleaned)


def as_power(match: re.Match[str]) -> str:
    """Return a match of SUPERSCRIPT in LaTeX notation: ² as `^{2}`."""
    return f"^{{{unicodedata.normalize('NFKC', match.group()).replace('−', '-')}}}"


def strip_wrappers(text: str) -> str:
    """Remove formula delimiters, emphasis and final punctuation around the whole text."""
    current = text.strip()
    while True:
        bare = current.rstrip(" .,;:✅✔✓☑🎉😊") if not current.endswith("\\!") else current
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
