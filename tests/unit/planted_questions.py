"""Test questions planted in training data as they come: with typos, other names, other numbers."""

import random
import re

NAMES = (
    "Ottokar",
    "Wilhelmina",
    "Quentin",
    "Zelda",
    "Ingrid",
    "Bartholomew",
    "Leokadia",
    "Ruprecht",
)
TYPOS = 3
SENTENCE = re.compile(r"(?<=[.!?])\s+")


class Planter:
    """Changes questions at random, the same way every time; `others` are of another set."""

    def __init__(self, questions: list[str], others: list[str]):
        self.others = others
        self.common = {w for text in questions + others for w in re.findall(r"\b[a-z]+\b", text)}

    def planted(self, kind: str, questions: list[str]) -> list[str]:
        """The questions, each changed in one way."""
        change = KINDS[kind]
        return [change(self, q, random.Random(f"{kind} {i}")) for i, q in enumerate(questions)]

    def typos(self, text: str, draw: random.Random) -> str:
        """Three words without one of their letters."""
        words = text.split()
        long = [i for i, word in enumerate(words) if len(word) > 3 and word.isalpha()]
        for i in draw.sample(long, min(TYPOS, len(long))):
            place = draw.randrange(1, len(words[i]) - 1)
            words[i] = words[i][:place] + words[i][place + 1 :]
        return " ".join(words)

    def renamed(self, text: str, draw: random.Random) -> str:
        """Every name another one: what is always written with a capital."""
        names = iter(draw.sample(NAMES, len(NAMES)))
        new: dict[str, str] = {}

        def other(match: re.Match[str]) -> str:
            word = match[0]
            if word.lower() in self.common:
                return word
            return new.setdefault(word, next(names, "Someone"))

        return re.sub(r"\b[A-Z][a-z]+\b", other, text)

    def reordered(self, text: str, draw: random.Random) -> str:
        """The sentences before the last in another order."""
        *given, asked = SENTENCE.split(text.strip())
        return " ".join([*draw.sample(given, len(given)), asked])

    def lengthened(self, text: str, draw: random.Random) -> str:
        """A sentence of another question put in."""
        sentences = SENTENCE.split(text.strip())
        other = SENTENCE.split(draw.choice(self.others))[0]
        sentences.insert(draw.randrange(1, max(2, len(sentences))), other)
        return " ".join(sentences)

    def halved(self, text: str, _: random.Random) -> str:
        """The first half of the words."""
        words = text.split()
        return " ".join(words[: (len(words) + 1) // 2])

    def renumbered(self, text: str, draw: random.Random) -> str:
        """Every number another one of as many digits."""
        return re.sub(r"\d+", lambda m: other_number(m[0], draw), text)

    def renamed_and_renumbered(self, text: str, draw: random.Random) -> str:
        """Other names and other numbers."""
        return self.renumbered(self.renamed(text, draw), draw)


def other_number(digits: str, draw: random.Random) -> str:
    """A number of as many digits."""
    size = len(digits)
    return str(draw.randrange(10 ** (size - 1), 10**size))


KINDS = {
    "three typos": Planter.typos,
    "other names": Planter.renamed,
    "sentences in another order": Planter.reordered,
    "a sentence of another question put in": Planter.lengthened,
    "the first half": Planter.halved,
    "other numbers": Planter.renumbered,
    "other names and numbers": Planter.renamed_and_renumbered,
}
