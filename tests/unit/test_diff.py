"""What sets two papers, or a paper and TRL, apart: exactly the fields whose values differ."""

import json
from dataclasses import fields

import pytest
import trl
from typer.testing import CliRunner

from core.families.table import find_family
from core.pages.differences import differences_files
from core.paper.registry import entries, find_paper
from core.run.check import check_page
from core.settings.differences import differences, index_problems, settings_of
from core.settings.run_settings import NEUTRAL, RUN_FIELDS
from papers.deepseekmath_grpo import PAPER

OTHER = """
from core.paper import Paper, cite
PAPER = Paper(slug="warm", title="t", arxiv="0", family="grpo", base="deepseekmath-grpo",
    config=(cite("s1", beta=0.1, temperature=1.0),), model="m", data="gsm8k+math")
"""


def values(found):
    return {each.field: (each.left.value, each.right.value) for each in found}


def test_trl_is_what_a_user_of_its_index_trains_with(tmp_path):
    machine = {"use_cpu": True, "bf16": False, "activation_checkpointing": True}
    theirs = trl.GRPOConfig(output_dir=str(tmp_path), **machine, **PAPER.trl_index)
    found = differences(PAPER.slug, "trl", "paper")
    assert values(found)["beta"] == (0.04, 0.001)
    assert values(found)["use_bias_correction_kl"] == (False, True)
    for each in found:
        assert each.right.value == getattr(theirs, each.field), each
    ours = settings_of(PAPER, "paper")
    same = PAPER.trl_index.keys() - values(found).keys()
    assert all(ours[name].value == PAPER.trl_index[name] for name in same)
    assert not values(found).keys() & (RUN_FIELDS | NEUTRAL)


def test_a_paper_differs_from_its_base_by_what_it_says(install):
    install("warm", {"warm": "warm"}, {"warm": OTHER})
    assert differences(PAPER.slug, PAPER.slug, "cpu") == []
    there = values(differences(PAPER.slug, "warm", "paper"))
    assert there == {
        "beta": (0.04, 0.1),
        "model": (PAPER.model, "m"),
        "rewards": (PAPER.rewards, ()),
        "benchmarks": (PAPER.benchmarks, ()),
    }
    back = values(differences("warm", PAPER.slug, "paper"))
    assert back == {name: pair[::-1] for name, pair in there.items()}


DAPO = """
from core.paper import Paper, cite
PAPER = Paper(slug="mixed", title="t", arxiv="0", family="grpo",
    config=(cite("s1", loss_type="{}", gradient_accumulation_steps=4, steps_per_generation={}),),
    model="m", data="gsm8k+math")
"""


@pytest.mark.parametrize(
    ("loss", "steps", "shown"), [("dapo", 2, True), ("dapo", 4, False), ("grpo", 2, False)]
)
def test_what_trl_does_without_a_field_is_shown_where_it_matters(loss, steps, shown, install):
    """A step over two rollouts: by tokens of each in TRL, by those of the step here."""
    install("mixed", {"mixed": "mixed"}, {"mixed": DAPO.format(loss, steps)})
    found = values(differences("mixed", "trl", "paper"))
    assert ("token_normalizer" in found) is shown
    assert found.get("token_normalizer", ("step", "rollout")) == ("step", "rollout")


@pytest.mark.parametrize("slug", [e.slug for e in entries().values() if e.load().trl_index])
def test_trl_has_the_fields_that_its_index_sets(slug):
    paper = find_paper(slug)
    kind = getattr(trl, find_family(paper.family).config_class().__name__, None)
    if kind is None:
        pytest.skip(f"this TRL has no settings of {paper.family}")
    assert paper.trl_index.keys() <= {each.name for each in fields(kind)}


ENTRY = """
from core.paper import Paper, because, cite
PAPER = Paper(slug="entry", title="t", arxiv="0", family="grpo",
    config=(cite("s1", beta=0.1, loss_type="grpo"),), model="m", data="gsm8k+math",
    trl_index={index}, trl_reasons=({reasons}))
"""
BETA = 'because("Ours is printed.", "beta"),'


@pytest.mark.parametrize(
    ("index", "reasons", "problem"),
    [
        ({"beta": 0.2}, BETA, None),
        ({"beta": 0.2}, BETA + 'because("Half of it.", "loss_type"),', None),
        ({"beta": 0.2}, BETA + 'because("Of no field."),', None),
        ({"beta": 0.1, "loss_type": "grpo"}, "", None),
        ({"beta": 0.2}, "", "beta differs without a reason"),
        ({"beta": 0.2}, BETA + BETA, "beta has several reasons"),
        ({"beta": 0.1}, BETA, "beta does not differ"),
        ({"beta": 0.2}, BETA + 'because("Ours.", "betta"),', "betta does not differ"),
        ({"betta": 0.2}, "", "betta is no setting of grpo"),
        ({"beta": 0.2}, 'because("ours", "beta"),', "no whole sentence"),
    ],
)
def test_each_difference_to_the_index_has_one_reason_and_each_reason_a_difference(
    index, reasons, problem, install
):
    install("entry", {"entry": "entry"}, {"entry": ENTRY.format(index=index, reasons=reasons)})
    found = list(index_problems(find_paper("entry")))
    assert len(found) == (problem is not None)
    assert all(problem in line for line in found)


def test_the_command():
    from core.cli.main import app

    shown = CliRunner().invoke(app, ["diff", PAPER.slug, "trl"])
    rows = json.loads(CliRunner().invoke(app, ["diff", PAPER.slug, "trl", "--json"]).stdout)
    lines = shown.stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [row["field"] for row in rows]
    beta = next(line for line in lines if line.startswith("beta"))
    (reason,) = [each.reason for each in PAPER.trl_reasons if "beta" in each.fields]
    assert "s4.2" in beta
    assert beta.endswith(reason)


def test_remarks_stand_below_and_on_the_page(install, tmp_path, monkeypatch):
    from core.cli.main import app

    text = ENTRY.format(index={"beta": 0.2}, reasons=BETA + 'because("It is <of> no field."),')
    install("entry", {"entry": "entry"}, {"entry": text})
    assert (
        CliRunner()
        .invoke(app, ["diff", "entry", "trl"])
        .stdout.endswith("\nIt is <of> no field.\n")
    )
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    assert differences_files() == {}  # there is no checkout
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "claims.csv").write_text("")
    pages = differences_files()
    part = pages["differences-to-trl.md"].partition("## entry")[2]
    assert "| beta" in part
    assert "Ours is printed." in part
    assert "- It is" in part
    assert "It is &lt;of&gt; no field." in pages["differences-to-trl.html"]


def test_the_committed_page_is_that_of_the_modules():
    assert check_page(differences_files) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((PAPER.slug, "tlr"), "no paper 'tlr'"),
        (("trl", PAPER.slug), "no paper 'trl'"),
        ((PAPER.slug, "trl", "--at", "papr"), "did you mean paper"),
    ],
)
def test_what_is_unknown_is_one_line(arguments, message):
    from core.cli.main import app

    done = CliRunner().invoke(app, ["diff", *arguments])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
