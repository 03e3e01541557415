"""Reproducing a family: what is soonest judged first, and nothing again that records tell."""

import shutil
from dataclasses import replace

import pytest

from core.claims import Claim, late
from core.families.table import FAMILIES, listed_families
from core.pages.families import family_files
from core.paper.registry import entries, find_paper
from core.records.places import Shelf, record_files, results
from core.records.record import latest, read_records, standard
from core.records.schema import claims_of, runs_of, tunings_of
from core.run.reproduce import (
    Reproduced,
    count_missing,
    first_runs,
    is_judged,
    reproduce,
    run_orders,
    whole_order,
)
from core.run.units import all_done
from core.verdicts.up_to_date import recorded_runs
from core.verdicts.verdict_records import verdicts_record
from eval.errors import UnknownName
from eval.stats.seeds import LOOKS
from papers.bema import PAPER as BEMA
from papers.deepseekmath_grpo import PAPER as DEEPSEEKMATH
from papers.dr_grpo import PAPER as DR_GRPO
from papers.sapo import PAPER as SAPO


def paper(slug, arms):
    """A small paper whose one claim compares all of its arms with the first."""
    first, *others = arms
    claims = tuple(
        Claim(f"{first}-{other}", "More.", late("reward").of(first) > late("reward").of(other))
        for other in others
    )
    return replace(DR_GRPO, slug=slug, arms=arms, claims=claims, reported=())


ALPHA = paper("alpha", {"alone": {"temperature": 0.5}, "plain": {"beta": 0.1}})
BETA = paper("beta", {"base": {"beta": 0.1}, "wide": {"epsilon": 0.3, "beta": 0.2}})


OTHER = Claim(
    DEEPSEEKMATH.claims[0].slug, "More.", late("reward").of("grpo") > late("reward").of("rft")
)


UNHEARD = Claim("unheard", "More.", late("unheard").of("rft") > late("reward").of("grpo"))


def recorded_papers():
    return [slug for slug in entries() if record_files(slug)]


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    return tmp_path


def test_two_papers_whose_arms_come_to_one_training_share_its_stage(root):  # noqa: ARG001
    orders = [whole_order(one, "cpu", 1, 1) for one in (ALPHA, BETA)]
    keys = [{(c.resolved.arm, c.seed): c.train.key for c in first_runs(one)} for one in orders]
    for seed in range(3):
        assert keys[0]["plain", seed] == keys[1]["base", seed]
        assert len({keys[0]["alone", seed], keys[0]["plain", seed], keys[1]["wide", seed]}) == 3


def test_it_is_the_turn_of_the_paper_with_the_fewest_runs_left(root, monkeypatch):  # noqa: ARG001
    orders = [whole_order(one, "cpu", 1, 1) for one in (ALPHA, BETA)]
    done = [one for one in first_runs(orders[1]) if one.resolved.arm == "wide"]
    mark_done(done)
    assert [count_missing(order) for order in orders] == [6, 3]
    came = []

    def run(order):
        came.append(order.paper.slug)
        mark_done(first_runs(order))

    monkeypatch.setattr("core.run.reproduce.run_order", run)
    assert [found.slug for found in run_orders(orders)] == ["beta", "alpha"] == came
    assert [count_missing(order) for order in orders] == [0, 0]


def mark_done(runs):
    """Leave the trace of finished stages."""
    for chain in runs:
        for stage in chain.own_stages:
            stage.folder.mkdir(parents=True, exist_ok=True)
            (stage.folder / "done.json").write_text("{}")


def test_a_training_done_for_one_paper_is_not_left_of_another(root):  # noqa: ARG001
    orders = [whole_order(one, "cpu", 1, 1) for one in (ALPHA, BETA)]
    chain = next(one for one in first_runs(orders[0]) if one.resolved.arm == "plain")
    mark_done([chain])
    assert all_done(chain.own_stages)
    assert [count_missing(order) for order in orders] == [5, 5]


@pytest.mark.parametrize(("seeds", "look", "done"), [(3, 1, True), (3, 2, False), (5, 2, True)])
def test_an_undecided_claim_is_left_until_it_has_the_seeds_of_the_look(
    monkeypatch, seeds, look, done
):
    runs = runs_of(standard(latest(read_records(DEEPSEEKMATH.slug))), "cpu")
    tunings = tunings_of(standard(latest(read_records(DEEPSEEKMATH.slug))), "cpu")
    few = [run for run in runs if run["seed"] < seeds]
    shown = verdicts_record(DEEPSEEKMATH, "cpu", few, LOOKS, tunings)
    monkeypatch.setattr("core.run.reproduce.claims_of", lambda *_: [shown])
    assert is_judged(DEEPSEEKMATH, "cpu", look) == done


@pytest.mark.parametrize(
    ("seeds", "look", "done"), [(4, 1, True), (4, 2, False), (8, 2, True), (8, 3, False)]
)
def test_a_claim_of_a_nano_world_is_left_until_it_has_the_seeds_of_its_world(
    monkeypatch, seeds, look, done
):
    records = standard(latest(read_records(SAPO.slug)))
    few = [run for run in runs_of(records, "cpu") if run["seed"] < 20 + seeds]
    shown = verdicts_record(SAPO, "cpu", few, LOOKS, tunings_of(records, "cpu"))
    monkeypatch.setattr("core.run.reproduce.claims_of", lambda *_: [shown])
    assert is_judged(SAPO, "cpu", look) == done


def test_a_clone_with_records_judges_them_again_and_runs_nothing(tmp_path, monkeypatch):
    slug = DEEPSEEKMATH.slug
    for folder in (slug, "samples"):
        shutil.copytree(results() / folder, tmp_path / "results" / folder)
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    assert is_judged(DEEPSEEKMATH, "cpu", len(LOOKS))
    assert list(reproduce([DEEPSEEKMATH], looks=len(LOOKS))) == []
    assert not list((tmp_path / "runs").glob("train-*"))
    page = family_files("grpo", [DEEPSEEKMATH, ALPHA], "cpu", Shelf.HERE)["grpo.md"]
    assert all(claim.statement.split(",")[0] in page for claim in DEEPSEEKMATH.claims)
    assert "[alpha](../alpha/cpu/report.md)" in page


def test_runs_that_records_tell_of_are_not_run_again_for_new_verdicts(tmp_path, monkeypatch):
    slug = DEEPSEEKMATH.slug
    for folder in (slug, "samples"):
        shutil.copytree(results() / folder, tmp_path / "results" / folder)
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    verdicts = {one["id"]: one["verdict"] for one in claims_record()["verdicts"]}
    for record in read_records(slug):
        if record["kind"] == "claims":
            (results() / slug / f"{record['digest']}.json").unlink()
    assert not is_judged(DEEPSEEKMATH, "cpu", 1)
    assert count_missing(whole_order(DEEPSEEKMATH, "cpu", 1, 1)) == 0
    monkeypatch.setattr("core.run.units.run_units", pytest.fail)
    monkeypatch.setattr("core.run.units.run_chain", pytest.fail)
    assert {*reproduce([DEEPSEEKMATH])} == {Reproduced(slug)}
    assert {one["id"]: one["verdict"] for one in claims_record()["verdicts"]} == verdicts


@pytest.mark.parametrize("slug", recorded_papers())
def test_what_is_published_is_only_judged_again(slug):
    """Also where a claim missed a gate on the trial seed, so that its arms have no runs."""
    published = claims_of(standard(read_records(slug)), "cpu")
    assert not published or is_judged(find_paper(slug), "cpu", len(LOOKS))


def test_a_paper_whose_claims_compare_no_runs_has_nothing_to_run():
    laws = tuple(claim for claim in BEMA.claims if not claim.arms)
    assert list(reproduce([replace(BEMA, claims=laws)])) == []


def claims_record():
    """The verdicts that are shown."""
    return claims_of(standard(read_records(DEEPSEEKMATH.slug)), "cpu")[0]


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        (replace(DEEPSEEKMATH, profiles={"cpu": {"max_steps": 35}}), "every"),
        (replace(DEEPSEEKMATH, claims=(OTHER, *DEEPSEEKMATH.claims[1:])), "none"),
        (replace(DEEPSEEKMATH, claims=(UNHEARD, *DEEPSEEKMATH.claims)), "read"),
    ],
    ids=["another setting", "another claim", "a claim that reads what was not logged"],
)
def test_a_run_is_left_where_its_record_lacks_what_is_asked_for(changed, left):
    runs = first_runs(whole_order(changed, "cpu", 1, 1))
    lacking = {
        chain.resolved.arm
        for chain, record in zip(runs, recorded_runs(runs), strict=True)
        if record is None
    }
    every = {chain.resolved.arm for chain in runs}
    assert lacking == {"every": every, "none": set(), "read": {"rft"}}[left]


@pytest.mark.parametrize(
    "changed",
    [
        replace(DEEPSEEKMATH, claims=(OTHER, *DEEPSEEKMATH.claims[1:])),
        replace(DEEPSEEKMATH, profiles={"cpu": {"max_steps": 35, "ref_model_sync_steps": 18}}),
    ],
    ids=["another claim", "another setting"],
)
def test_a_paper_that_says_something_else_than_its_records_is_to_be_run(changed):
    assert not is_judged(changed, "cpu", 1)


def test_families_are_listed_with_the_one_they_name():
    assert listed_families("sft") == {"sft", "ssd", "diffusion"}
    assert listed_families("grpo") == {
        n for n, one in FAMILIES.items() if one.listed_with == "grpo"
    }


def test_a_group_is_all_families_of_preference_losses_and_no_preparation():
    given = {
        name
        for name, one in FAMILIES.items()
        if one.pair_quantities and not (one.gives or one.gives_rewards)
    }
    assert listed_families("preference") == given | {"online_dpo", "xpo", "nash_md"}
    assert listed_families("dpo") == {"dpo"}
    for name in ("", "preferences", "own-pairs-of"):
        with pytest.raises(UnknownName):
            listed_families(name)


def test_no_paper_is_judged_where_there_is_no_record(root):  # noqa: ARG001
    assert not is_judged(DEEPSEEKMATH, "cpu", len(LOOKS))
