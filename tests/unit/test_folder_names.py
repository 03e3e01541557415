"""Names that become folders or files: what could leave a folder, or be none, is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from core.cli.main import app
from core.paper import Paper
from core.paper.printed import Layout
from eval.errors import BadValue
from eval.names import check_name, check_slug
from eval.sets.benchmarks import Benchmark

UNSAFE = [
    "My Slug!", "../../evil", "..", ".", "", "a/b", "a\\b", "/etc", "-rf", ".hidden", "a\nb", "a\0",
    "a" * 65, "C:x", "é", None, 3,
]  # fmt: skip
MODULE = """
from core.paper import Paper
PAPER = Paper(slug={slug!r}, title="t", arxiv="0", family="grpo", model="pocket-instruct")
"""


def a_paper(slug="fine", **settings):
    return Paper(slug=slug, title="t", family="grpo", model="m", **settings)


MAKERS = {
    "slug": lambda name: a_paper(name),
    "arm": lambda name: a_paper(arms={name: {}}),
    "preparation": lambda name: a_paper(preparations={name: {}}),
    "layout": lambda name: Layout(of="table 1", name=name, caption="c"),
    "benchmark": lambda name: Benchmark(name=name, title="t", n=1),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("name", UNSAFE)
def test_a_name_that_no_folder_should_have_is_refused_where_it_is_given(kind, name):
    with pytest.raises(BadValue) as caught:
        MAKERS[kind](name)
    assert str(caught.value).startswith(f"BadValue: {kind} {name!r}: expected ")
    assert "\n" not in str(caught.value)


@given(st.text(max_size=70))
def test_an_accepted_name_is_one_part_of_a_path_and_no_option(name):
    for check in (check_slug, lambda name: check_name("arm", name)):
        try:
            check(name)
        except BadValue:
            continue
        assert name.isascii()
        assert name.isprintable()
        assert not set(name) & set("/\\: ")
        assert name[0].isalnum()


@pytest.mark.parametrize("slug", ["My Slug", "../../evil", "Upper", "a--b", "a_b", "1st"])
@pytest.mark.parametrize("command", ["plan", "show", "run", "check"])
def test_a_file_with_such_a_slug_is_refused_in_one_line(command, slug, tmp_path, monkeypatch):
    monkeypatch.delenv("REPRO_PLUGINS", raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a_plug_in.py"
    path.write_text(MODULE.format(slug=slug))
    done = CliRunner().invoke(app, [command, str(path)])
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.endswith(
        f"import failed with BadValue: slug {slug!r}: expected lower-case words joined by hyphens, "
        "at most 64 characters"
    )
    assert [p for p in tmp_path.iterdir() if p.name != "__pycache__"] == [
        path
    ]  # which Python makes
