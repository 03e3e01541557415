"""Reading an answer, comparing it and judging it end at a deadline of processor time."""

import re
import signal
from concurrent.futures import ThreadPoolExecutor
from time import process_time

import pytest
from grader_clock import boot_after

from eval.grading import Verdict, extraction, grade_as_paper, grade_many, paper_extraction, worker
from eval.grading.numerals import read_number
from eval.sets.problem import Answers, Problem
from eval.time_limit import ACTIVE, can_interrupt, each_within

DEADLINE_S = 0.5  # here a quarter of the usual one
SLOW = r"(?:a|a)*b"  # exponential in a run of a
HANGING = "a" * 60
LATE = Verdict(None, None, "timeout", "no verdict within the deadline")
PROBLEM = Problem(id="p", question="what?", answer="5", solution=r"\boxed{5}")
OUTPUTS = [HANGING, r"\boxed{5}", "so 5", "no", r"\boxed{8/12}", r"\boxed{\frac{2}{3}}", "Five"]
THIRDS = Answers(("2/3",), exact_form=True)
ANSWERS = ["5", "5", "5", "5", THIRDS, THIRDS, Answers(("five",), verbatim=True, pattern=r"\w+")]


@pytest.fixture(autouse=True)
def deadline(monkeypatch):
    """A deadline that is soon reached."""
    monkeypatch.setattr("eval.grading.limited.CPU_S", DEADLINE_S)


def spin(seconds: float) -> None:
    """Use processor time."""
    end = process_time() + seconds
    while process_time() < end:
        pass


def graded_in_a_thread(outputs: list[str], answers: list[str | Answers]) -> list[Verdict]:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(grade_many, outputs, answers).result()


def test_a_match_that_hangs_while_an_answer_is_read_is_a_timeout(monkeypatch):
    monkeypatch.setattr(extraction, "NEXT_EXAMPLE", re.compile(SLOW))
    several = HANGING + "\n5"
    start = process_time()
    verdicts = grade_many([several, r"\boxed{5}", several], ["5"] * 3)
    assert [v.correct for v in verdicts] == [None, True, None]
    assert verdicts[0] == LATE
    assert process_time() - start < 2 * DEADLINE_S + 1


def test_a_match_that_hangs_while_two_answers_are_compared_is_a_timeout(monkeypatch):
    monkeypatch.setattr("eval.grading.numerals.LABEL", re.compile(SLOW))
    read_number.cache_clear()
    late, right = grade_many([rf"\boxed{{{HANGING}=3}}", r"\boxed{5}"], ["3", "5"])
    assert (late.correct, late.rule, late.reason) == (None, "timeout", LATE.reason)
    assert right.correct is True


def test_a_match_that_hangs_while_forms_are_compared_is_a_timeout(monkeypatch):
    monkeypatch.setattr("eval.grading.written.DIGITS", re.compile(SLOW))
    answer = Answers((HANGING,), exact_form=True)
    assert grade_many([rf"\boxed{{{HANGING}}}"], [answer])[0].rule == "timeout"


def test_the_paper_s_reading_that_hangs_is_a_timeout(monkeypatch):
    monkeypatch.setattr(paper_extraction, "LAST_NUMBER", re.compile(SLOW))
    late, right = grade_as_paper([HANGING, r"\boxed{5}"], [PROBLEM] * 2, listed=True)
    assert (late.correct, late.rule) == (None, "timeout")
    assert right.correct is True


def test_a_match_that_hangs_in_another_thread_is_a_timeout(monkeypatch):
    planted = "import re, eval.grading.extraction as e, eval.grading.worker as w; w.CPU_S = 0.5; "
    planted += f"e.NEXT_EXAMPLE = re.compile({SLOW!r})"
    monkeypatch.setattr(worker, "BOOT", boot_after(planted))
    monkeypatch.setattr(worker, "POOL", [worker.Worker()])
    verdicts = graded_in_a_thread([HANGING + "\n5", r"\boxed{5}"], ["5", "5"])
    worker.stop()
    assert verdicts == [LATE, *grade_many([r"\boxed{5}"], ["5"])]


def test_verdicts_of_another_thread_are_those_of_the_main_one():
    assert graded_in_a_thread(OUTPUTS, ANSWERS) == grade_many(OUTPUTS, ANSWERS)
    problems = [PROBLEM] * len(OUTPUTS)
    with ThreadPoolExecutor(1) as thread:
        there = thread.submit(grade_as_paper, OUTPUTS, problems, listed=True).result()
    assert there == grade_as_paper(OUTPUTS, problems, listed=True)


def test_time_is_counted_for_each_item_alone():
    assert each_within(0.5, spin, [0.2] * 5, "late") == [None] * 5
    assert each_within(0.2, spin, [0.0, 0.6, 0.0], "late") == [None, "late", None]


def test_work_that_catches_every_exception_is_interrupted():
    def stubborn(_: int) -> None:
        while True:
            try:
                spin(5)
            except Exception:
                continue

    assert each_within(0.2, stubborn, [1, 2], "late") == ["late", "late"]


@pytest.mark.parametrize(("outer", "expected"), [(5.0, ["inner"]), (0.2, "outer")])
def test_the_limit_that_is_passed_is_the_one_that_counts(outer: float, expected: object):
    inner = 0.2 if outer > 1 else 5.0
    found = each_within(outer, lambda _: each_within(inner, spin, [1.0], "inner"), [0], "outer")
    assert found == [expected]


def test_handlers_and_timers_are_as_before_whatever_happens():
    before = signal.getsignal(signal.SIGPROF), signal.getitimer(signal.ITIMER_PROF)
    each_within(0.1, spin, [0.3], None)
    with pytest.raises(ZeroDivisionError):
        each_within(1.0, lambda n: 1 / n, [0], None)
    assert (signal.getsignal(signal.SIGPROF), signal.getitimer(signal.ITIMER_PROF)) == before
    assert ACTIVE == []


def test_only_the_main_thread_can_be_interrupted():
    assert can_interrupt()
    with ThreadPoolExecutor(1) as thread:
        assert not thread.submit(can_interrupt).result()
        assert thread.submit(each_within, 0.1, spin, [0.3], "late").result() == [None]
