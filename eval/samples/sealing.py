"""Samples without their texts: outcomes, and answers that can be graded again."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from eval.samples.forms import form_in
from eval.samples.store import Sample, Sealed, boxed_answer, regrade
from eval.sets.problem import Problem


def brief(sample: Sample) -> Sealed:
    """Return a sample with its extracted answer in a box as output, empty if it has none."""
    answer = replace(sample, output=boxed_answer(sample.extracted))
    return Sealed(**asdict(answer), form=form_in(sample))


def seal_samples(samples: Sequence[Sample], problems: Iterable[Problem], mode: str) -> list[Sealed]:
    """Return the samples without texts, except texts whose boxed answer is graded otherwise."""
    short = [brief(sample) for sample in samples]
    again = regrade(short, problems, mode)
    return [
        sample_in_brief
        if sample_in_brief == fresh
        else replace(sample_in_brief, output=sample.output)
        for sample, sample_in_brief, fresh in zip(samples, short, again, strict=True)
    ]
