"""The page of a paper in a browser: on a phone and beside its contents, light and dark."""

from pathlib import Path

import pytest

REPORTS = Path(__file__).parents[2] / "reports"
PAGES = ("dapo/cpu/report", "deepseekmath-grpo/cpu/report", "papo/cpu/report", "families/grpo")
OUTSIDE = """
const seen = (e) => e.checkVisibility() && !e.closest(".scroll");
return [...document.querySelectorAll("main *, nav *")].filter(seen).filter(
    (e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80))
"""
# What cannot be reached by moving each box to its right end.
UNREACHED = """
return [...document.querySelectorAll(".scroll")].filter((box) => {
    box.scrollLeft = box.scrollWidth;
    const end = box.getBoundingClientRect().right + 1;
    return end > innerWidth + 1
        || [...box.querySelectorAll("*")].some((e) => e.getBoundingClientRect().right > end);
}).map((box) => box.ariaLabel)
"""
MOVED = """
return [...document.querySelectorAll(".scroll:has(.cards)")].filter(
    (box) => box.scrollWidth > box.clientWidth).map((box) => box.ariaLabel)
"""
CONTENTS = """
return [...document.querySelectorAll("nav a")].filter((a) => a.checkVisibility()).map(
    (a) => [a.getAttribute("href"), a.getBoundingClientRect().right])
"""
TITLES = """
return [...document.querySelectorAll("h2")].map((title) => {
    location.hash = title.id;
    return ["#" + title.id, title.getBoundingClientRect().top];
})
"""
FAINT = """
const light = (rgb) => rgb.map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0.05);
const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
const behind = (e) => {
    const colour = numbers(getComputedStyle(e).backgroundColor);
    return colour.length === 3 || colour[3] ? colour : behind(e.parentElement);
};
const texts = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility()
    && [...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
const ratio = (e) => {
    const both = [numbers(getComputedStyle(e).color), behind(e)].map((c) => light(c.slice(0, 3)));
    return Math.max(...both) / Math.min(...both);
};
return [texts.length, texts.filter((e) => ratio(e) < 4.5).map((e) => e.outerHTML.slice(0, 80))]
"""
FILLS = """
return [...document.querySelectorAll("#patch_1 path, text")].map((e) => getComputedStyle(e).fill)
"""
PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}


def show(browser, page, width, scheme="light"):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get((REPORTS / page).as_uri())


@pytest.mark.parametrize("width", [400, 1000])
@pytest.mark.parametrize("page", PAGES)
def test_no_column_is_cut(browser, page, width):
    """Tables of texts are cards on a phone; those of numbers move inside their box."""
    show(browser, f"{page}.html", width)
    assert browser.execute_script("return innerWidth") == width
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OUTSIDE) == []
    assert browser.execute_script(UNREACHED) == []
    assert browser.execute_script(MOVED) == []


@pytest.mark.parametrize("page", PAGES)
def test_the_contents_lead_to_every_part(browser, page):
    show(browser, f"{page}.html", 1000)
    links = browser.execute_script(CONTENTS)
    assert max(right for _, right in links) < 250  # in a column beside the page
    titles = browser.execute_script(TITLES)
    assert [target for target, _ in titles] == [href for href, _ in links]
    assert all(-1 <= top < 800 for _, top in titles)
    show(browser, f"{page}.html", 400)
    assert browser.execute_script(CONTENTS) == []  # folded
    browser.find_element("css selector", "summary").click()
    assert [href for href, _ in browser.execute_script(CONTENTS)] == [href for href, _ in links]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", [*PAGES, "index"])
def test_all_text_stands_out(browser, page, scheme):
    show(browser, f"{page}.html", 1000, scheme)
    assert (
        browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        == PAPER[scheme]
    )
    count, faint = browser.execute_script(FAINT)
    assert count > 50
    assert faint == []


@pytest.mark.parametrize(
    ("scheme", "ink"), [("light", "rgb(27, 31, 36)"), ("dark", "rgb(232, 234, 237)")]
)
@pytest.mark.parametrize("figure", ["training", "held-out", "claimed"])
def test_figures_follow_the_page(browser, figure, scheme, ink):
    show(browser, f"dapo/cpu/{figure}.svg", 1000, scheme)
    ground, *words = browser.execute_script(FILLS)
    assert ground == PAPER[scheme]
    assert len(words) > 20
    assert set(words) == {ink}
