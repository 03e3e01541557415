"""Words for the comparison of two algorithms on a probe, with their marks and meanings."""

from collections.abc import Mapping

from eval.tables.verdict_words import CIRCLE, VerdictWord

ALIKE, BETTER, WORSE, NO_SCORE = "alike", "better", "worse", "no score"
PROBE_WORDS: Mapping[str, VerdictWord] = {
    BETTER: VerdictWord("the 95 % interval lies above 0", CIRCLE, decided=True),
    WORSE: VerdictWord("the 95 % interval lies below 0", "M-5-5h10v10h-10z", decided=True),
    ALIKE: VerdictWord("the interval contains 0", CIRCLE),
    NO_SCORE: VerdictWord("the probe cannot be read for this algorithm"),
}
