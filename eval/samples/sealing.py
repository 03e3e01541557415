"""Samples without their texts: what came out of each, and enough to judge it again."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from eval.samples.forms import form_in
from eval.samples.store import Sample, Sealed, boxed_answer, regrade
from eval.sets.problem import Problem


def brief(sample: Sample) -> Sealed:
    """A sample whose text is the answer that was read from it, boxed; empty if there was none."""
    answer = replace(sample, output=boxed_answer(sample.extracted))
    return Sealed(**asdict(answer), form=form_in(sample))


def sealed(samples: Sequence[Sample], problems: Iterable[Problem], mode: str) -> list[Sealed]:
    """The samples in brief; a text stays of which its answer alone is judged otherwise."""
    short = [brief(sample) for sample in samples]
    again = regrade(short, problems, mode)
    return [
        one if one == fresh else replace(one, output=sample.output)
        for sample, one, fresh in zip(samples, short, again, strict=True)
    ]
