"""Neutralises the output of programs so that transcripts can contain it."""

import re
import unicodedata

FENCE = re.compile(r"`{3,}|~{3,}")
BOX = re.compile(r"b(?=oxed)|f(?=box)", re.IGNORECASE)
SPECIAL = re.compile(r"<(?=[/|!A-Za-z<])|\[(?=/?[A-Z_]+\])|(?<=\|)>")
TURN = re.compile(
    r"^(\s*)(User|Assistant|System|Human|Question|Problem|Q|问题)([:：])",
    re.MULTILINE | re.IGNORECASE,
)


def neutral(output: str) -> str:
    r"""Return `output` without anything that a grader, a stop string or a chat template acts on.

    The rules, in this order; applying them twice changes nothing more:
    1. control, invisible and unpaired characters are dropped, line breaks become `\n`, and
       full-width letters and signs become their ASCII counterparts;
    2. three or more backticks or tildes become as many apostrophes, so that no code fence closes;
    3. `boxed` and `fbox` get a hyphen after their first letter, so that no box is found;
    4. `<` before a letter, `/`, `|`, `!` or `<`, and `[` before a word in capitals and `]`, get a
       space after them, `>` after `|` a space before it: no token of a chat template remains;
    5. a line that begins like a turn or a next example (`User:`, `Q:`, ...) gets a space before its
       colon.
    """
    lines = output.replace("\r\n", "\n").replace("\r", "\n")
    plain = (
        "".join(map(visible_form, lines))
        if not lines.isprintable() or not lines.isascii()
        else lines
    )
    fenced = FENCE.sub(lambda match: "'" * len(match[0]), plain)
    unboxed = BOX.sub(r"\g<0>-", fenced)
    spaced = SPECIAL.sub(lambda m: " >" if m[0] == ">" else f"{m[0]} ", unboxed)
    return TURN.sub(r"\1\2 \3", spaced)


def visible_form(character: str) -> str:
    """Return a character, its ASCII counterpart if it is full-width, or "" if it is invisible."""
    if character in "\n\t":
        return character
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}:
        return ""
    return unicodedata.normalize("NFKC", character) if "！" <= character <= "～" else character
