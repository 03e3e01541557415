"""A seed is a whole replication: its own build of the start policy and its own test problems."""

from pathlib import Path

import pytest

from core.data.pocket_demonstrations import pocket_demonstrations
from core.families.worlds import POCKET
from core.models.builds import BUILDS, REPLICATIONS, SHIPPED, build_of, is_trained_here
from core.run.pocket import CAPABLE, FALLIBLE_BUILDS, config_of
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.verdicts.replications import number_of_starts, replicated_differences
from eval.pocket.suites import DRAWS, SUITES
from eval.sets.benchmarks import BENCHMARKS, find_benchmark
from papers.deepseekmath_grpo import PAPER


def chain(seed, *arguments):
    return Chain(resolve(PAPER, arguments=("at_k_benchmarks=0", *arguments)), seed)


@pytest.mark.parametrize("name", BUILDS)
def test_seeds_have_builds_of_their_own_and_then_take_the_shipped_ones_in_turn(name):
    builds, count = BUILDS[name], REPLICATIONS.get(name, 0)
    assert [build_of(name, seed) for seed in range(len(builds))] == list(builds)
    assert builds[0] == name
    assert set(builds) <= set(SHIPPED)
    own = [build_of(name, seed) for seed in range(count)]
    assert len({*own}) == len(own)
    assert [is_trained_here(name, s) for s in range(count)] == [b not in SHIPPED for b in own]
    later = range(count, count + 2 * len(builds))
    assert [build_of(name, seed) for seed in later] == [builds[s % len(builds)] for s in later]


SHIPPING = (
    "output_dir",
    "disable_tqdm",
    "run_name",
    "save_strategy",
    "save_steps",
    "save_total_limit",
)


@pytest.mark.parametrize("name", ["pocket-capable", "pocket-instruct"])
def test_a_build_is_trained_like_the_shipped_ones(name):
    (recipe,) = [r for r in (CAPABLE[1], FALLIBLE_BUILDS[0]) if name.endswith(r.name)]
    training = resolve(POCKET.starts, arm=name)
    place = {"output_dir": Path("runs"), "use_cpu": True, "bf16": False}
    ours = training.build(seed=recipe.seed, **place).to_dict()
    shipped = config_of(recipe, Path("runs")).to_dict()
    assert [key for key in ours if ours[key] != shipped[key] and key not in SHIPPING] == []
    (rows,) = training.sets
    expected = pocket_demonstrations(recipe.suites, recipe.styles, 5)
    assert rows.for_seed(5).source.rows(rows.name, "train", None) == expected
    assert rows.n == len(expected)


def test_the_seeds_of_a_look_train_their_builds_once_and_from_one_model():
    runs = [chain(seed) for seed in (3, 4)]
    trainings = [[s.key for s in run.preparations if s.name == "train"] for run in runs]
    (capable, third), (same, fourth) = trainings
    assert capable == same
    assert third != fourth
    assert [run.start.chosen.trained.key for run in runs] == [third, fourth]
    other_arm = Chain(resolve(PAPER, arm="rft"), 3)
    assert other_arm.start.key == runs[0].start.key
    assert [run.pretrained for run in runs] == ["pocket-instruct"] * 2
    assert runs[0].start.chosen.build == {"build": "pocket-instruct-3"}


def test_a_model_of_the_hub_is_the_same_for_every_seed():
    assert {build_of("Qwen/Qwen2.5-0.5B-Instruct", seed) for seed in range(5)} == {
        "Qwen/Qwen2.5-0.5B-Instruct"
    }


def test_a_run_begins_with_its_build_and_is_scored_on_its_draw():
    for seed in range(4):
        run = chain(seed)
        assert run.start.subject == build_of("pocket-instruct", seed)
        assert {stage.question.draw for stage in run.evaluations(run.start)} == {seed}


def test_keys_hold_build_and_draw_as_far_as_they_act():
    """Seeds 9 and 12 begin with one build and are asked other problems."""
    nine, twelve = chain(9), chain(12)
    assert nine.start.key == twelve.start.key != chain(10).start.key
    keys = [{s.key for s in run.evaluations(run.start)} for run in (nine, twelve)]
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
    assert number_of_starts(cases_with("x", "y")) == REPLICATIONS["pocket-instruct"]
    for name in ("pocket-base", "prepared:choice-start", "Qwen/Qwen2.5-0.5B-Instruct"):
        assert number_of_starts(cases_with("x", "y", name=name)) is None
