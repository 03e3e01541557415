"""The automaton of a regular expression: its positions, each of which reads one character.

It is made of the parse tree of Python's `re`. Assertions of several characters are taken to hold.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from re import _compiler, _constants, _parser  # type: ignore[attr-defined] # the parse tree
from sys import maxunicode
from typing import Any

COPIES = 3  # of the body of a bounded repetition; more of them add no other ambiguity
WITNESSES = "aZéжß0٣९_ \n\u00a0\t.,:;!?(){}[]|\\^$%+-*/=<>~'\"`’中。：²½–€"
READS = {"LITERAL", "NOT_LITERAL", "IN", "ANY"}
REPEATS = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}


@dataclass(frozen=True)
class Gap:
    """A place between two characters: which may stand before it, and which after it."""

    before: frozenset[str]
    after: frozenset[str]

    def then(self, other: "Gap") -> "Gap":
        """A place where both hold."""
        return Gap(self.before & other.before, self.after & other.after)


@dataclass(frozen=True)
class Edge:
    """A way from one position to another within atomic `groups`."""

    source: int
    target: int
    gap: Gap
    groups: frozenset[int]


@dataclass
class Fragment:
    """A part of a pattern: its first and last positions, and the ways to match no character."""

    first: list[tuple[int, Gap]] = field(default_factory=list)
    last: list[tuple[int, Gap]] = field(default_factory=list)
    empty: list[Gap] = field(default_factory=list)


class Automaton:
    """The positions of a pattern and the ways between them."""

    def __init__(self, tree: Any, flags: int, bodies: dict[int, Any]):
        self.state, self.flags = tree.state, flags
        self.bodies = bodies  # of the groups that are referred to
        self.alphabet = frozenset({*WITNESSES, *map(chr, near(tree.state.str))})
        self.classes: dict[str, frozenset[str]] = {}
        self.reads: list[frozenset[str]] = []
        self.groups: list[frozenset[int]] = []  # the atomic groups of each position
        self.edges: list[Edge] = []
        self.within: tuple[int, ...] = ()
        self.count = 0
        self.anything = Gap(self.alphabet, self.alphabet)
        self.inner: list[Any] = []  # assertions, which are patterns of their own
        self.whole = self.sequence(tree)

    def sequence(self, items: Iterable[Any]) -> Fragment:
        """One item after the other."""
        whole = Fragment(empty=[self.anything])
        for item in items:
            whole = self.joined(whole, self.item(*item))
        return whole

    def joined(self, left: Fragment, right: Fragment) -> Fragment:
        """Two fragments in a row, with the edges from one to the other."""
        self.connect(left.last, right.first)
        return Fragment(
            left.first + [(p, e.then(g)) for e in left.empty for p, g in right.first],
            right.last + [(p, g.then(e)) for e in right.empty for p, g in left.last],
            [a.then(b) for a in left.empty for b in right.empty],
        )

    def connect(self, ends: list[tuple[int, Gap]], starts: list[tuple[int, Gap]]) -> None:
        """Add the edges from ends to starts."""
        for p, before in ends:
            for q, after in starts:
                gap = before.then(after)
                if self.reads[p] & gap.before and self.reads[q] & gap.after:
                    self.edges.append(Edge(p, q, gap, frozenset(self.within)))

    def item(self, op: Any, value: Any) -> Fragment:
        """The fragment of one node of the parse tree."""
        name = str(op)
        if name in READS:
            return self.position(op, value)
        if name in REPEATS:
            return self.repeated(*value, possessive=name == "POSSESSIVE_REPEAT")
        match name, value:
            case "SUBPATTERN", (group, on, off, body):
                self.bodies[group] = body
                outside, self.flags = self.flags, (self.flags | on) & ~off
                found = self.sequence(body)
                self.flags = outside
                return found
            case "GROUPREF", group:
                return self.sequence(self.bodies[group])
            case "ATOMIC_GROUP", body:
                return self.atomic(body, body)
            case "BRANCH", (_, branches):
                return merged(map(self.sequence, branches))
            case "ASSERT" | "ASSERT_NOT", (direction, body):
                return Fragment(empty=[self.assertion(direction, body, name == "ASSERT")])
            case "AT", where:
                return Fragment(empty=self.boundary(str(where)))
        raise ValueError(f"{name} is not read here: say what it may read")

    def boundary(self, where: str) -> list[Gap]:
        """What an anchor says of the characters beside it."""
        word = frozenset(filter(re.compile(r"\w").match, self.alphabet))
        other = self.alphabet - word
        match where:
            case "AT_BOUNDARY":
                return [Gap(word, other), Gap(other, word)]
            case "AT_NON_BOUNDARY":
                return [Gap(word, word), Gap(other, other)]
        return [self.anything]

    def position(self, op: Any, value: Any) -> Fragment:
        """A place that reads one character."""
        key = f"{op} {value} {self.flags}"
        if key not in self.classes:
            node = _parser.SubPattern(self.state, [(op, value)])
            self.classes[key] = frozenset(
                filter(_compiler.compile(node, self.flags).fullmatch, self.alphabet)
            )
        self.reads.append(self.classes[key])
        self.groups.append(frozenset(self.within))
        place = [(len(self.reads) - 1, self.anything)]
        return Fragment(place, place)

    def assertion(self, direction: int, body: Any, holds: bool) -> Gap:
        """What an assertion says of the characters beside it, where one character decides."""
        self.inner.append((body, self.flags))
        edges, positions = len(self.edges), len(self.reads)
        part = self.sequence(body)
        beside = frozenset(
            c for p, _ in (part.first if direction > 0 else part.last) for c in self.reads[p]
        )
        single = len(self.reads) == positions + 1 and not part.empty and len(self.edges) == edges
        del self.edges[edges:], self.reads[positions:], self.groups[positions:]
        if holds and not part.empty:
            allowed = beside
        elif not holds and single:
            allowed = self.alphabet - beside
        else:
            allowed = self.alphabet
        return Gap(self.alphabet, allowed) if direction > 0 else Gap(allowed, self.alphabet)

    def repeated(self, least: int, most: Any, body: Any, *, possessive: bool) -> Fragment:
        """A repetition; a possessive one ends where its single character does."""
        if not possessive:
            return self.counted(least, most, body)
        found = self.atomic([(_constants.MAX_REPEAT, (least, most, body))], body)
        if most is not _constants.MAXREPEAT or len(body) > 1 or str(body[0][0]) not in READS:
            return found
        beyond = Gap(self.alphabet, self.alphabet - self.reads[found.first[0][0]])
        ends = [(p, gap.then(beyond)) for p, gap in found.last]
        return Fragment(found.first, ends, [gap.then(beyond) for gap in found.empty])

    def counted(self, least: int, most: Any, body: Any) -> Fragment:
        """A repetition as copies of its body, the last of them a loop if it has no bound."""
        endless = most is _constants.MAXREPEAT
        optional = 0 if endless else min(most - least, COPIES)
        tail = Fragment(empty=[self.anything])
        for _ in range(optional):
            tail = merged([self.joined(self.sequence(body), tail), Fragment(empty=[self.anything])])
        if endless:
            tail = self.sequence(body)
            self.connect(tail.last, tail.first)
            if least == 0:
                tail = merged([tail, Fragment(empty=[self.anything])])
        for _ in range(min(least - (endless and least > 0), COPIES)):
            tail = self.joined(self.sequence(body), tail)
        return tail

    def together(self, one: Edge, other: Edge) -> bool:
        """Is there a character by which both ways go?"""
        reads = self.reads[one.target] & self.reads[other.target]
        return bool(reads & one.gap.after & other.gap.after)

    def atomic(self, items: Any, body: Any) -> Fragment:
        """A group that is never entered again once its `body` has matched."""
        self.inner.append((body, self.flags))
        self.count += 1
        outside, self.within = self.within, (*self.within, self.count)
        found = self.sequence(items)
        self.within = outside
        return found


def merged(parts: Iterable[Fragment]) -> Fragment:
    """Fragments of which one is read."""
    whole = Fragment()
    for part in parts:
        whole.first += part.first
        whole.last += part.last
        whole.empty += part.empty
    return whole


def near(source: str) -> Iterator[int]:
    """Yield the characters of a pattern and their neighbours, among them the ends of its ranges."""
    for char in {*source, *source.swapcase()}:
        yield from (max(ord(char) - 1, 0), ord(char), min(ord(char) + 1, maxunicode))


@lru_cache(maxsize=1)
def automata(pattern: str, flags: int) -> list[Automaton]:
    """Return the automaton of a pattern, and those of its assertions and atomic groups."""
    tree, bodies, found = _parser.parse(pattern, flags), {}, []
    todo = [(tree, flags | tree.state.flags)]
    while todo:
        part, own = todo.pop()
        found.append(Automaton(part, own, bodies))
        todo += found[-1].inner
    return found
