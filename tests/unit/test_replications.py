"""A seed is a whole replication: its own build of the start policy and its own test problems."""

import pytest

from core.models.builds import BUILDS, SHIPPED, build_of
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.verdicts.replications import number_of_starts, replicated_differences
from eval.pocket.suites import DRAWS, SUITES
from eval.sets.benchmarks import BENCHMARKS, find_benchmark
from papers.deepseekmath_grpo import PAPER


def chain(seed, *arguments):
    return Chain(resolve(PAPER, arguments=("at_k_benchmarks=0", *arguments)), seed)


@pytest.mark.parametrize("name", BUILDS)
def test_seeds_take_the_builds_of_a_model_in_turn(name):
    builds = BUILDS[name]
    taken = [build_of(name, seed) for seed in range(2 * len(builds))]
    assert taken == list(builds) * 2
    assert taken[0] == name
    assert set(builds) <= set(SHIPPED)


def test_a_model_of_the_hub_is_the_same_for_every_seed():
    assert {build_of("Qwen/Qwen2.5-0.5B-Instruct", seed) for seed in range(5)} == {
        "Qwen/Qwen2.5-0.5B-Instruct"
    }


def test_a_run_begins_with_its_build_and_is_scored_on_its_draw():
    for seed in range(4):
        run = chain(seed)
        assert run.start.model == BUILDS["pocket-instruct"][seed % 3]
        assert {stage.question.draw for stage in run.evaluations(run.start)} == {seed}


def test_keys_hold_build_and_draw_as_far_as_they_act():
    """Seeds 0 and 3 begin with one build and are asked other problems."""
    zero, three = chain(0), chain(3)
    assert zero.start.key == three.start.key != chain(1).start.key
    keys = [{s.key for s in run.evaluations(run.start)} for run in (zero, three)]
    assert not keys[0] & keys[1]
    plain = [chain(seed, "model=pocket-teacher") for seed in (0, DRAWS)]
    assert plain[0].start.key == plain[1].start.key
    keys = [{s.key for s in run.evaluations(run.start)} for run in plain]
    assert keys[0] == keys[1]


@pytest.mark.parametrize("suite", SUITES)
def test_a_draw_has_problems_of_its_own_and_draw_0_is_the_published_one(suite):
    published, third = find_benchmark(suite), find_benchmark(suite, draw=3)
    assert published == BENCHMARKS[suite]
    assert published.load(limit=50) == BENCHMARKS[suite].load(limit=50)
    if suite == "pocket-math":
        ids = [{problem.id for problem in one.load()} for one in (published, third)]
        assert not ids[0] & ids[1]
        assert len(third.load()) == third.n
    assert published.draw_of(DRAWS + 3) == 3


def test_a_published_benchmark_has_no_draws():
    assert find_benchmark("gsm8k", draw=3) == find_benchmark("gsm8k")


def cases_with(*starts, name="pocket-instruct"):
    """The records of two arms for each seed, which start from the model of a digest."""
    return [
        {arm: {"start_model": name, "model": {"digest": start}} for arm in ("a", "b")}
        for start in starts
    ]


@pytest.mark.parametrize(
    ("starts", "replications"),
    [
        ("xyz", [4.0, 1.0, 1.0]),
        ("xyx", [2.5, 1.0]),
        ("xxx", [4.0, 1.0, 1.0]),  # the claim is about this one start
        ("", [4.0, 1.0, 1.0]),  # a simulation
    ],
)
def test_seeds_with_one_start_are_one_replication(starts, replications):
    differences = replicated_differences([5.0, 2.0, 3.0], [1.0, 1.0, 2.0], cases_with(*starts))
    assert differences == replications


def test_arms_with_other_starts_are_apart():
    cases = cases_with("x", "x", "x")
    cases[1]["b"] = {"model": {"digest": "y"}}
    assert replicated_differences([5.0, 2.0, 3.0], [1.0, 1.0, 2.0], cases) == [2.5, 1.0]


def test_further_seeds_take_the_builds_of_the_start():
    assert number_of_starts(cases_with("x", "y")) == len(BUILDS["pocket-instruct"])
    for name in ("pocket-base", "prepared:choice-start", "Qwen/Qwen2.5-0.5B-Instruct"):
        assert number_of_starts(cases_with("x", "y", name=name)) is None
