"""What `repro check`, `plan` and `run` refuse of a paper's settings, by name."""

from dataclasses import replace

import pytest

from core.claims import START, Claim, score
from core.families.profiles import SCALES
from core.paper.registry import Entry
from core.run.order import run_order
from core.run.paper_problems import module_problems
from core.run.plan import make_plan
from core.run.request import Order
from core.settings.resolve import resolve
from eval.errors import ReproError
from papers.deepseekmath_grpo import PAPER

ENTRY = Entry(slug=PAPER.slug, module="papers.deepseekmath_grpo", distribution="repro-papers")


def paper(**changes):
    return replace(PAPER, **{"claims": ()} | changes)


def problems(**changes):
    return list(module_problems(ENTRY, paper(**changes)))


def at_cpu(**settings):
    """A profile that wins over that of the scale."""
    return {"profiles": {"cpu": settings}}


ONE = "arms clip and grpo come to one training: a claim would compare a run with itself; let an arm"
WRONG = {
    "equal arms": ({"arms": {"clip": {"epsilon": 0.3}, "grpo": {}}}, ONE),
    "a false alias": (
        {"arms": {"grpo": {}, "other": {"beta": 0.0, "same_as": "grpo"}}},
        "arms grpo and other are said to be one training, but differ in beta",
    ),
    "one twin of two": (
        at_cpu(twins=dict.fromkeys(PAPER.benchmarks, "pocket-math")),
        "benchmarks gsm8k and math are both scored on pocket-math",
    ),
    "no twin": ({"benchmarks": ("aime24",)}, "benchmark aime24 has no small twin at cpu"),
    "no such twin": (at_cpu(twins={"gsm8k": "pocket-gsm9k"}), "did you mean pocket-gsm8k"),
    "no such suite": ({"benchmarks": ("gsm9k",)}, "no benchmark 'gsm9k'"),
    "no such data": (at_cpu(data="pocket+dapo-math-18k"), "no training data 'dapo-math-18k'"),
    "no such mode": (at_cpu(eval_modes=("cot", "tri")), "no mode 'tri': did you mean tir"),
    "other data": (at_cpu(data="tldr"), "data=tldr has no column answer, which grpo trains on"),
    "no such reward": (at_cpu(rewards=("accuracy",)), "rewards=('accuracy',): expected tuple"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_meant_is_named_by_check_plan_and_run(what, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    changes, words = WRONG[what]
    found = [line for line in problems(**changes) if "at cpu" in line]
    assert len(found) == 1
    wrong = paper(**changes)
    assert words in found[0]
    for start in (
        lambda: make_plan(resolve(wrong), 0),
        lambda: run_order(Order(paper=wrong, arguments=("max_steps=2",))),
    ):
        with pytest.raises(ReproError) as error:
            start()
        assert words in str(error.value)
        assert "\n" not in str(error.value)


def test_a_problem_of_several_arms_is_one_line():
    (line,) = [line for line in problems(benchmarks=("gsm9k",)) if "at gpu" in line]
    assert line.startswith(f"arm {', '.join(PAPER.arms)} at gpu: ")


def test_an_alias_that_is_said_is_no_problem():
    said = {"clip": {"epsilon": 0.3, "same_as": "grpo"}, "grpo": {}}
    assert problems(arms=said) == []
    make_plan(resolve(paper(arms=said), arm="clip"), 0)


@pytest.mark.parametrize("scale", SCALES)
def test_arms_may_be_one_training_at_the_scales_that_say_so(scale):
    """A wider clip acts where the policy moves between two uses of a rollout: at paper scale."""
    twice = {
        "num_iterations": 2,
        "at": {"cpu": {"num_iterations": 1}, "gpu": {"num_iterations": 1}},
    }
    wide = {**twice, "epsilon": 0.3}
    silent = problems(arms={"twice": twice, "wide": wide})
    assert [f"at {scale}: arms twice and wide" in line for line in silent].count(True) == (
        scale != "paper"
    )
    told = {n: {"num_iterations": 1, "same_as": "twice"} for n in ("cpu", "gpu")}
    assert problems(arms={"twice": twice, "wide": {**wide, "at": told}}) == []


def test_runs_that_the_command_line_makes_equal_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    order = Order(paper=PAPER, arms=("grpo", "rft"), arguments=("advantage_estimator=group",))
    wide = {"grpo": {}, "low": {"learning_rate": 1e-6}}
    equal = replace(order, paper=paper(arms=wide), arms=tuple(wide), arguments=("learning_rate=1",))
    with pytest.raises(ReproError, match="arms grpo and low come to one training"):
        run_order(equal)


@pytest.mark.parametrize(("model", "found"), [("pocket-base", 1), ("pocket-instruct", 0)])
def test_a_claim_over_arms_that_begin_with_several_models_has_no_start(model, found):
    one, two, start = (score("gsm8k").of(name) for name in ("one", "two", START))
    tests = (one - start > two - start, two > start)
    named = {"one": {"beta": 0.1}, "two": {"at": {"cpu": {"model": model}}}}
    claims = tuple(Claim(f"claim-{n}", "More.", test) for n, test in enumerate(tests))
    lines = [x for x in problems(arms=named, claims=claims) if "at cpu" in x]
    assert len(lines) == found
    assert all(line.startswith("at cpu: claim claim-0 compares with the start") for line in lines)


def test_suites_of_the_command_line_need_no_twin():
    make_plan(resolve(PAPER, arguments=("twins={}", "benchmarks=('gsm8k',)")), 0)
