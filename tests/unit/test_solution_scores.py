"""Scores of solutions: what a vote, a weighted vote and the best of n choose, by enumeration."""

from dataclasses import asdict
from itertools import combinations, permutations
from statistics import fmean

import pytest
import torch
from run_records import run_record, written_again

from core.collect.own_solutions import judged_row
from core.families.family import ALONE, ENSEMBLE, of_one_model
from core.families.prm import ProcessRewardModels, SolutionScorers
from core.families.reward import RewardModels
from core.families.verifier import Verifiers
from core.losses.scoring import step_labels
from core.preparations.own_solutions import LABELS
from core.records.pair_files import pairs_digest, read_pairs, write_pairs
from core.records.places import own_results
from core.rewards import RightSums
from core.scoring.solution_quantities import (
    ORDER,
    SOLUTION_QUANTITIES,
    ScoredSolutions,
    best_of,
    best_vote,
    chances,
    clear_vote,
    elect,
    ensemble,
    ordered_pairs,
    overrated,
    overrated_by_chance,
    scored_solutions,
    solution_quantity,
    vote,
    weighted_vote,
)
from core.scoring.solutions import (
    GREEDY,
    MODELS,
    NO_ANSWER,
    SAMPLED,
    Solved,
    solution_columns,
)
from core.stages.pair_quantities import derive
from core.stages.probabilities import compare_quantities
from core.verdicts.derived_pairs import pair_problems
from eval.errors import BadValue
from eval.nano.running_sums import judge_sums, running_sums

PROBLEMS, SOLUTIONS = 6, 64
QUANTITIES = {*SOLUTION_QUANTITIES, *RewardModels.solution_quantities}


def some_columns(seed=0, per_problem=SOLUTIONS):
    """Columns of random solutions, of which those with higher scores are more often right."""
    draw = torch.Generator().manual_seed(seed)
    count = PROBLEMS * per_problem
    right = torch.rand(count, generator=draw) < 0.4
    sound = right & (torch.rand(count, generator=draw) < 0.8)
    wrong = torch.randint(1, 4, (count,), generator=draw)
    columns = {
        "problem": [place // per_problem for place in range(count)],
        "answer": torch.where(right, torch.zeros_like(wrong), wrong).tolist(),
        "is_answered": right.int().tolist(),
        "is_sound": sound.int().tolist(),
        "steps": [8] * count,
        "differing": torch.randint(0, 4, (count,), generator=draw).tolist(),
    }
    for model, weight in zip(MODELS, (0.0, 1.0), strict=True):
        score = torch.rand(count, generator=draw) + weight * right
        columns[f"{model}_score"] = score.tolist()
        for name in ("as_steps", "as_outcome"):
            columns[f"{model}_{name}"] = torch.randint(0, 9, (count,), generator=draw).tolist()
    return columns


def some_sets(seed=0):
    return {SAMPLED: some_columns(seed), GREEDY: some_columns(seed + 1, 1)}


def solutions_of(answers, scores, sound=None, per_step=1):
    """One problem's solutions, of which answer 0 is right."""
    answer = torch.tensor([answers])
    right = (answer == 0).double()
    ones = torch.ones_like(right) * per_step
    return ScoredSolutions(
        answer=answer.double(),
        is_answered=right,
        is_sound=right if sound is None else torch.tensor([sound]).double(),
        score=torch.tensor([scores], dtype=torch.float64),
        steps=ones,
        differing=0 * ones,
        as_steps=ones,
        as_outcome=ones,
        greedy=torch.ones(1).double(),
    )


def value(ratio):
    return (ratio.above.sum() / ratio.below.sum()).item()


def test_the_worked_examples_of_the_paper_come_out():
    logits = torch.tensor([[0.2, 1.1], [0.5, -0.3], [1.0, 1.2]], dtype=torch.float64)
    losses = step_labels(logits, torch.tensor([1, 0, 0]))
    assert losses.tolist() == pytest.approx([0.341154, 0.371101, 0.798139], abs=1e-6)
    assert losses.mean().item() == pytest.approx(0.503464, abs=1e-6)
    scores = [0.9, 0.8, 0.5, 0.4, 0.3]
    right = solutions_of([0, 0, 1, 1, 1], scores)  # 12 and 15
    assert value(vote(right, 5)) == 0
    assert value(weighted_vote(right, 5)) == 1
    for first in (0, 1):  # the solution of the highest score is shown
        sound = [float(place == first) for place in range(5)]
        election = elect(solutions_of([0, 0, 1, 1, 1], scores, sound), right.score, 5)
        assert election.wrong_trace.item() == float(first != 0)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_best_of_n_is_the_mean_over_all_subsets_and_equal_scores_share(n):
    answers, scores = [0, 1, 0, 2, 1, 0], [0.3, 0.7, 0.7, 0.1, 0.2, 0.7]
    chances = []
    for subset in combinations(range(6), n):
        highest = max(scores[place] for place in subset)
        tied = [answers[place] == 0 for place in subset if scores[place] == highest]
        chances.append(fmean(tied))
    assert value(best_of(solutions_of(answers, scores), n)) == pytest.approx(fmean(chances))


def test_best_of_more_solutions_than_there_are_is_refused():
    solutions = solutions_of([0, 1], [0.1, 0.2])
    for function in (best_of, vote, weighted_vote, best_vote):
        with pytest.raises(BadValue, match="3 of 2 solutions of each problem"):
            function(solutions, 3)


def test_equal_scores_choose_as_a_vote_does():
    solutions = scored_solutions(some_sets())
    equal = solutions._replace(score=torch.ones_like(solutions.score))
    assert torch.equal(weighted_vote(equal, 16).above, vote(equal, 16).above)
    for n in (1, 4, 64):
        assert value(best_of(equal, n)) == pytest.approx(equal.is_answered.mean().item())
    assert value(ordered_pairs(equal)) == 0.5


def test_a_perfect_score_finds_a_right_answer_wherever_there_is_one():
    solutions = scored_solutions(some_sets())
    perfect = solutions._replace(score=solutions.is_answered)
    assert value(ordered_pairs(perfect)) == 1
    assert value(best_of(perfect, 64)) == 1
    assert value(weighted_vote(perfect, 16)) == 1
    assert value(ordered_pairs(perfect._replace(score=-perfect.score))) == 0


def test_solutions_without_an_answer_do_not_vote():
    assert value(vote(solutions_of([NO_ANSWER, NO_ANSWER, 0], [0.9, 0.9, 0.1]), 3)) == 1
    assert value(vote(solutions_of([NO_ANSWER] * 3, [0.9, 0.9, 0.1]), 3)) == 0


def test_tied_answers_share_a_vote_and_the_best_five_outvote_the_rest():
    assert value(vote(solutions_of([0, 1, 0, 1], [0.1, 0.9, 0.1, 0.9]), 4)) == 0.5
    answers, scores = [0] * 3 + [1] * 2 + [2] * 6, [0.9] * 5 + [0.1] * 6
    assert value(vote(solutions_of(answers, scores), 11)) == 0
    assert value(best_vote(solutions_of(answers, scores), 11)) == 1


def test_problems_that_agree_most_are_answered():
    split, clear = [0, 1] * 32, [0] * 60 + [1] * 4
    parts = [solutions_of(split, [1.0] * 64)] * 3 + [solutions_of(clear, [1.0] * 64)] * 7
    solutions = ScoredSolutions(*(torch.cat(columns) for columns in zip(*parts, strict=True)))
    ratio = clear_vote(solutions, 16)
    assert ratio.below.tolist() == [0.0] * 3 + [1.0] * 7
    assert value(ratio) == 1


def test_shares_of_none_are_defined():
    wrong = solutions_of([1] * 64, [float(place) for place in range(64)])
    found = {name: solution_quantity(name, wrong).value for name in SOLUTION_QUANTITIES}
    assert found[ORDER] == 0.5
    assert found["solutions/trace_error"] == found["solutions/best_of_64"] == 0


def test_families_offer_every_quantity():
    for family in (ProcessRewardModels, Verifiers):
        assert family.solution_quantities == SolutionScorers.solution_quantities
        assert sorted(family.solution_quantities) == sorted(SOLUTION_QUANTITIES)
    assert {*map(of_one_model, RewardModels.solution_quantities)} < {*SOLUTION_QUANTITIES}


def test_different_numbers_of_solutions_are_refused():
    sets = some_sets()
    fewer = {name: values[:-1] for name, values in sets[SAMPLED].items()}
    with pytest.raises(BadValue, match="found different numbers"):
        scored_solutions({**sets, SAMPLED: fewer})


MEMBERS = (SAMPLED, f"{SAMPLED}/2", f"{SAMPLED}/3")


def members_sets(seed=0):
    """Sets of random solutions that three models score."""
    sets = some_sets(seed)
    others = [some_columns(seed + n) for n in (2, 3)]
    score = "trained_score"
    scored = [{**sets[SAMPLED], score: columns[score]} for columns in others]
    return sets | dict(zip(MEMBERS[1:], scored, strict=True))


def few_solutions(problems=3, total=6, seed=0):
    """Solutions with scores of which some are equal, and with every share of right steps."""
    draw = torch.Generator().manual_seed(seed)
    shape = (problems, total)
    right = torch.rand(shape, generator=draw) < 0.4
    differing = torch.randint(0, 9, shape, generator=draw)
    zeros = torch.zeros(shape, dtype=torch.float64)
    return ScoredSolutions(
        answer=zeros,
        is_answered=right.double(),
        is_sound=zeros,
        score=torch.randint(0, 4, shape, generator=draw).double(),
        steps=zeros + 8,
        differing=differing.double(),
        as_steps=zeros,
        as_outcome=zeros,
        greedy=torch.ones(problems).double(),
    )


def in_deviations(rows):
    centred = [[value - fmean(row) for value in row] for row in rows]
    deviation = fmean(value**2 for row in centred for value in row) ** 0.5
    return [[value / deviation for value in row] for row in centred]


@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_what_is_overrated_is_the_mean_over_all_subsets_and_equal_scores_share(n):
    solutions = few_solutions()
    scores, golds = (in_deviations(v.tolist()) for v in (solutions.score, solutions.gold))
    gaps, heights = [], []
    for score, gold in zip(scores, golds, strict=True):
        for subset in combinations(range(6), n):
            highest = max(score[place] for place in subset)
            best = [place for place in subset if score[place] == highest]
            gaps.append(fmean(score[place] - gold[place] for place in best))
            heights.append(highest)
    assert value(overrated(solutions, n)) == pytest.approx(fmean(gaps), abs=1e-12)
    assert value(overrated_by_chance(solutions, n)) == pytest.approx(fmean(heights), abs=1e-12)


def test_the_gold_is_the_share_of_right_steps():
    for solution, right in ((running_sums(QUESTION), 8), (changed(2, 0), 2), (changed(7, 0), 7)):
        verdict = judge_sums(QUESTION, solution)
        row = judged_row({}, "", solution, verdict, LABELS["steps"])
        columns = solution_columns([Solved(0, row, 0)], {"trained": [torch.ones(8)]})
        sets = {SAMPLED: columns, GREEDY: columns}
        assert scored_solutions(sets).gold.item() == right / 8
        prompt = [{"role": "user", "content": QUESTION}]
        answer = [{"role": "assistant", "content": solution}]
        assert RightSums()(prompts=[prompt], completions=[answer]) == [right / 8]


@pytest.mark.parametrize("n", [1, 2, 6])
def test_the_gold_itself_is_never_overrated_whatever_its_scale_and_offsets(n):
    solutions = few_solutions()
    offsets = torch.tensor([[0.0], [7.0], [-3.0]], dtype=torch.float64)
    exact = solutions._replace(score=3 * solutions.gold + offsets)
    assert value(overrated(exact, n)) == pytest.approx(0, abs=1e-12)
    moved = solutions._replace(score=3 * solutions.score + offsets)
    for measure in (overrated, overrated_by_chance):
        assert value(measure(moved, n)) == pytest.approx(value(measure(solutions, n)), abs=1e-12)
    assert value(overrated(solutions, 1)) == pytest.approx(0, abs=1e-12)


def test_chances_of_the_best_are_those_of_best_of_n():
    solutions = few_solutions()
    for n in (1, 2, 6):
        shares = (chances(solutions.score, n) * solutions.is_answered).sum(1)
        assert shares.tolist() == pytest.approx(best_of(solutions, n).above.tolist())


def test_by_chance_is_the_mean_over_all_orders_of_the_gold():
    solutions = few_solutions(problems=1, total=5)
    for n in (2, 5):
        gaps = [
            value(overrated(solutions._replace(differing=d, is_answered=a), n))
            for order in permutations(range(5))
            for d, a in [(solutions.differing[:, order], solutions.is_answered[:, order])]
        ]
        assert fmean(gaps) == pytest.approx(value(overrated_by_chance(solutions, n)))


def test_an_ensemble_scores_by_the_mean_of_standardised_scores():
    sets = members_sets()
    rows = [scored_solutions(sets, scored=name).score for name in MEMBERS]
    standard = torch.tensor([in_deviations(row.tolist()) for row in rows], dtype=torch.float64)
    found = ensemble(sets)
    assert torch.allclose(found.score, standard.mean(0))
    assert torch.equal(found.gold, scored_solutions(sets).gold)


def test_models_that_differ_in_scale_and_offsets_are_an_ensemble_like_one():
    sets = some_sets()
    columns = sets[SAMPLED]
    moved = [
        3 * score + 10 * problem
        for score, problem in zip(columns["trained_score"], columns["problem"], strict=True)
    ]
    both = {**sets, MEMBERS[1]: {**columns, "trained_score": moved}}
    for name in ("solutions/best_of_16", "solutions/overrated_of_16", ORDER):
        one, two = (
            derive(each, [name + ENSEMBLE])[name + ENSEMBLE]["value"] for each in (sets, both)
        )
        assert one == pytest.approx(two) == pytest.approx(derive(sets, [name])[name]["value"])
    assert not ensemble(both, at_start=True).score.equal(ensemble(both).score)


def test_models_alone_have_the_mean_of_their_quantities():
    sets = members_sets()
    for name in ("solutions/best_of_16", "solutions/overrated_of_16", ORDER):
        each = [
            solution_quantity(name, scored_solutions(sets, scored=member)).value
            for member in MEMBERS
        ]
        assert derive(sets, [name + ALONE])[name + ALONE]["value"] == pytest.approx(fmean(each))


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A stored run of a model of steps, with the quantities of its solutions."""
    folder = tmp_path_factory.mktemp("scored")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_ROOT", str(folder))
        path = folder / "pairs.parquet"
        write_pairs(path, members_sets())
        sets = read_pairs(path)
        assert {name: {*columns} for name, columns in sets.items()} == {
            name: {*columns} for name, columns in members_sets().items()
        }
        digest = pairs_digest(sets)
        write_pairs(own_results() / "samples" / f"{digest}.parquet", sets)
        changes = compare_quantities(
            *(derive(sets, QUANTITIES, at_start=at_start) for at_start in (True, False))
        )
        run = written_again(
            run_record(40, slug="prm", arm="prm"), pairs=digest, probabilities=changes
        )
        assert list(pair_problems(run)) == []
        yield run


@pytest.mark.parametrize("name", sorted(QUANTITIES))
def test_a_quantity_follows_from_the_stored_scores_and_a_forged_one_is_seen(record, name):
    quantity = record["probabilities"][name]
    forged = {**quantity, "after": quantity["after"] + 0.01}
    changes = {**record["probabilities"], name: forged}
    (line,) = pair_problems({**record, "probabilities": changes})
    assert f"{name}: is" in line


def test_start_and_trained_model_are_told_apart():
    sets = some_sets()
    start, trained = (scored_solutions(sets, at_start=at_start) for at_start in (True, False))
    assert torch.equal(start.answer, trained.answer)
    assert value(ordered_pairs(start)) < 0.6 < value(ordered_pairs(trained))
    assert asdict(solution_quantity(ORDER, trained))["n"] == PROBLEMS


QUESTION = "31415929="  # 3 4 8 9 4 3 5 4


def changed(place, digit):
    right = running_sums(QUESTION)
    return right[:place] + str(digit) + right[place + 1 :]


def test_a_step_is_right_until_the_first_error_and_the_answer_is_judged_apart():
    right = judge_sums(QUESTION, running_sums(QUESTION))
    assert running_sums(QUESTION) == "34894354"
    assert (right.is_right, right.is_answered) == ((True,) * 8, True)
    sound = judge_sums(QUESTION, changed(2, 0))
    assert (sound.is_right, sound.is_answered) == ((True,) * 2 + (False,) * 6, True)
    last = judge_sums(QUESTION, changed(7, 0))
    assert (last.is_right, last.is_answered, last.answer) == ((True,) * 7 + (False,), False, "0")


@pytest.mark.parametrize("solution", ["", "3489435", "348943544", "3489435.", "a4894354"])
def test_solutions_of_another_form_have_no_answer_and_a_wrong_end(solution):
    judged = judge_sums(QUESTION, solution)
    assert (judged.answer, judged.is_answered) == ("", False)
    assert not any(judged.is_right[-1:])
