"""The grader of answers: an output and a reference in, a verdict out; no text is evaluated."""

from eval.grading.extraction import extract
from eval.grading.judge import GRADER_VERSION, grade, grade_many
from eval.grading.numerals import answer_key
from eval.grading.official import grade_officially
from eval.grading.paper_rules import grade_as_paper
from eval.grading.verdict import Extraction, Verdict

__all__ = [
    "GRADER_VERSION",
    "Extraction",
    "Verdict",
    "answer_key",
    "extract",
    "grade",
    "grade_as_paper",
    "grade_many",
    "grade_officially",
]
