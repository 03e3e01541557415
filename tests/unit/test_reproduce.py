"""Reproducing a family: shared arms first, and nothing runs again that records tell."""

import shutil
from dataclasses import replace

import pytest

from core.claims import Claim, late
from core.families.table import FAMILIES, listed
from core.run.order import finished
from core.run.pages.families import family_files
from core.run.places import results
from core.run.reproduce import first_runs, is_judged, reproduce, shared_first, whole_order
from papers.deepseekmath_grpo import PAPER as DEEPSEEKMATH
from papers.dr_grpo import PAPER as DR_GRPO


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


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    return tmp_path


def test_two_papers_whose_arms_come_to_one_training_share_its_stage(root):  # noqa: ARG001
    orders = [whole_order(one, "cpu", 1) for one in (ALPHA, BETA)]
    keys = [{(c.resolved.arm, c.seed): c.train.key for c in first_runs(one)} for one in orders]
    for seed in range(3):
        assert keys[0]["plain", seed] == keys[1]["base", seed]
        assert len({keys[0]["alone", seed], keys[0]["plain", seed], keys[1]["wide", seed]}) == 3


def test_the_runs_of_most_papers_come_first_and_each_start_once(root):  # noqa: ARG001
    units = shared_first([whole_order(one, "cpu", 1) for one in (ALPHA, BETA)])
    names = [unit.name for unit in units]
    assert names[:3] == [f"alpha start {seed}" for seed in range(3)]
    shared = {f"{name} {seed}" for name in ("alpha plain", "beta base") for seed in range(3)}
    assert set(names[3:9]) == shared
    assert set(names[9:]) == {f"{n} {s}" for n in ("alpha alone", "beta wide") for s in range(3)}


def test_what_is_finished_is_not_asked_for_again(root):  # noqa: ARG001
    order = whole_order(ALPHA, "cpu", 1)
    chain = first_runs(order)[0]
    for stage in chain.own_stages:
        stage.folder.mkdir(parents=True)
        (stage.folder / "done.json").write_text("{}")
    assert finished(chain.own_stages)
    names = [unit.name for unit in shared_first([order])]
    assert f"alpha {chain.resolved.arm} {chain.seed}" not in names
    assert len(names) == 3 + 5


def test_a_clone_with_records_judges_them_again_and_runs_nothing(tmp_path, monkeypatch):
    slug = DEEPSEEKMATH.slug
    for folder in (slug, "samples"):
        shutil.copytree(results() / folder, tmp_path / "results" / folder)
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    assert is_judged(DEEPSEEKMATH, "cpu")
    found = reproduce([DEEPSEEKMATH])
    assert (found.judged, found.failed) == ([], {})
    assert not list((tmp_path / "runs").glob("train-*"))
    page = family_files("grpo", [DEEPSEEKMATH, ALPHA], "cpu")["grpo.md"]
    assert all(claim.statement.split(",")[0] in page for claim in DEEPSEEKMATH.claims)
    assert "[alpha](../alpha/report.md): Of 1 claims: 0 held, 0 refuted" in page


@pytest.mark.parametrize(
    "changed",
    [
        replace(DEEPSEEKMATH, claims=(OTHER, *DEEPSEEKMATH.claims[1:])),
        replace(DEEPSEEKMATH, profiles={"cpu": {"max_steps": 35, "ref_model_sync_steps": 18}}),
    ],
    ids=["another claim", "another setting"],
)
def test_a_paper_that_says_something_else_than_its_records_is_to_be_run(changed):
    assert not is_judged(changed, "cpu")


def test_families_are_listed_with_the_one_they_name():
    assert listed("sft") == {"sft"}
    assert listed("grpo") == {n for n, one in FAMILIES.items() if one.listed_with == "grpo"}


def test_no_paper_is_judged_where_there_is_no_record(root):  # noqa: ARG001
    assert not is_judged(DEEPSEEKMATH, "cpu")
