"""Papers are found by entry point, whoever provides them; look-ups say what is wrong."""

import json

import pytest
from typer.testing import CliRunner

from core.cli.main import app
from core.families.profiles import SCALES
from core.families.table import FAMILIES, listed_families
from core.paper import Paper, cite
from core.paper.registry import BrokenPaper, UnknownPaper, entries, find_entry, find_paper, lineage

MODULE = """
from core.paper import Paper, cite
PAPER = Paper(slug="{slug}", title="t", arxiv="0", family="grpo", config=(cite("s1", beta=0.1),),
    model="m", data="d")
"""


def test_ours_is_found_without_being_named_in_core():
    assert find_entry("deepseekmath-grpo").module == "papers.deepseekmath_grpo"
    assert find_paper("deepseekmath-grpo").arxiv == "2402.03300"
    assert "learned reward model" in find_entry("deepseekmath-grpo").text()


def test_an_unknown_slug_names_the_nearest_and_the_command():
    with pytest.raises(UnknownPaper) as caught:
        find_paper("deepseekmath-gpro")
    assert str(caught.value) == (
        "UnknownPaper: no paper 'deepseekmath-gpro': did you mean deepseekmath-grpo or "
        "deepseek-r1 or deepseek-v3-2? (`repro list` lists all)"
    )


def test_another_distribution_registers_a_module(install):
    install("plug", {"my-paper": "plug_my"}, {"plug_my": MODULE.format(slug="my-paper")})
    entry = find_entry("my-paper")
    assert (entry.distribution, entry.load().slug) == ("plug", "my-paper")
    assert list(entries()) == sorted(entries())


def test_another_distribution_registers_a_package_of_papers(install):
    text = MODULE.format(slug="one-paper")
    modules = {"plug_all.__init__": "", "plug_all.one_paper": text, "plug_all._not_one": "1 / 0"}
    install("plug-all", {"all": "plug_all"}, modules)
    assert find_entry("one-paper").module == "plug_all.one_paper"
    assert not any("not-one" in slug for slug in entries())


def test_a_paper_that_does_not_import_breaks_alone_and_by_name(install):
    install("sick", {"sick-paper": "sick"}, {"sick": "import not_there_at_all"})
    assert find_paper("deepseekmath-grpo").slug == "deepseekmath-grpo"
    with pytest.raises(
        BrokenPaper, match=r"sick-paper \(sick of sick\): import failed with Module"
    ):
        find_paper("sick-paper")


def test_a_module_without_a_paper_says_what_was_expected(install):
    install("empty", {"no-paper": "empty_module"}, {"empty_module": "PAPER = 3"})
    with pytest.raises(BrokenPaper, match=r"expected PAPER to be a core.paper.Paper, got int"):
        find_paper("no-paper")


def test_a_module_that_is_gone_is_named_with_its_distribution(install):
    install("gone", {"gone-paper": "gone_module"}, {})
    with pytest.raises(BrokenPaper, match="gone registers the module 'gone_module', which is not"):
        find_paper("gone-paper")


def test_two_distributions_with_one_slug_are_refused(install):
    install("one", {"same": "module_one"}, {"module_one": MODULE.format(slug="same")})
    install("two", {"same": "module_two"}, {"module_two": MODULE.format(slug="same")})
    with pytest.raises(BrokenPaper, match="same is provided twice: by "):
        find_paper("same")


def test_one_module_that_two_distributions_register_is_one_paper(install):
    """As when a distribution is installed under its old name and its new one."""
    install("old-name", {"same": "module_same"}, {"module_same": MODULE.format(slug="same")})
    install("new-name", {"same": "module_same"}, {})
    assert find_paper("same").slug == "same"


def one_distribution(slug, modules, module=None):
    """What `install` takes."""
    return (f"of-{slug}", {slug: module or next(iter(modules))}, modules)


BROKEN = {
    "raises": one_distribution("raises", {"m_raises": "1 / 0"}),
    "exits": one_distribution("exits", {"m_exits": "import sys; sys.exit('bye')"}),
    "lines": one_distribution("lines", {"m_lines": "raise ValueError('two\\nlines')"}),
    "syntax": one_distribution("syntax", {"m_syntax": "PAPER = ="}),
    "no-paper": one_distribution("no-paper", {"m_no_paper": "PAPER = 3"}),
    "gone": one_distribution("gone", {}, "m_gone"),
    "gone-below": one_distribution("gone-below", {"m_above": ""}, "m_above.gone"),
    "sick-above": one_distribution(
        "sick-above", {"m_sick.__init__": "1 / 0", "m_sick.paper": ""}, "m_sick.paper"
    ),
    "ours-again": ("of-again", {"fine": "m_again"}, {"m_again": MODULE.format(slug="fine")}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plug_in_is_named_and_all_else_works(install, name, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path / "root"))
    install("other", {"fine": "m_fine", "next": "m_next"}, {
        "m_fine": MODULE.format(slug="fine"), "m_next": MODULE.format(slug="next")
    })  # fmt: skip
    install(*BROKEN[name])
    (slug,) = BROKEN[name][1]
    listed = run("list")
    assert listed.exit_code == 2
    (line,) = listed.stderr.splitlines()
    assert line.startswith("BrokenPaper: ")
    assert slug in line
    rows = {row.split()[0]: row.split()[1] for row in listed.stdout.splitlines()[1:]}
    assert rows.pop(slug) == "(error)"
    assert set(rows.values()) <= set(FAMILIES)
    assert {"deepseekmath-grpo", "next"} <= set(rows)
    (row,) = [row for row in json.loads(run("list", "--json").stdout) if "error" in row]
    assert row["paper"] == slug
    for command in ("show", "diff", "plan", "run", "check", "report"):
        broken = run(command, slug, *(["trl"] if command == "diff" else []))
        assert broken.exit_code in (1, 2), command
        assert line.removeprefix("BrokenPaper: ")[:60] in broken.output, command
        assert len(broken.stderr.splitlines()) <= 1
    assert run("show", "next").exit_code == 0
    report = run("report")
    assert (report.exit_code, report.stderr.splitlines()) == (2, [line])
    assert run("new", "a-paper", "--arxiv", "2501.01234", "--folder", tmp_path).exit_code == 0


def run(*arguments):
    """The command line in this process."""
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_a_distribution_that_was_renamed_and_installed_again_provides_its_papers_once(install):
    install("old-name", {"same": "module_same"}, {"module_same": MODULE.format(slug="same")})
    install("new-name", {"same": "module_same"}, {})
    assert find_paper("same").slug == "same"


def paper(slug, base=None):
    return Paper(
        slug=slug,
        title="t",
        arxiv="0",
        family="grpo",
        base=base,
        config=(cite("s1", beta=0.1),),
        model="m",
        data="d",
    )


def test_a_lineage_starts_at_the_root():
    known = {p.slug: p for p in (paper("a"), paper("b", "a"), paper("c", "b"))}
    assert [p.slug for p in lineage(known["c"], known.__getitem__)] == ["a", "b", "c"]


def test_a_circle_of_bases_is_refused():
    known = {p.slug: p for p in (paper("a", "b"), paper("b", "a"))}
    with pytest.raises(BrokenPaper, match="a: its bases form a circle at a"):
        lineage(known["a"], known.__getitem__)


def test_a_group_lists_the_papers_of_all_its_families_with_their_runs():
    families = listed_families("preference")
    listed = run("list", "--family", "preference", "--json")
    assert listed.exit_code == 0
    rows = {row["paper"]: row for row in json.loads(listed.stdout)}
    papers = {slug for slug, entry in entries().items() if entry.load().family in families}
    assert rows.keys() == papers >= {"dpo", "cpo", "kto", "orpo", "bco"}
    assert all(row["runs"].keys() == set(SCALES) for row in rows.values())


def test_a_paper_that_is_never_run_is_listed_so_and_no_other():
    rows = {row.split()[0]: row for row in run("list").stdout.splitlines()[1:]}
    never = {slug for slug, entry in entries().items() if entry.load().not_run}
    assert {slug for slug, row in rows.items() if "not run" in row} == never != set()
