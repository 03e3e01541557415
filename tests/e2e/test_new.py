"""`repro new` writes a module that is a paper."""

from importlib.util import module_from_spec, spec_from_file_location

import pytest

from core.families.table import FAMILIES
from core.paper import Paper
from core.settings.refusals import check_names
from core.settings.resolve import resolve


def loaded(path):
    """The `PAPER` of a module."""
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PAPER


@pytest.mark.parametrize("family", [f.name for f in FAMILIES.values() if f.gives])
def test_a_family_that_makes_rows_is_no_paper(repro, root, family):
    result = repro("new", "a", "--arxiv", "2501.01234", "--family", family, "--folder", root)
    assert result.exit_code == 2
    assert "makes rows: name it in a paper's `preparations`" in result.output
    assert not (root / "a.py").exists()


@pytest.mark.parametrize("family", [f.name for f in FAMILIES.values() if not f.gives])
def test_a_module_of_any_family_is_a_paper_that_can_be_planned(repro, root, family):
    result = repro("new", "my-paper", "--arxiv", "2501.01234", "--family", family, "--folder", root)
    assert result.exit_code == 0, result.output
    found = resolve(loaded(root / "my_paper.py"), scale="cpu")
    check_names(found)
    assert found.preview()
    assert found.family.name == family


def test_the_module_is_a_paper_that_resolves_against_its_base(repro, root):
    slug, base = "my-paper", "deepseekmath-grpo"
    result = repro("new", slug, "--arxiv", "2501.01234", "--base", base, "--folder", root)
    assert result.exit_code == 0, result.output
    path = root / "my_paper.py"
    assert result.stdout.strip() == str(path)
    paper = loaded(path)
    assert isinstance(paper, Paper)
    settings = resolve(paper, arm=slug, scale="paper").values
    assert settings["learning_rate"].value == 1e-6  # its own line
    assert settings["beta"].source == "deepseekmath-grpo s4.2"  # its base's

    again = repro("new", slug, "--arxiv", "2501.01234", "--folder", root)
    assert again.exit_code == 2
    assert "exists already" in again.output


def test_a_number_that_is_none_of_arxivs_writes_nothing(repro, root):
    result = repro("new", "my-paper", "--arxiv", '25"01', "--folder", root)
    assert result.exit_code == 2
    assert result.stderr.strip().endswith("expected a number such as 2501.01234")
    assert not (root / "my_paper.py").exists()


def test_unpublished_work_is_checked_once_all_of_it_is_filled_in(repro, root):
    for slug in ("my-work", "my-filled-work"):
        assert repro("new", slug, "--folder", root).exit_code == 0
    output = repro("check", root / "my_work.py").output
    left = [line.split(":")[1].strip() for line in output.splitlines() if "TODO" in line]
    assert left == ["docstring", "title", "model", "url"]

    path = root / "my_filled_work.py"
    written = path.read_text().replace("TODO: where it can be read, or empty", "")
    written = written.replace("TODO/owner-and-name", "Qwen/Qwen2.5-0.5B").replace("TODO", "Mine")
    path.write_text(written)
    result = repro("check", path)
    assert result.exit_code == 0, result.output
    assert loaded(path).place == ""
