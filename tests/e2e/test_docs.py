"""The documentation is built without a warning, its links lead somewhere, its examples run."""

import re
import shlex
import subprocess
import sys
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
import typer

from core import A2POConfig, GRPOConfig, PPOConfig, RLOOConfig, SFTConfig
from core.cli.main import app
from core.run.settings import RunSettings

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"# (\w+\.py)\n")


class Names(HTMLParser):
    """What a page links to, and what in it can be linked to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links |= {found["href"]} if tag == "a" and found.get("href") else set()
        self.anchors |= {found["id"]} if found.get("id") else set()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` builds it; every warning is an error."""
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-d", folder / "trees", DOCS]
    done = subprocess.run([*command, folder / "site"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_links_lead_somewhere(site):
    pages = {path: Names(path.read_text()) for path in site.rglob("*.html")}
    assert len(pages) > len(PAGES)
    for path, names in pages.items():
        for link in names.links:
            place, _, anchor = unquote(link).partition("#")
            if re.match(r"[a-z]+:", place):
                assert place.startswith("https://"), (path.name, link)  # of others: not asked here
                continue
            target = (path.parent / place).resolve() if place else path
            assert target.is_file(), (path.name, link)
            if anchor and target in pages:
                assert anchor in pages[target].anchors, (path.name, link)


def test_every_command_and_setting_has_its_place(site):
    commands = (site / "reference" / "commands.html").read_text()
    for name, command in typer.main.get_command(app).commands.items():
        assert (f"repro {name}" in commands) != command.hidden
        for one in command.params if not command.hidden else ():
            assert one.opts[0] in commands or one.param_type_name == "argument"
    settings = (site / "reference" / "settings.html").read_text()
    ours = {
        name
        for config in (RunSettings, A2POConfig, GRPOConfig, PPOConfig, RLOOConfig, SFTConfig)
        for base in config.__mro__
        if base.__module__.startswith("core.")
        for name in vars(base).get("__annotations__", ())
        if name in {field.name for field in fields(config)}
    }
    assert len(ours) > 100
    assert [name for name in sorted(ours) if f">{name}<" not in settings] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page, repro, root, settings, monkeypatch):
    """In their order, in one folder; a run is made short."""
    monkeypatch.chdir(root)
    for language, text in BLOCK.findall(page.read_text()):
        if language == "python":
            if name := NAMED.match(text):
                Path(name[1]).write_text(text)
            exec(compile(text, page.name, "exec"), {"__name__": page.stem})
            continue
        for line in text.splitlines():
            program, *words = shlex.split(line)
            assert program == "repro"
            given = {word.partition("=")[0] for word in words}
            short = [one for one in settings if one.partition("=")[0] not in given]
            done = repro(*words, *(("--jobs", 1, *short) if "run" in words else ()))
            assert done.exit_code == 0, (line, done.output, done.exception)


def test_pages_have_examples():
    found = {page.stem: len(BLOCK.findall(page.read_text())) for page in PAGES}
    assert all(found[name] for name in ("start", "own-data", "add-a-paper", "claims", "scales"))
