"""The page of samples in a real browser: filters, search, and no text of a model runs."""

import json
from dataclasses import replace

import pytest

from eval.samples.prompted_samples import PromptedSample
from eval.tables.page import SHOWN, render_page

HOSTILE = (
    "</script><script>window.hacked = 1</script>"
    "<img src=x onerror='window.hacked = 2'><svg onload=window.hacked=3>"
    "<!--<script> {{ 7 * 7 }} ]]> \u2028 \udfff \x00 &lt;b&gt; javascript:alert(1)"
)
ONE = PromptedSample(
    benchmark="gsm8k",
    id="a",
    sample=0,
    prompt="How many apples?",
    answer="3",
    prompt_tokens=4,
    output="There are \\boxed{3}.",
    tokens=9,
    truncated=False,
    extracted="3",
    correct=True,
    rule="boxed",
    reason="same text",
)


def samples(count):
    """Every third right, wrong and without a verdict; every fourth truncated; one of them odd."""
    made = [
        replace(
            ONE,
            id=f"q{i // 2}",
            sample=i % 2,
            correct=(True, False, None)[i % 3],
            truncated=i % 4 == 0,
            output=f"output number {i}.",
        )
        for i in range(count)
    ]
    odd = dict.fromkeys(("output", "extracted", "reason", "rule"), HOSTILE)
    made[7] = replace(made[7], id="odd", sample=0, prompt=HOSTILE, answer=HOSTILE, **odd)
    return made


@pytest.fixture
def opened(browser, tmp_path):
    """Open the page of some samples; gives the browser."""

    def open_page(rows, title="GSM8K by a model"):
        path = tmp_path / "page.html"
        path.write_text(render_page(rows, title), encoding="utf-8")
        browser.get(path.as_uri())
        return browser

    return open_page


def click(browser, name, value=None):
    selector = f"input[name={name}]" + (f"[value={value}]" if value else "")
    browser.find_element("css selector", selector).click()


def count(browser):
    return browser.find_element("id", "count").text


def cards(browser):
    return browser.find_elements("css selector", "details.sample")


def texts(browser, selector):
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)"
    return browser.execute_script(script, selector)


def test_filters_search_and_paging_change_what_is_shown(opened):
    page = opened(samples(120))
    assert count(page) == "120 of 120 samples"
    assert len(cards(page)) == 50
    more = page.find_element("id", "more")
    more.click()
    more.click()
    assert len(cards(page)) == 120
    assert not more.is_displayed()
    for value, name in (("right", "right"), ("wrong", "wrong"), ("none", "no verdict")):
        click(page, "verdict", value)
        assert count(page) == "40 of 120 samples"
        label = page.find_element("css selector", f"input[value={value}] + span").text
        assert label == f"{name} 40"
        assert set(texts(page, ".verdict")) == {name}
    click(page, "verdict", "all")
    click(page, "truncated")
    assert count(page) == "30 of 120 samples"
    click(page, "truncated")
    search = page.find_element("name", "text")
    search.send_keys("OUTPUT number 11")
    assert count(page) == "11 of 120 samples"  # 11 and 110 to 119
    search.send_keys("9.")
    assert count(page) == "1 of 120 samples"
    cards(page)[0].click()
    assert texts(page, "dd") == [
        "How many apples?",
        "output number 119.",
        "3",
        "3",
        "no verdict: same text (answer from: boxed)",
    ]
    assert texts(page, "dt")[:2] == ["Prompt, 4 tokens", "Output, 9 tokens"]


def test_samples_on_which_the_graders_differ_are_a_filter_of_their_own(opened):
    hidden = "return document.getElementsByName('differ')[0].parentElement.offsetParent === null"
    assert opened(samples(12)).execute_script(hidden)
    page = opened([replace(one, paper_correct=i < 2) for i, one in enumerate(samples(12))])
    assert not page.execute_script(hidden)
    click(page, "differ")  # right are 0, 3, 6, 9 and, by the paper's rules, 0 and 1
    assert count(page) == "4 of 12 samples"
    click(page, "verdict", "right")
    assert count(page) == "3 of 12 samples"
    click(page, "open")
    assert texts(page, "dt")[5] == "Verdict by the paper's rules"


def test_no_text_of_a_model_becomes_markup_or_runs(opened):
    page = opened(samples(20), title=HOSTILE.replace("\udfff", "").replace("\x00", ""))
    page.find_element("name", "text").send_keys("hacked = 1")
    click(page, "open")
    assert count(page) == "1 of 20 samples"
    script = "return [window.hacked ?? null, document.querySelectorAll('img, svg, script').length]"
    assert page.execute_script(script) == [None, 2]  # the page's own data and script
    output = "return JSON.stringify(document.querySelectorAll('dd pre')[1].textContent)"
    assert json.loads(page.execute_script(output)) == HOSTILE
    assert [line for line in page.get_log("browser") if line["level"] == "SEVERE"] == []
    page.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 4';"
        "document.body.append(s)"
    )
    assert page.execute_script("return window.hacked ?? null") is None  # the policy forbids it


def test_five_thousand_long_samples_stay_quick(opened):
    """Filtering and searching 15 MB of text takes a part of a second of the page's own time."""
    rows = [replace(one, output=f"{one.output}{' 3 + 4 = 7' * 300}") for one in samples(SHOWN + 1)]
    page = opened(rows)
    note = "The first 5000 of 5001 samples."
    assert page.find_element("css selector", "main > p").text == note
    assert count(page) == "5000 of 5000 samples"
    spent = page.execute_script(
        "const input = document.getElementsByName('text')[0], times = [];"
        "for (const text of ['number 49', '= 7', '']) {"
        "  const start = performance.now(); input.value = text;"
        "  input.dispatchEvent(new Event('input', { bubbles: true }));"
        "  document.body.offsetHeight; times.push(performance.now() - start); } return times;"
    )
    assert max(spent) < 2000, spent
    assert len(cards(page)) == 50


def test_dark_and_narrow_screens_are_served(opened):
    page = opened(samples(20))
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = page.execute_script(colour)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    assert page.execute_script(colour) != light
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    narrow = {"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    click(page, "open")
    wide = page.execute_script("return document.documentElement.scrollWidth")
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide == 360


def test_the_page_is_one_file_of_plain_data():
    page = render_page(samples(20), "t")
    data = page.partition('<script id="data" type="application/json">')[2].partition("</script>")[0]
    rows = json.loads(data)
    assert [row["output"] for row in rows["samples"]] == [s.output for s in samples(20)]
    assert "src=" not in page.replace(data, "")
    assert "http" not in page.replace(data, "").replace("http-equiv", "")
