"""The first page of reports/ leads to every page, and a phone shows the whole of it."""

import re
from pathlib import Path

import pytest

from core.claims import Claim, Comparison, Untestable
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
        assert all((ROOT / "reports" / link.split("#")[0]).is_file() for link in inside)
        assert {f"{slug}/cpu/report.{form}" for slug in entries()} <= {*inside}
        assert len(inside) == len({*inside})


def test_every_claim_is_counted_once(pages):
    rows = re.findall(r"\| \[(\S+)\]\(\S+\) *\| cpu *((?:\|[^|]+){3})\|", pages["md"])
    assert {slug for slug, _ in rows} == {*entries()}
    for slug, said in rows:
        claims: tuple[Claim, ...] = find_paper(slug).claims
        assert sum(map(int, re.findall(r"\d+", said))) == len(claims)


def test_claims_by_runs_and_by_laws_are_counted_apart(pages):
    """A law is never counted among the claims that runs held or refuted."""
    words = "held|refuted|untestable"
    totals = dict(re.findall(rf"^\| ({words}) +((?:\| +[\d-]+ +){{3}})", pages["md"], re.M))
    held, refuted, untestable = ([n.strip() for n in totals[w].split("|")[1:]] for w in totals)
    claims = [claim for slug in entries() for claim in find_paper(slug).claims]
    laws = [c for c in claims if isinstance(c.test, Comparison) and c.test.kind == "exact"]
    assert [int(held[1]) + int(refuted[1]), held[2], refuted[2]] == [len(laws), "-", "-"]
    assert untestable == ["-", "-", str(sum(isinstance(c.test, Untestable) for c in claims))]


def test_every_link_to_a_claim_leads_to_it(pages):
    links = re.findall(r'href="([^"#]+)#([^"]+)"', pages["html"])
    assert len(links) == sum(len(find_paper(slug).claims) for slug in entries())
    for page, target in links:
        assert f'id="{target}"' in (ROOT / "reports" / page).read_text(encoding="utf-8")


SHOWN = """
return [...document.querySelectorAll("tr[data-verdict]")].filter((row) => row.checkVisibility())
    .map((row) => [row.dataset.verdict, row.dataset.mechanism, row.dataset.paper])
"""
PAPERS = """
return [...document.querySelectorAll("section tr[id]")].filter((row) => row.checkVisibility())
    .map((row) => row.id)
"""


CHOOSE = """
const list = document.getElementById("filters").elements[arguments[0]];
list.value = arguments[1];
list.dispatchEvent(new Event("input", {bubbles: true}));
return list.value
"""


def choose(browser, name, value):
    assert browser.execute_script(CHOOSE, name, value) == value  # which is a choice


def test_claims_are_filtered_by_verdict_and_mechanism_and_the_address_names_it(browser):
    browser.get((ROOT / "reports" / "index.html").as_uri())
    every = browser.execute_script(SHOWN)
    choose(browser, "verdict", "undecided")
    choose(browser, "mechanism", "length")
    shown = browser.execute_script(SHOWN)
    assert shown == [row for row in every if row[:2] == ["undecided", "length"]]
    assert {*browser.execute_script(PAPERS)} == {paper for _, _, paper in shown}
    assert len(shown) < len(every)
    address = browser.current_url
    browser.get("about:blank")
    browser.get(address)
    assert browser.execute_script(SHOWN) == shown


def test_without_its_script_all_is_shown_and_no_filter(browser, tmp_path):
    text = (ROOT / "reports" / "index.html").read_text(encoding="utf-8")
    alone, scripts = re.subn(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert (scripts, alone.count("<noscript")) == (1, 0)
    (tmp_path / "index.html").write_text(alone, encoding="utf-8")
    browser.get((tmp_path / "index.html").as_uri())
    assert not browser.find_element("id", "filters").is_displayed()
    claims = sum(len(find_paper(slug).claims) for slug in entries())
    assert len(browser.execute_script(SHOWN)) == claims


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
