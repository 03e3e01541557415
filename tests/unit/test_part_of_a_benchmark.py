"""A part of a test set: of every kind its share, for everybody the same, never taken for all."""

import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evaluate.reported import as_rows, refuse_parts
from eval.errors import BadValue
from eval.samples.store import Sample
from eval.sets.benchmarks import BENCHMARKS, find_benchmark
from eval.sets.problem import Problem
from eval.sets.subset import stratified_sample
from eval.stats.summary import score

DATA = os.environ.get("REPRO_DATA")
kinds = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3)), min_size=1, max_size=120)


def problems_of(kinds):
    return [
        Problem(id=str(i), question=f"question {i}", answer="1", subject=subject, level=level)
        for i, (subject, level) in enumerate(kinds)
    ]


@given(kinds, st.data(), st.randoms())
def test_every_kind_has_its_share_whatever_the_order_of_the_file(kinds, data, random: Random):
    problems = problems_of(kinds)
    n = data.draw(st.integers(1, len(problems)))
    part = stratified_sample(problems, n, ("subject", "level"))
    assert len(part) == n
    whole, drawn = Counter(kinds), Counter((p.subject, p.level) for p in part)
    assert all(abs(drawn[kind] - n * of / len(problems)) <= 2 for kind, of in whole.items())
    assert [p for p in problems if p in part] == part
    smaller = stratified_sample(problems, data.draw(st.integers(1, n)), ("subject", "level"))
    assert {p.id for p in smaller} <= {p.id for p in part}
    mixed = random.sample(problems, len(problems))
    assert {p.id for p in stratified_sample(mixed, n, ("subject", "level"))} == {p.id for p in part}


@pytest.mark.skipif(not DATA, reason="REPRO_DATA is not set: the real test sets are NOT read")
@pytest.mark.parametrize(("name", "n"), [("math", 300), ("math500", 100), ("cmath", 200)])
def test_a_part_of_a_real_set_has_all_subjects_and_levels(name: str, n: int):
    benchmark = find_benchmark(name)
    whole, part = benchmark.load(Path(DATA or "")), benchmark.load(Path(DATA or ""), n)
    for attribute in benchmark.strata:
        every = Counter(getattr(p, attribute) for p in whole)
        drawn = Counter(getattr(p, attribute) for p in part)
        assert all(abs(drawn[x] - of * n / len(whole)) <= 4 for x, of in every.items())
        assert drawn.keys() == every.keys()
        assert attribute in (benchmark.describe_sample(n) or "")


@pytest.mark.parametrize("name", [n for n in BENCHMARKS if n.startswith("pocket")])
@pytest.mark.parametrize("n", [1, 36, 1000])
def test_the_first_problems_of_a_pocket_suite_are_of_all_kinds(name: str, n: int):
    """Recorded samples are of these; a grade of the Chinese suite has two kinds or three."""
    benchmark = find_benchmark(name)
    whole, part = benchmark.load(), benchmark.load(limit=n)
    assert part == whole[:n]
    assert (benchmark.describe_sample(n) is None) == (n >= benchmark.n)
    whole, part = (Counter(p.level for p in problems) for problems in (whole, part))
    for level, count in whole.items():
        assert n != 36 or abs(part[level] - count * n / benchmark.n) <= 4


def samples_of(benchmark, problems):
    return [
        Sample(
            benchmark=benchmark.name,
            id=p.id,
            sample=0,
            output=p.answer,
            tokens=0,
            truncated=False,
            extracted=p.answer,
            correct=True,
            rule="boxed",
            reason="equal",
        )
        for p in problems
    ]


def test_a_part_has_no_verdict_on_a_printed_number():
    benchmark = find_benchmark("pocket-math")
    printed = {"pocket-math": (99.9, 0.05)}
    whole = score(samples_of(benchmark, benchmark.load()), benchmark)
    part = score(samples_of(benchmark, benchmark.load(limit=999)), benchmark)
    assert "against" in as_rows(whole, printed)[0]
    assert "against" not in as_rows(part, printed)[0]
    assert (part[0].n, part[0].total) == (999, 1000)
    refuse_parts(printed, {"pocket-math": 1000})
    with pytest.raises(
        BadValue, match=r"covers all 1000 problems, but 999 are scored here, .* no verdict"
    ):
        refuse_parts(printed, {"pocket-math": 999})
