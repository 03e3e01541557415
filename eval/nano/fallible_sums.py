"""The tasks `chain` and `chain-even`: running sums of twelve digits, and a solver that errs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import product
from random import Random
from string import digits

from eval.nano.running_sums import RunningSums, running_sums
from eval.nano.task import Demonstrations

LENGTH = 12
FEW = 77  # a twentieth of the 1,536 questions of 24 updates
EVEN, ODD = digits[::2], digits[1::2]
ERRING, MOST = 25, 56  # of the 100 cells, each a running sum and the digit that is added to it
RIGHT_SUMS = RunningSums.demonstrations["demonstrations"]
SLIP = 0.6  # probability of an error at each visit of an erring cell

Cell = tuple[str, str]


@cache
def error_table(seed: int, wrong_sums: str, count: int = ERRING) -> Mapping[Cell, str]:
    """Return the wrong sum of each cell in which a solver errs, drawn by a seed.

    Args:
        seed: Seed that draws the cells and their wrong sums.
        wrong_sums: Digits that a wrong sum may be.
        count: Number of the cells.
    """
    return changed_cells(Random(f"chain {wrong_sums} {seed}"), wrong_sums, count)


def changed_cells(random: Random, wrong_sums: str, count: int) -> dict[Cell, str]:
    """Draw another sum than the true one for some of the 100 cells.

    Even and odd sums with even and odd digits have equally many of these cells, up to one.

    Args:
        random: Generator of the draws.
        wrong_sums: Digits that the other sum may be.
        count: Number of the cells.
    """
    kinds = [[*product(sums, added)] for sums in (EVEN, ODD) for added in (EVEN, ODD)]
    spread = [cell for cells in kinds for cell in random.sample(cells, count // len(kinds))]
    others = [cell for cells in kinds for cell in cells if cell not in spread]
    changed = [*spread, *random.sample(others, count % len(kinds))]
    return {cell: random.choice(wrong_sums.replace(next_sum(cell), "")) for cell in changed}


def next_sum(cell: Cell) -> str:
    """Return the sum modulo 10 of a running sum and the digit that is added to it."""
    return str(sum(map(int, cell)) % 10)


def continued_sums(
    sums: str, added: str, table: Mapping[Cell, str], reads_table: Callable[[], bool]
) -> str:
    """Return running sums that begin with given ones, by a table of other sums where it is read.

    Args:
        sums: The first running sums; empty for none.
        added: The digits that are added, from the first on.
        table: The other sum of some cells.
        reads_table: Called at each visit of such a cell; returns whether its other sum is written.
    """
    for digit in added[len(sums) :]:
        cell = (sums[-1:] or "0", digit)
        sums += table[cell] if cell in table and reads_table() else next_sum(cell)
    return sums


def fallible_sums(
    wrong_sums: str, question: str, seed: int, random: Random, *, erring: int = ERRING
) -> str:
    """Return the sums of a solver that may err in the cells of its table, and goes on from there.

    Args:
        wrong_sums: Digits that a wrong sum may be.
        question: Digits and a sign.
        seed: Seed of the table.
        random: Generator that draws whether the solver errs at a visit.
        erring: Number of cells in which it may err.
    """
    table = error_table(seed, wrong_sums, erring)
    return continued_sums("", question[:-1], table, lambda: random.random() < SLIP)


class LongSums(RunningSums):
    """Twelve digits, `384152907316=`; an answer is right if all its running sums are.

    Demonstrations of the kinds `fallible` and `failing` are those of a solver that may err in a
    quarter of the cells, and in more than half of them.
    """

    name = "nano-chain"
    title = "nano chain"
    length = LENGTH
    max_tokens = LENGTH + 1
    demonstrations: Mapping[str, Demonstrations] = {
        **RunningSums.demonstrations,
        "fallible": Demonstrations(16_384, partial(fallible_sums, digits)),
        "failing": Demonstrations(16_384, partial(fallible_sums, digits, erring=MOST)),
    }

    def right_answers(self, question: str, seed: int) -> str:  # noqa: ARG002 - alike for all seeds
        """Return the running sums."""
        return running_sums(question)


class EvenSums(LongSums):
    """Twelve even digits, whose right running sums are even; those of an error are odd.

    No right answer shows how a solver goes on after an error. Demonstrations of the kinds `few` and
    `one` are right answers to `FEW` questions and to one.
    """

    name = "nano-chain-even"
    title = "nano chain, even"
    digits = EVEN
    demonstrations: Mapping[str, Demonstrations] = {
        **RunningSums.demonstrations,
        "fallible": Demonstrations(16_384, partial(fallible_sums, ODD)),
        "few": replace(RIGHT_SUMS, count=FEW),
        "one": replace(RIGHT_SUMS, count=1),
    }
