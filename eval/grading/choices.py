r"""Reads the letter of a choice: `(B)`, `B) 42`, "option B", `\textbf{(B)}\ 42`."""

import re

from eval.grading.cleaning import clean
from eval.sets.problem import Answers

LETTER = "[A-HJ]"  # "I" is a word
NAME = r"(?:(?:option|choice|answer|选项)\s?)?"
LONE = re.compile(rf"{NAME}\(?\s?({LETTER})\s?\)?", re.IGNORECASE)
LABEL = re.compile(rf"{NAME}(?:\(\s?({LETTER})\s?\)|({LETTER})[).:])\s+(?!(?:and|or)\b|[&,;])(.+)")
FURTHER = re.compile(rf"\({LETTER}\)")
COMMAND = re.compile(r"\\text\s*\{|[{}]")
ALONE = (  # a letter, not the first of several
    rf"(?![A-Za-z])(?![)）*]{{0,3}}\s?(?:or|and|,|/|或|和|、)\s?[(（*]{{0,3}}{LETTER}(?![A-Za-z]))"
)
STATED = re.compile(
    r"(?:(?i:answers?|options?|choices?|choose|select|pick|antwort|réponse|respuesta|ответ)"
    r"|选|答案|答え)"
    r"[*\s]{0,4}(?:(?i:is|are|ist|est|es)\b|[:：为是は])?[*\s]{0,4}[:：]?"
    r"\s?(?:(?i:the\s)?(?i:option|choice|letter)\s|选项?)?"
    rf"[*$(（\s]{{0,4}}(?:\\(?:text|textbf|mathrm|mathbf)\{{\s?\(?)?({LETTER}){ALONE}"
)
MARKED = re.compile(  # a letter in brackets, or at the beginning of a line
    rf"[(（]({LETTER})[)）]|^[*\s]{{0,4}}({LETTER})(?:[*]{{2}}|[).:]|[ \t]{{0,9}}$)", re.MULTILINE
)


def choice_letter(text: str) -> str | None:
    """Return the letter if an answer is a choice, alone or with its content; else None."""
    bare = COMMAND.sub("", clean(text)).strip()
    alone = LONE.fullmatch(bare)
    if alone:
        return alone[1] if alone[1].isupper() else None
    label = LABEL.fullmatch(bare)
    return None if label is None or FURTHER.search(label[3]) else label[1] or label[2]


def ask_for_choice(answers: Answers) -> bool:
    """Return whether each reference answer is the letter of a choice and nothing else."""
    return all(len(text) <= 20 and len(choice_letter(text) or "") == 1 for text in answers.texts)


def stated_choice(text: str) -> str | None:
    """Return the letter that a text states as its choice; None if it states none.

    Without a statement, the letter is the only one that the text marks: a list of choices has more.
    """
    stated = list(STATED.finditer(text))
    if stated:
        return stated[-1][1]
    marked = {match[1] or match[2] for match in MARKED.finditer(text)}
    return marked.pop() if len(marked) == 1 else None
