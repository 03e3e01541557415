"""Tells whether backtracking takes exponential or quadratic time on a regular expression.

`is_exponential` looks for a loop that reads the same text in two ways, `is_quadratic` for two
loops, one after the other, that read a run of the same character. Not found: time that is quadratic
because a search starts anew at each character, or because loops read the same run of words.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, product

from networkx import DiGraph, descendants, strongly_connected_components
from pattern_automata import Automaton, Edge, automata


def is_exponential(pattern: str, flags: int = 0) -> bool:
    """Return whether a loop of the pattern reads a text in two ways, so that failing doubles."""
    return any(is_ambiguous(a, loop) for a in automata(pattern, flags) for loop in loops_of(a))


def loops_of(found: Automaton) -> list[list[Edge]]:
    """Return the edges of each part of the automaton that leads back to itself."""
    steps = DiGraph([(edge.source, edge.target) for edge in found.edges])
    parts = strongly_connected_components(steps)
    place = {p: number for number, part in enumerate(parts) for p in part}
    loops: dict[int, list[Edge]] = defaultdict(list)
    for edge in found.edges:
        if place[edge.source] == place[edge.target]:
            loops[place[edge.source]].append(edge)
    return list(loops.values())


def is_ambiguous(found: Automaton, loop: list[Edge]) -> bool:
    """Return whether two ways lead from a position of the loop back to it by the same text."""
    ways: dict[int, list[Edge]] = defaultdict(list)
    for edge in loop:
        ways[edge.source].append(edge)
    pairs, parted = DiGraph(), []
    todo = [(p, p) for p in ways]
    seen = set(todo)
    while todo:
        p, q = pair = todo.pop()
        steps = product(ways[p], ways[q]) if p != q else choices(found, ways[p])
        for one, other in steps:
            if not found.together(one, other):
                continue
            if p == q and one.target == other.target and one is not other:
                return True
            after = (min(one.target, other.target), max(one.target, other.target))
            pairs.add_edge(pair, after)
            if p == q and one is not other:
                parted.append((pair, after))
            if after not in seen:
                seen.add(after)
                todo.append(after)
    place = {n: i for i, part in enumerate(strongly_connected_components(pairs)) for n in part}
    return any(place[a] == place[b] for a, b in parted)


def choices(found: Automaton, ways: list[Edge]) -> Iterator[tuple[Edge, Edge]]:
    """Yield each way with itself, and every two ways between which backtracking chooses.

    It makes no choice inside an atomic group that has matched.
    """
    yield from zip(ways, ways, strict=True)
    for one, other in combinations(ways, 2):
        inside = found.groups[one.source]
        entered = (found.groups[one.target] & found.groups[other.target]) - inside
        if one.target == other.target or not (entered or inside & (one.groups | other.groups)):
            yield one, other


def is_quadratic(pattern: str, flags: int = 0) -> bool:
    """Return whether two loops in a row read a run of one character and something may then fail."""
    return any(has_adjacent_loops(a, c) for a in automata(pattern, flags) for c in repeated(a))


def repeated(found: Automaton) -> set[str]:
    """Return the characters that loops read."""
    edges = [edge for loop in loops_of(found) for edge in loop]
    return {c for e in edges for c in found.reads[e.source] & found.reads[e.target]}


def has_adjacent_loops(found: Automaton, char: str) -> bool:
    """Return whether a run of the character passes from one loop to another.

    A loop in an atomic group gives nothing back, and one that may end the pattern does not fail.
    """
    steps = DiGraph()
    for edge in found.edges:
        reads = found.reads[edge.source] & found.reads[edge.target]
        if char in reads and char in edge.gap.before and char in edge.gap.after:
            steps.add_edge(edge.source, edge.target)
    parts = strongly_connected_components(steps)
    loops = [loop for loop in parts if steps.subgraph(loop).number_of_edges()]
    final = {p for p, gap in found.whole.last if gap.after == found.alphabet}
    return any(
        other is not loop and not other & final and other <= descendants(steps, p)
        for loop in loops
        for p in list(loop)[:1]
        if not found.groups[p]
        for other in loops
    )
