"""Laws over the collection: what holds of every paper that is registered."""

import re
from collections import defaultdict
from dataclasses import replace
from functools import cache

import pytest

from core.claims import Comparison, Untestable
from core.claims.claim import MECHANISMS
from core.data.generated_sets import nano_demonstrations
from core.data.sets import SETS
from core.families.profiles import SCALES
from core.families.regimes import PREPARATIONS
from core.families.table import find_family
from core.families.worlds import WORLDS
from core.pages.printed import passages, printed_table
from core.pages.render import render_outcome
from core.paper.registry import entries
from core.records.record import read_records
from core.run.order import run_order
from core.run.paper_problems import module_problems
from core.run.plan import make_plan
from core.run.request import Order
from core.settings import refusals
from core.settings.canonical import canonical_text
from core.settings.effective import effective
from core.settings.layers import arguments_of, readable
from core.settings.resolve import config_fields, resolve
from core.stages.chain import Chain
from core.verdicts.verdict_records import without_runs
from eval.errors import BadValue
from eval.nano.many import any_summands
from eval.nano.splits import TASKS
from eval.nano.task import Demonstrations
from eval.tables import render

FORMATS = ("md", "latex", "html", "csv")
# Worlds, and starting models of others, that are trained to their end.
WHOLE = {"pocket", "choice", "digits", "grammar", "length-start"}
SHORT = ("max_steps=2", "heldout_problems=2", "heldout_every=2")


SINGLE_POINTS = re.compile(r"\b(largest|fluctuation|drawdown|\w+_to)\(|\bwhen\(")
# Claims over runs that read a maximum, a deviation or a first crossing of single points. Means of a
# curve scatter less: no claim joins this list.
BY_SINGLE_POINTS = {
    "dr-grpo": {"token-efficiency"},
    "gmpo": {"gradient-steadier"},
    "sapo": {"temperature-order"},
    "scalerl": {"truncation-instability"},
    "skywork-or1": {"offpolicy-collapse", "multistage-cheaper"},
}


@pytest.fixture(params=entries().values(), ids=lambda entry: entry.slug)
def entry(request):
    """Each registered paper in turn."""
    return request.param


def test_it_has_no_problems(entry):
    assert list(module_problems(entry, entry.load())) == []


def test_no_further_claim_reads_single_points_of_a_curve(entry):
    tests = {claim.slug: claim.test for claim in entry.load().claims}
    by_runs = {
        slug: str(test)
        for slug, test in tests.items()
        if isinstance(test, Comparison) and test.kind == "runs"
    }
    found = {slug for slug, text in by_runs.items() if SINGLE_POINTS.search(text)}
    assert found <= BY_SINGLE_POINTS.get(entry.slug, set())


@pytest.mark.parametrize("scale", SCALES)
def test_every_arm_is_planned_at_every_scale(entry, scale, monkeypatch):
    paper = entry.load()
    compared = refusals.equal_arms(paper, scale)  # once, not in the plan of each arm
    monkeypatch.setattr(refusals, "equal_arms", lambda *_: compared)
    for arm in paper.arms or (paper.main_arm,):
        if not paper.exists_at(arm, scale):
            with pytest.raises(BadValue, match="alone, not at"):
                resolve(paper, arm=arm, scale=scale)
            continue
        plan = make_plan(resolve(paper, arm=arm, scale=scale), 0)
        stages = [stage.name for stage, _ in plan.stages]
        family = find_family(paper.family_of(arm))
        assert ("train" in stages) == family.trains
        assert ("eval" in stages) == is_scored(paper, arm, scale)


def test_its_printed_tables_hold_every_printed_number_in_every_format(entry):
    paper = entry.load()
    shown = 0
    for passage in passages(paper):
        table = printed_table(paper, passage)
        assert all(render(table, form) for form in FORMATS)
        rows = [row for block in table.blocks for part in block.sections for row in part.rows]
        shown += sum(cell is not None for row in rows for cell in row.cells)
    assert shown == len(paper.reported)


def test_its_claims_without_runs_have_verdicts_and_the_others_say_what_they_need(entry):
    paper = entry.load()
    verdicts = without_runs(paper, read_records(paper.slug))
    assert [verdict["id"] for verdict in verdicts] == [claim.slug for claim in paper.claims]
    for claim, verdict in zip(paper.claims, verdicts, strict=True):
        if isinstance(claim.test, Untestable):
            assert verdict["verdict"] == "untestable"
        else:
            is_open = verdict["verdict"] == "undecided"
            if claim.needs:
                assert is_open, verdict
            elif claim.test.kind == "exact":
                assert not is_open, verdict
        assert verdict["reason"]


def test_its_claims_over_runs_name_a_mechanism_by_which_pages_group_them(entry):
    tests = {claim: claim.test for claim in entry.load().claims}
    over_runs = [
        c for c, test in tests.items() if isinstance(test, Comparison) and test.kind == "runs"
    ]
    assert all(claim.mechanism in MECHANISMS for claim in over_runs)


def held_out_of(data):
    """Where the rows come from that a training holds out."""
    if not data.holds_out:
        return data.key
    made = [data.row_stages.get(one.name) for one in data.sets]
    names = ["+".join(one.source.benchmarks) or one.name for one in data.sets]
    return "+".join(held_out_of(m.data) if m else n for m, n in zip(made, names, strict=True))


def test_held_out_accuracies_that_a_claim_compares_are_on_the_same_problems(entry):
    paper = entry.load()
    for claim in paper.claims:
        read = [(of, need.name) for of, need in claim.needs if need.kind == "curve"]
        arms = {of for of, name in read if of in paper.arms and name.startswith("held_out/")}
        chains = [Chain(resolve(paper, arm=arm)) for arm in sorted(arms)]
        problems = {(held_out_of(c.data), c.resolved.run.heldout_problems) for c in chains}
        assert len(problems) <= 1, claim.slug


def kind(value):
    """Settings with only the sign of each number, so that equal kinds take the same ways."""
    if isinstance(value, dict):
        return {name: kind(item) for name, item in value.items()}
    if isinstance(value, list):
        return [kind(item) for item in value]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (value > 0) - (value < 0) if number else value


def curves_read(paper, arm):
    """The curves of an arm that the claims of a paper read."""
    needs = [need for claim in paper.claims for of, need in claim.needs if of == arm]
    return {need.name for need in needs if need.kind == "curve"}


@cache
def arms_run():
    """By paper the main arm, or the claimed arms that run what no paper before it has run.

    These have settings of another kind, or claims read other curves of their family.
    """
    kinds, read, chosen = set(), defaultdict(set), {}
    for entry in entries().values():
        paper = entry.load()
        new = []
        for arm in () if paper.not_run else paper.claimed_arms("cpu"):
            settings = effective(resolve(paper, arm=arm))
            curves = curves_read(paper, arm)
            if canonical_text(kind(settings)) not in kinds or curves - read[settings["family"]]:
                new.append(arm)
            kinds.add(canonical_text(kind(settings)))
            read[settings["family"]] |= curves
        chosen[entry.slug] = tuple(new) or (paper.main_arm,)
    return chosen


def shortened(paper):
    """A paper whose preparations sample for few prompts or train for two steps.

    Filters keep all prompts: a start of two steps is seldom right.
    """

    def short(own):
        fields = config_fields(own.get("family", paper.family))
        samples = "num_prompts" in fields
        # of the prompts of a nano world half may be left out, and a rollout has 512
        prompts = 1200 if own.get("per_seed") else 220
        few = {"num_prompts": prompts, "num_generations": 4} if samples else {"max_steps": 2}
        few |= {"rate_above": -1.0, "rate_at_most": 1.0} if "rate_above" in fields else {}
        at = own.get("at", {})
        few |= {"num_accepted": 2} if "rejection_beta" in at.get("cpu", {}) else {}
        return {**own, "at": {**at, "cpu": {**at.get("cpu", {}), **few}}}

    prepared = {**PREPARATIONS, **paper.preparations}
    return replace(paper, preparations={name: short(own) for name, own in prepared.items()})


def is_scored(paper, arm, scale="cpu"):
    """Whether the models of an arm answer benchmarks: the paper's, or those of its regime."""
    has_benchmarks = bool(resolve(paper, arm=arm, scale=scale).run.benchmarks)
    return has_benchmarks and "benchmarks" not in find_family(paper.family_of(arm)).unused


def brief(paper, arms):
    """The settings of a short run that an arm reads."""
    scored = ("eval_limit=2", "eval_max_tokens=24", "at_k_limit=2", "at_k_samples=2")
    chosen_of_many = any(find_family(paper.family_of(arm)).solution_quantities for arm in arms)
    settings = (*(scored if paper.benchmarks else ()), *SHORT, "max_completion_length=24")
    names = frozenset().union(*(readable(paper.family_of(arm)) for arm in arms))
    if chosen_of_many:  # among 64 solutions
        names -= {"at_k_samples", "eval_max_tokens"}
    return tuple(text for text in settings if text.partition("=")[0] in names)


def distinct(paper, arms, arguments):
    """The first arm of each training that is still another one under these arguments."""
    trained = {}
    for arm in arms:
        own = arguments_of(paper, arm, arguments, arms)
        settings = effective(resolve(paper, arm=arm, arguments=own))
        trained.setdefault(canonical_text(settings), arm)
    return tuple(trained.values())


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder in which stages that papers share are done once, as they are for a user."""
    return tmp_path_factory.mktemp("papers")


@pytest.fixture
def short_starts(monkeypatch):
    """Starting models and teachers of the nano worlds after two steps.

    Those in `WHOLE` are trained to their end: papers filter by what they solve.
    """
    few = {"max_steps": 2, "heldout_every": 2, "heldout_problems": 2}
    for name, world in WORLDS.items():
        starts = {
            start: {**own, **few, **({"heldout_target": 0.0} if "heldout_target" in own else {})}
            for start, own in world.preparations.items()
            if "max_steps" in own and not {name, start} & WHOLE
        }
        shorter = replace(world, preparations={**world.preparations, **starts})
        monkeypatch.setitem(WORLDS, name, shorter)
    digits = WORLDS["digits"]
    solved = {**digits.preparations["digits-many-solutions"], "num_prompts": 40}
    fewer = {**digits.preparations, "digits-many-solutions": solved}
    monkeypatch.setitem(WORLDS, "digits", replace(digits, preparations=fewer))
    few_demonstrations = {"demonstrations": Demonstrations(600, any_summands)}
    monkeypatch.setattr(TASKS["nano-many"], "demonstrations", few_demonstrations)
    demonstrations = nano_demonstrations(TASKS["nano-many"], "demonstrations")
    monkeypatch.setitem(SETS, demonstrations.name, demonstrations)


@pytest.mark.usefixtures("few_worked", "short_starts")
@pytest.mark.long
def test_it_runs_through_all_stages_to_its_page(entry, root, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(root))
    paper = shortened(entry.load())
    if paper.not_run:
        with pytest.raises(BadValue, match=paper.not_run):
            run_order(Order(paper=paper))
        return
    arms = arms_run()[entry.slug]
    few = brief(paper, arms)
    arms = distinct(paper, arms, few)  # a short limit makes one regime of two
    outcome = run_order(Order(paper=paper, arms=arms, arguments=few))
    assert {run["arm"] for run in outcome.runs} == set(arms)
    assert all(bool(run["scores"]) == is_scored(paper, run["arm"]) for run in outcome.runs)
    assert len(outcome.verdicts) == len(paper.claims)
    shown = render_outcome(paper, outcome)
    assert paper.title in shown.path.read_text().replace("\\*", "*")
