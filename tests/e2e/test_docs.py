"""The documentation is built without a warning, its links lead somewhere."""

import re
import subprocess
import sys
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import typer

from core import A2POConfig, GRPOConfig, PPOConfig, RLOOConfig, SFTConfig
from core.cli.main import app
from core.settings.run_settings import RunSettings

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.glob("*.md"))


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
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
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
