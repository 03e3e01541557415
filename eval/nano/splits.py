"""Problems of the nano tasks in disjoint splits, and demonstrations, all drawn by the seed."""

import hashlib
from collections.abc import Iterator
from functools import cache
from itertools import islice
from random import Random

from eval.errors import UnknownName
from eval.nano.chains import Chains
from eval.nano.choice import Choice
from eval.nano.fallible_sums import EvenSums, LongSums
from eval.nano.grammar import Grammar
from eval.nano.hinted_sums import HINTED, HintedSums
from eval.nano.ledgers import Ledgers
from eval.nano.length import Length
from eval.nano.many import Many
from eval.nano.running_sums import QUESTION, RunningSums, right_prefixes
from eval.nano.sums import Sums
from eval.nano.task import Task
from eval.sets.problem import Answers, Problem

SIZES = {"train": 2000, "valid": 400}  # and as many test problems as the task says
BOUNDS = {"train": 6, "valid": 7, "test": 10}  # tenths of the questions that belong up to a split
TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        *(Choice(), Many(), Length(), Sums(), Grammar(), Ledgers(), RunningSums(), Chains()),
        *(LongSums(), EvenSums(), *HINTED),
    )
}


def owning_split(question: str) -> str:
    """Return the split that alone may have a question, by the question's hash."""
    tenth = int.from_bytes(hashlib.sha256(question.encode()).digest()[:8]) % 10
    return next(split for split, bound in BOUNDS.items() if tenth < bound)


def questions(task: Task, split: str, random: Random) -> Iterator[str]:
    """Yield questions of a split without end, some of them several times."""
    while True:
        question = task.question(random)
        if owning_split(question) == split:
            yield question


def prompt_of(task: Task, question: str, seed: int) -> str:
    """Return a question with what is shown before it; its split is that of the question."""
    return task.prompt(question, seed) if isinstance(task, HintedSums) else question


@cache
def nano_problems(name: str, split: str, seed: int) -> tuple[Problem, ...]:
    """Return the different problems of a split that a seed draws.

    Raises:
        UnknownName: there is no such task or split.
    """
    if name not in TASKS:
        raise UnknownName("nano task", name, TASKS)
    task, distinct_questions = TASKS[name], dict[str, None]()
    sizes = {**SIZES, "test": task.test_problems}
    if split not in sizes:
        raise UnknownName("split", split, sizes)
    for question in questions(task, split, Random(f"{name} {split} {seed}")):
        distinct_questions[question] = None
        if len(distinct_questions) == sizes[split]:
            break
    return tuple(
        problem_of(task, prompt_of(task, question, seed), f"{name}-{split}-{seed}-{number}", seed)
        for number, question in enumerate(distinct_questions)
    )


def problem_of(task: Task, question: str, name: str, seed: int) -> Problem:
    """Return a question as a problem whose right answers are those that a pattern matches."""
    pattern = task.right_answers(question, seed)
    return Problem(
        id=name,
        question=question,
        answer=pattern,
        level=task.level(question),
        answers=Answers((pattern,), counts="whole"),
    )


@cache
def demonstrations(name: str, kind: str, seed: int) -> tuple[tuple[str, str], ...]:
    """Return prompts of the train split with answers of a kind of demonstrations."""
    task, random = TASKS[name], Random(f"{name} {kind} {seed}")
    drawn, question_stream = task.demonstrations[kind], questions(task, "train", random)
    prompts = (prompt_of(task, question, seed) for question in islice(question_stream, drawn.count))
    return tuple((prompt, drawn.answer(prompt, seed, random)) for prompt in prompts)


def held_out_answers(name: str, kind: str, seed: int) -> list[str]:
    """Return an answer of a kind of demonstrations to each held-out problem."""
    drawn, random = TASKS[name].demonstrations[kind], Random(f"{name} {kind} valid {seed}")
    answer = drawn.held_out or drawn.answer
    return [answer(p.question, seed, random) for p in nano_problems(name, "valid", seed)]


def gone_prefixes(name: str, question: str, solution: str, tokens: int) -> list[bool]:
    """Return for each token of a solution whether the solution before it has gone wrong.

    Args:
        name: Name of the task; of one that judges no steps, no prefix has gone wrong.
        question: The question; behind another than the task's, no prefix has gone wrong either.
        solution: The text, a character a token.
        tokens: Number of tokens, with an end token if there is one.
    """
    if not (isinstance(TASKS.get(name), RunningSums) and QUESTION.fullmatch(question)):
        return [False] * tokens
    is_right = right_prefixes(question, solution)
    return [not right for right in is_right[:tokens]] + [True] * (tokens - len(is_right))
