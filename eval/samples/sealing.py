"""Samples without their texts: outcomes, and answers that can be graded again."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from eval.errors import BadValue
from eval.grading.extraction import WHOLE
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


def text_of(sample: Sample) -> str:
    """Return the text of a sample; where whole outputs are compared, it is the answer.

    Raises:
        BadValue: the sample is stored without its text.
    """
    if sample.rule == WHOLE:
        return sample.extracted or ""
    if isinstance(sample, Sealed) and sample.output == boxed_answer(sample.extracted):
        raise BadValue(
            f"sample {sample.sample} of {sample.id} is stored without its text; evaluate the arm "
            "again with a metric or claim that reads texts"
        )
    return sample.output
