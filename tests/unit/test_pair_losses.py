"""The page of preference losses: arms at the same seeds, numbers of stored runs, and claims."""

from statistics import fmean

import pytest

from core.families.table import listed_families
from core.pages.groups import page_files
from core.pages.pair_losses import (
    ArmOfPaper,
    LengthReader,
    arms_at_common_seeds,
    loss_of,
    quantity,
    same_trainings,
)
from core.paper.registry import whole_papers
from core.records.places import Shelf
from core.records.record import latest, read_records
from core.records.run_samples import read_run_samples
from core.records.schema import runs_of
from core.verdicts.verdict_records import without_runs

PAPERS = [one for one in whole_papers() if one.family in listed_families("preference")]


def trained(seed, weights, **settings):
    config = {name: {"value": value} for name, value in settings.items()}
    return {"seed": seed, "train": {"weights": weights}, "config": config}


def arm(name, weights, family="dpo", **settings):
    runs = tuple(trained(seed, digest, **settings) for seed, digest in weights.items())
    return ArmOfPaper("paper", "path", name, family, runs)


def test_arms_are_compared_at_the_seeds_that_most_have_and_others_are_left_out():
    arms = [
        arm("many", {1: "a", 2: "b", 3: "c"}),
        arm("few", {1: "d", 2: "e"}),
        arm("others", {2: "f", 9: "g"}),
    ]
    common = arms_at_common_seeds(arms)
    assert [(one.arm, [run["seed"] for run in one.runs]) for one in common] == [
        ("many", [2]),
        ("few", [2]),
        ("others", [2]),
    ]
    common = arms_at_common_seeds([*arms[:2], arm("others", {9: "g"})])
    assert [(one.arm, [run["seed"] for run in one.runs]) for one in common] == [
        ("many", [1, 2]),
        ("few", [1, 2]),
    ]
    assert arms_at_common_seeds([]) == []


def test_arms_that_end_at_the_same_weights_are_one_training():
    arms = [
        arm("one", {1: "a", 2: "b"}),
        arm("two", {1: "a", 2: "c"}),
        arm("three", {1: "a", 2: "b"}),
    ]
    names = {tuple(one.arm for one in same) for same in same_trainings(arms)}
    assert names == {("one", "three"), ("two",)}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"loss_type": "ipo"}, "dpo: ipo"),
        ({"loss_type": ["ipo"], "loss_weights": [1]}, "dpo: ipo"),
        ({"loss_type": ["sigmoid", "sft"], "loss_weights": [0.8, 1]}, "dpo: 0.8 sigmoid + 1 sft"),
        ({"loss_type": ["sigmoid", "sft"]}, "dpo: sigmoid + sft"),
        ({}, "dpo"),
    ],
)
def test_a_loss_is_named_with_its_family_and_the_weights_of_its_terms(settings, text):
    assert loss_of(arm("one", {1: "a"}, **settings)) == text


def test_the_page_has_every_claim_once_and_the_numbers_of_the_records():
    page = page_files("preference", PAPERS, "cpu", Shelf.PUBLISHED)["preference.md"]
    losses, claims = page.split("## Claims and their mechanisms")
    stated = [row["statement"] for paper in PAPERS for row in without_runs(paper)]
    rows = [line for line in claims.splitlines() if "](../" in line]
    assert len(rows) == len(stated)
    runs = [
        run for run in runs_of(latest(read_records("dpo")), "cpu") if run["arm"] == "dpo-beta-1"
    ]
    seeds = [int(word) for word in losses.split("at the seeds ")[1].split(":")[0].split(",")]
    runs = [run for run in runs if run["seed"] in seeds]
    (line,) = (line for line in losses.splitlines() if "dpo: dpo-beta-1]" in line)
    cells = [cell.strip() for cell in line.split("|")]
    divergence = fmean(quantity("kl_to_start", run, "", from_start=False)[1] for run in runs)
    assert any(cell.startswith(f"{divergence:.2f} [") for cell in cells)
    assert "[f-dpo: dpo]" in line  # the same training, under another paper's name
    header = next(line for line in losses.splitlines() if line.startswith("| Loss"))
    length = cells[[cell.strip() for cell in header.split("|")].index("Length, tokens")]
    answers = [read_run_samples(run, run["scores"][0]["digest"]) for run in runs]
    mean = fmean(fmean(sample.tokens for sample in one) for one in answers)
    assert f"→ {mean:.2f} [" in length
    assert LengthReader().ends(runs[0], "")[1] == fmean(sample.tokens for sample in answers[0])


def test_a_page_without_runs_has_the_claims_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    files = page_files("preference", PAPERS, "cpu", Shelf.PUBLISHED)
    assert files.keys() == {"preference.md", "preference.html"}
    assert all("Every loss on the same pairs" not in page for page in files.values())
    assert "APO-zero makes chosen answers likelier" in files["preference.md"]
