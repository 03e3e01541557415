"""The first page of reports/ leads to every page, and a phone shows the whole of it."""

import re
from pathlib import Path

import pytest

from core.claims import Claim
from core.pages.index import index_files
from core.paper.registry import entries, find_paper
from core.records.places import Shelf

ROOT = Path(__file__).parents[2]
LINK = {"html": r'href="([^"]+)"', "md": r"\]\(([^)]+)\)"}
CUT = """
return [...document.querySelectorAll(".scroll")].filter(
    (box) => box.scrollWidth > box.clientWidth).map((box) => box.ariaLabel)
"""


@pytest.fixture(scope="module")
def pages():
    return {name.rpartition(".")[2]: text for name, text in index_files(Shelf.PUBLISHED).items()}


def test_every_paper_is_on_it_and_every_link_leads_somewhere(pages):
    for form, text in pages.items():
        links = re.findall(LINK[form], text)
        inside = [link for link in links if not link.startswith("http")]
        assert all((ROOT / "reports" / link).is_file() for link in inside)
        assert {f"{slug}/cpu/report.{form}" for slug in entries()} <= {*inside}
        assert len(inside) == len({*inside})


def test_every_claim_is_counted_once(pages):
    rows = re.findall(r"\| \[(\S+)\]\(\S+\) *\| cpu *\| ([^|]+)\|", pages["md"])
    assert {slug for slug, _ in rows} == {*entries()}
    for slug, said in rows:
        claims: tuple[Claim, ...] = find_paper(slug).claims
        assert sum(map(int, re.findall(r"\d+", said))) == len(claims)


def test_a_folder_without_records_has_none(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    assert index_files(Shelf.PUBLISHED) == {}


@pytest.mark.parametrize("width", [400, 1000])
def test_no_column_is_cut(browser, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get((ROOT / "reports" / "index.html").as_uri())
    assert browser.execute_script("return innerWidth") == width
    assert browser.execute_script(CUT) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
