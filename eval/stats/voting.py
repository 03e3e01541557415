"""Counts answers as votes; answers of equal value count as one, however they are written."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from math import exp, fsum, inf, log
from statistics import fmean
from typing import Literal, TypeAlias

from eval.errors import BadValue
from eval.grading import answer_key, grade_many
from eval.grading.extraction import WHOLE
from eval.grading.numerals import read_number
from eval.samples.sealing import text_of
from eval.samples.store import Rated, Sample, Weighed
from eval.samples.transcripts import programs_run
from eval.stats.calibration import calibration_gaps
from eval.stats.estimates import Votes, best_of_k, maj_at_k, pass_at_k
from eval.stats.grams import distinct_share

Weighting: TypeAlias = Literal["prob", "norm"]
RIGHT = 0  # the label of every right answer; wrong ones are 1, 2, ... in the order of grouping


@dataclass(frozen=True)
class Ballots:
    """The samples of all problems as votes, a row for each problem in the order of drawing."""

    rows: Sequence[Sequence[Sample]]

    @cached_property
    def labels(self) -> list[list[int | None]]:
        """The group of each sample's answer within its problem; None without an answer."""
        return [
            [RIGHT if s.correct else group[key_of(s)] if s.extracted else None for s in row]
            for row, group in zip(self.rows, wrong_groups(self.rows), strict=True)
        ]

    @property
    def right_shares(self) -> list[float]:
        """The share of right samples of each problem."""
        return [sum(s.correct is True for s in row) / len(row) for row in self.rows]

    def passes(self, k: int) -> list[float]:
        """Return how often any k samples of each problem have a right one, see `pass_at_k`."""
        return [pass_at_k(len(row), sum(s.correct is True for s in row), k) for row in self.rows]

    def expected_votes(self, k: int, seed: int) -> list[float]:
        """Return each problem's expected vote among any k samples, shared by tied answers."""
        return [maj_at_k(tally(row), k, seed=seed) for row in self.labels]

    def distinct_right(self, k: int) -> list[float]:
        """Return each problem's expected number of different right answers among any k samples.

        Answers differ if their `key_of` does, so that a problem whose right answers are all equal
        has at most one.
        """
        return [
            sum(pass_at_k(len(row), count, k) for count in right_counts(row).values())
            for row in self.rows
        ]

    def distinct_grams(self, size: int) -> list[float]:
        """Return the share of different grams among those of each problem's samples.

        Raises:
            BadValue: a sample is stored without its text.
        """
        return [distinct_share(row, size) for row in self.rows]

    @property
    def output_shares(self) -> list[float]:
        """The share of each problem's samples that hold an output block of a program.

        Raises:
            BadValue: a sample is stored without its text.
        """
        return [fmean(programs_run(text_of(s))[0] > 0 for s in row) for row in self.rows]

    @property
    def calibration_gaps(self) -> list[float]:
        """The mean gap of each problem's samples, see `calibration_gaps`.

        Raises:
            BadValue: the samples have no log-probabilities.
        """
        chances = [[exp(logp) for logp in log_weights(row, "prob")] for row in self.rows]
        right = [[s.correct is True for s in row] for row in self.rows]
        return [fmean(gaps) for gaps in calibration_gaps(chances, right)]

    def first_votes(self, k: int) -> list[float]:
        """Return each problem's vote among its first k samples; the first of tied answers wins."""
        return [float(first_winner(row[:k]) == RIGHT) for row in self.labels]

    def weighted_votes(self, weighting: Weighting) -> list[float]:
        """Return each problem's vote of all its samples, weighted by their probabilities.

        Args:
            weighting: "prob" for the probability of a completion, "norm" for its geometric mean
                over the tokens (arXiv 2203.11171 s2).

        Raises:
            BadValue: the samples have no log-probabilities.
        """
        return [
            weighted_share(labels, log_weights(row, weighting))
            for labels, row in zip(self.labels, self.rows, strict=True)
        ]

    def best_rated(self, k: int) -> list[float]:
        """Return how often the highest rated of any k samples is correct, see `best_of_k`.

        Raises:
            BadValue: the samples have no ratings.
        """
        return [
            best_of_k(ratings_of(row), [s.correct is True for s in row], k) for row in self.rows
        ]

    def rated_votes(self) -> list[float]:
        """Return each problem's vote of all its samples, each with its rating as weight.

        Where no rating is above 0, every sample has the same weight.

        Raises:
            BadValue: the samples have no ratings, or one is below 0.
        """
        return [
            weighted_share(labels, log_ratings(row))
            for labels, row in zip(self.labels, self.rows, strict=True)
        ]

    def votes_of_best(self, count: int) -> list[float]:
        """Return each problem's vote among its highest rated samples, shared by tied answers.

        Of samples with equal ratings those that were drawn first are taken.

        Raises:
            BadValue: the samples have no ratings.
        """
        ratings = [ratings_of(row) for row in self.rows]
        return [
            maj_at_k(tally([labels[i] for i in best]), len(best))
            for labels, row in zip(self.labels, ratings, strict=True)
            for best in [sorted(range(len(row)), key=lambda i: -row[i])[:count]]
        ]

    @property
    def agreement(self) -> list[float]:
        """The share of each problem's samples that give its most frequent answer."""
        return [max(tally(row).counts, default=0) / len(row) for row in self.labels]

    def votes_of_half(self, k: int, seed: int, *, agreeing: bool) -> list[float]:
        """Return `expected_votes` of the half of the problems whose samples agree most, or least.

        Problems of equal agreement are halved in their order. Of an odd number of problems the
        middle one is in neither half.
        """
        order = sorted(range(len(self.rows)), key=self.agreement.__getitem__)
        half = len(order) // 2
        chosen = order[len(order) - half :] if agreeing else order[:half]
        return Ballots([self.rows[i] for i in sorted(chosen)]).expected_votes(k, seed)


def log_weights(samples: Sequence[Sample], weighting: Weighting) -> list[float]:
    """Return the log-probability of each sample, or its mean over the tokens ("norm"), in nats.

    Raises:
        BadValue: a sample has no log-probability.
    """
    logs: list[float] = []
    for sample in samples:
        if not isinstance(sample, Weighed):
            raise BadValue(
                f"sample {sample.sample} of {sample.id} has no log-probability: a weighted vote "
                "or a calibration error needs samples that an evaluation with such a metric stores"
            )
        logs.append(sample.logp / (max(1, sample.tokens) if weighting == "norm" else 1))
    return logs


def ratings_of(samples: Sequence[Sample]) -> list[float]:
    """Return the rating of each sample.

    Raises:
        BadValue: a sample has none.
    """
    ratings: list[float] = []
    for sample in samples:
        if not isinstance(sample, Rated):
            raise BadValue(
                f"sample {sample.sample} of {sample.id} has no rating: `repro score` reads ratings "
                "from the column rm_score"
            )
        ratings.append(sample.rm_score)
    return ratings


def log_ratings(samples: Sequence[Sample]) -> list[float]:
    """Return the logarithm of each sample's rating; 0 for all of them if no rating is above 0.

    Raises:
        BadValue: a sample has no rating, or one below 0.
    """
    ratings = ratings_of(samples)
    if min(ratings) < 0:
        raise BadValue(
            f"rm_score {min(ratings):g} of {samples[0].id}: a vote is weighted by numbers from 0 "
            "on, as probabilities are"
        )
    return [log(r) if r else -inf for r in ratings] if any(ratings) else [0.0] * len(ratings)


def weighted_share(labels: Sequence[int | None], logs: Sequence[float]) -> float:
    """Return the share of the right answer among those with the largest sum of weights.

    It is 1 or 0 unless answers tie, and 0 without any vote.

    Args:
        labels: the answer of each sample; None for a sample without one, which does not vote.
        logs: the logarithms of the samples' weights.
    """
    largest = max(logs, default=0.0)
    weights: dict[int, list[float]] = {}
    for label, log_weight in zip(labels, logs, strict=True):
        if label is not None:
            weights.setdefault(label, []).append(exp(log_weight - largest))
    sums = {label: fsum(parts) for label, parts in weights.items()}
    winners = [label for label in sums if sums[label] == max(sums.values())]
    return winners.count(RIGHT) / len(winners) if winners else 0.0


def key_of(sample: Sample) -> str:
    """Return a key that equal answers of one problem share; the text where whole outputs count."""
    text = sample.extracted or ""
    return text if sample.rule == WHOLE else answer_key(text)


def right_counts(samples: Sequence[Sample]) -> Counter[str]:
    """Return how many of a problem's samples give each right answer, by its key."""
    return Counter(key_of(sample) for sample in samples if sample.correct)


def wrong_answers(samples: Sequence[Sample]) -> dict[str, str]:
    """Return the wrong answers of a problem by their key."""
    return {key_of(s): s.extracted for s in samples if s.extracted and not s.correct}


def wrong_groups(rows: Sequence[Sequence[Sample]]) -> list[dict[str, int]]:
    """Number the groups of equal wrong answers of each problem from 1, by the key of an answer.

    Answers are compared by the grader, and as texts where whole outputs count.
    """
    answers = [wrong_answers(row) for row in rows]
    as_texts = [any(s.rule == WHOLE for s in row) for row in rows]
    compared = equal_groups(
        [{} if alone else texts for alone, texts in zip(as_texts, answers, strict=True)]
    )
    return [
        dict(zip(texts, count(1))) if alone else groups
        for alone, texts, groups in zip(as_texts, answers, compared, strict=True)
    ]


def tally(labels: Sequence[int | None]) -> Votes:
    """Count a problem's labels, the correct answer first, then in order of frequency."""
    counts = Counter(label for label in labels if label is not None)
    order = sorted(counts, key=lambda label: (label != RIGHT, -counts[label]))
    return Votes(
        tuple(counts[label] for label in order),
        tuple(label == RIGHT for label in order),
        sum(label is None for label in labels),
    )


def first_winner(labels: Sequence[int | None]) -> int | None:
    """Return the most frequent label, the first of tied ones; None without any vote."""
    counts = Counter(label for label in labels if label is not None)  # keeps first-seen order
    return max(counts, key=lambda label: counts[label], default=None)


def equal_groups(answers: Sequence[Mapping[str, str]]) -> list[dict[str, int]]:
    """Number the groups of equal answers of each problem from 1, given each answer's key and text.

    In each round the first ungrouped answer of every problem opens a group, and the problem's other
    ungrouped answers are compared with it, in one batch over all problems.
    """
    groups: list[dict[str, int]] = [{} for _ in answers]
    waiting = [list(row) for row in answers]
    while any(waiting):
        joined = equal_to_first(waiting, answers)
        for i, row in enumerate(waiting):
            number = 1 + max(groups[i].values(), default=0)
            members = [key for key in row if key == row[0] or (i, key) in joined]
            groups[i].update(dict.fromkeys(members, number))
            waiting[i] = [key for key in row if key not in groups[i]]
    return groups


def equal_to_first(
    keys: Sequence[Sequence[str]], answers: Sequence[Mapping[str, str]]
) -> set[tuple[int, str]]:
    """Return (problem, key) of each answer that equals the first answer of its problem."""
    pairs = [(i, row[0], key) for i, row in enumerate(keys) for key in row[1:]]
    equal = equal_pairs([(answers[i][a], answers[i][b]) for i, a, b in pairs])
    return {(i, b) for (i, _, b), is_equal in zip(pairs, equal, strict=True) if is_equal}


def equal_pairs(pairs: Sequence[tuple[str, str]]) -> list[bool]:
    """Return whether the grader finds the two answers of each pair equal.

    Two plain numbers are unequal here: plain numbers of equal value have equal keys and are never
    paired.
    """
    graded_pairs = [pair for pair in pairs if None in map(read_number, pair)]
    verdicts = grade_many(
        [rf"\boxed{{{b}}}" for _, b in graded_pairs], [a for a, _ in graded_pairs]
    )
    equal = {pair for pair, v in zip(graded_pairs, verdicts, strict=True) if v.correct}
    return [pair in equal for pair in pairs]
