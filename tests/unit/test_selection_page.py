"""The page of choosing among solutions: which scorers share samples, and what each chooses."""

import random
import re

import pytest
import torch

from core.pages.scored_policies import (
    OF_SAMPLES,
    Scorer,
    ordered_in_all,
    policy_of,
    same_samples,
    samples_digest,
    shared_seeds,
)
from core.pages.selection import PAGE, selection_files
from core.records.places import Shelf
from core.scoring.solution_quantities import best_vote, ordered_pairs, scored_solutions, vote
from core.scoring.solutions import GREEDY, SAMPLED

PROBLEMS, DRAWN = 5, 8


def stored(seed, scores):
    """Return the columns of a file of solutions, with the scores of one that scores them."""
    random.seed(seed)
    counts = {SAMPLED: DRAWN, GREEDY: 1}
    return {
        name: {
            "problem": [i for i in range(PROBLEMS) for _ in range(each)],
            "answer": [random.randrange(3) for _ in range(PROBLEMS * each)],
            "is_answered": [random.randrange(2) for _ in range(PROBLEMS * each)],
            "is_sound": [random.randrange(2) for _ in range(PROBLEMS * each)],
            **{c: [4] * PROBLEMS * each for c in ("steps", "differing")},
            **{f"trained_as_{kind}": [2] * PROBLEMS * each for kind in ("steps", "outcome")},
            "trained_score": scores(PROBLEMS * each),
        }
        for name, each in counts.items()
    }


def equal(count):
    return [0.5] * count


def coarse(count):
    return [random.Random(i).randrange(4) / 4 for i in range(count)]


def scorer(arm, seeds, scores=coarse):
    sets = {seed: stored(seed, scores) for seed in seeds}
    return Scorer(
        "paper",
        "paper/cpu/report",
        arm,
        "start",
        {seed: samples_digest(columns) for seed, columns in sets.items()},
        {seed: scored_solutions(columns) for seed, columns in sets.items()},
    )


def test_scores_do_not_tell_samples_apart_and_every_other_column_does():
    one, other = stored(1, equal), stored(1, coarse)
    assert samples_digest(one) == samples_digest(other)
    for name in (SAMPLED, GREEDY):
        for column in OF_SAMPLES:
            changed = {**one, name: {**one[name], column: [7, *one[name][column][1:]]}}
            assert samples_digest(changed) != samples_digest(one)


def test_scorers_are_compared_at_the_seeds_at_which_all_scored_the_same_solutions():
    many, few = scorer("many", (1, 2, 3)), scorer("few", (2, 3, 4), equal)
    alone = scorer("alone", (9,))
    assert [[one.arm for one in group] for group in same_samples([many, alone, few])] == [
        ["many", "few"],
        ["alone"],
    ]
    assert shared_seeds([many, few]) == (2, 3)
    assert policy_of([many, few]).seeds == (2, 3)


def test_equal_scores_choose_at_random_and_order_half_of_all_pairs():
    policy = policy_of([scorer("equal", (1, 2), equal)])
    within = policy.scorers[0]
    assert within.within.end == within.over_all.end == 50
    ways = {(row.way, row.scorer is None): row.cells for row in policy.rows}
    single = ways["pass@n", True][0].end
    assert {cells[0].end for cells in ways.values()} == {single}
    assert all(cell.end == pytest.approx(single) for cell in ways["best of n", False])
    votes = zip(ways["vote", True], ways["weighted vote", False], strict=True)
    assert all(plain.end == pytest.approx(weighted.end) for plain, weighted in votes)


def test_scores_below_zero_weigh_no_votes():
    rewards = scorer("rewards", (1,), lambda count: [score - 0.5 for score in coarse(count)])
    assert [*rewards.ways] == ["best of n", "vote of the best 5"]
    assert [*scorer("shares", (1,)).ways] == ["best of n", "weighted vote", "vote of the best 5"]


def test_pairs_over_all_problems_are_those_of_one_problem_with_all_solutions():
    solutions = scorer("one", (3,)).solutions[3]
    flat = type(solutions)(*(values.reshape(1, -1) for values in solutions))
    assert torch.equal(
        torch.cat(ordered_in_all(solutions)), torch.cat(ordered_pairs(flat)).to(torch.float64)
    )


def test_no_more_than_five_solutions_vote_as_all_do():
    solutions = scorer("one", (3,)).solutions[3]
    for n in (1, 2, 4):
        assert torch.equal(best_vote(solutions, n).above, vote(solutions, n).above)
    assert not torch.equal(best_vote(solutions, 8).above, vote(solutions, 8).above)


def test_the_published_page_shows_every_scorer_and_no_way_beats_the_oracle():
    files = selection_files("cpu", Shelf.PUBLISHED)
    page = files[f"{PAGE}.md"]
    assert {f"{PAGE}.md", f"{PAGE}.html", f"{PAGE}-0.svg"} <= files.keys()
    for name in ("prm", "prm: orm", "reward-centering: rated"):
        assert f"| {name} " in page
    policies = page.split("\n## ")[1:]
    assert len(policies) == len([name for name in files if name.endswith(".svg")])
    headings = [policy.partition("\n")[0] for policy in policies]
    anchors = re.findall(r'<h2 id="([^"]+)"', files[f"{PAGE}.html"])
    assert "Solutions of prepared:digits-start (gsm8k-verifiers, prm)" in headings
    assert len({*headings}) == len({*anchors}) == len(policies)
    for policy in policies:
        oracle, *others = [
            [float(cell) for cell in re.findall(r"\| +([\d.]+) \[", line)]
            for line in policy.splitlines()
            if re.search(r"\| (pass@n|vote|best of n|weighted vote) ", line)
        ]
        assert others
        for row in others:
            assert all(value <= most for value, most in zip(row, oracle, strict=True))
