r"""Patterns of the phrases that announce an answer or take one back, by language.

English phrases are recognised in a text of any language.
"""

import re

ANSWERS = {
    "bn": r"উত্তর\s*(?:হলো|হল|[:：])",
    "de": r"Antwort\s*(?:ist|lautet|beträgt|[:：])",
    "en": (
        r"(?:^[^\S\n]*+A:|####|answers?[\"'*]{0,3}\s*[:：]"
        r"|(?:answers?|solutions?)\s*(?:\([^()\n]{1,40}\)\s*|to\s[^.\n]{1,80}?\s)?"
        r"(?:(?:is|are)(?:n['’]t)?|(?:can|will|would|should|must)(?:\s?not|['’]t)?\sbe)"
        r"(?![A-Za-z]|\s(?:correct|right|wrong|reasonable)\b))"
    ),
    "es": r"respuesta\s*(?:final\s*)?(?:(?:no\s+)?es(?:\s+de)?|[:：])",
    "fr": r"réponse\s*(?:finale\s*)?(?:est(?:\s+de)?|n['’]est\s+pas|[:：])",
    "ja": r"(?:答え|正解)\s*(?:は|[:：])",
    "ru": r"ответ\s*(?:[:：—–-]|равен\b|составляет\b)",
    "sw": r"jibu\s*(?:la\s\w{1,12}\s|sahihi\s)?(?:ni|[:：])",
    "te": r"సమాధానం\s*[:：]?",
    "th": r"คำตอบ\s*(?:สุดท้าย\s*)?(?:คือ|[:：])",
    "zh": r"(?:答案\s*(?:不?就?是|为|等于|[:：])|^[^\S\n]*+答[:：])",
}
PHRASES = {
    language: re.compile(rf"{pattern}\s*[:：]?[\s*]*", re.IGNORECASE | re.MULTILINE)
    for language, pattern in ANSWERS.items()
}
CORRECTION = re.compile(  # at the beginning of a sentence
    r"(?:\A|[.!?。！？\n—–]|\*\*)\s*(?:(?:oh,?\s|no,?\s)?wait\b|actually,|correction:|scratch that"
    r"|sorry,|no,|不对|等等|更正)",
    re.IGNORECASE,
)
DENIAL = re.compile(r"n['’]t\b|not\b|n['’]est\s+pas|\bno\s+es\b|不")  # of a phrase
CLOSING = "#* \t\n"
TAKEN_BACK = re.compile(r"\b(?:wrong|incorrect|not right|mistake)\b|错", re.IGNORECASE)


def last_phrase(text: str, language: str) -> re.Match[str] | None:
    """Return the match of the last phrase, of the language or English, that announces an answer.

    A `####` at the end of the text closes an answer and is not counted.
    """
    patterns = [PHRASES[name] for name in {language, "en"} & PHRASES.keys()]
    end = len(text.rstrip(CLOSING))
    matches = [m for pattern in patterns for m in pattern.finditer(text) if m.start() < end]
    return max(matches, key=lambda match: match.end(), default=None)
