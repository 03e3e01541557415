"""The page of samples in a real browser: filters, addresses, keys, and no model's text runs."""

import json
from dataclasses import replace
from shutil import copytree

import pytest

from core.records.record import read_records
from core.records.schema import runs_of
from eval.samples.prompted_samples import PromptedSample
from eval.tables.page import SHOWN, SampleSet, render_page

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
    level=1,
    subject="Algebra",
)


def samples(count):
    """One of each problem: every third right, wrong, no verdict; every fourth cut; one odd."""
    made = [
        replace(
            ONE,
            id=f"q{i}",
            level=1 + i % 2,
            correct=(True, False, None)[i % 3],
            truncated=i % 4 == 0,
            output=f"output number {i}.",
        )
        for i in range(count)
    ]
    odd = dict.fromkeys(("output", "extracted", "reason", "rule"), HOSTILE)
    made[7] = replace(made[7], id="odd", prompt=HOSTILE, answer=HOSTILE, **odd)
    return made


@pytest.fixture
def opened(browser, tmp_path):
    """Open the page of some samples; gives the browser."""

    def open_page(*rows, title="GSM8K by a model", at=""):
        path = tmp_path / "page.html"
        models = ["before", "after"][: len(rows)]
        path.write_text(render_page([SampleSet("gsm8k", rows)], models, title), encoding="utf-8")
        browser.get("about:blank")  # else another address of the same page does not load it
        browser.get(path.as_uri() + at)
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
    assert count(page) == "120 of 120 problems"
    assert len(cards(page)) == 50
    more = page.find_element("id", "more")
    more.click()
    more.click()
    assert len(cards(page)) == 120
    assert not more.is_displayed()
    for value, name in (("right", "right"), ("wrong", "wrong"), ("none", "no verdict")):
        click(page, "verdict", value)
        assert count(page) == "40 of 120 problems"
        label = page.find_element("css selector", f"input[value={value}] + span").text
        assert label == f"{name} 40"
        assert set(texts(page, ".verdict")) == {name}
    click(page, "verdict", "all")
    click(page, "truncated")
    assert count(page) == "30 of 120 problems"
    click(page, "truncated")
    search = page.find_element("name", "text")
    search.send_keys("OUTPUT number 11")
    assert count(page) == "11 of 120 problems"  # 11 and 110 to 119
    search.send_keys("9.")
    assert count(page) == "1 of 120 problems"
    cards(page)[0].click()
    assert texts(page, ".text") == ["How many apples?", "3", "output number 119."]
    assert texts(page, "details h2") == ["Prompt, 4 tokens", "Reference", "before"]
    assert texts(page, ".facts") == ["9 tokens"]
    assert texts(page, ".judged") == ["no verdict: 3; same text (answer from: boxed)"]
    search.clear()
    page.execute_script("arguments[0].value = '2'", page.find_element("name", "level"))
    search.send_keys("output")
    assert count(page) == "59 of 120 problems"  # one of the sixty is the odd one


def test_two_models_stand_side_by_side_and_what_changed_is_a_filter(opened):
    before = samples(12)  # the odd one is asked of the first model alone
    after = [replace(one, correct=i < 6) for i, one in enumerate(before) if one.id != "odd"]
    page = opened(before, after)
    told = {"all": 12, "better": 4, "worse": 2, "right": 2, "wrong": 3}
    for value, number in told.items():
        click(page, "verdict", value)
        assert count(page) == f"{number} of 12 problems"
    assert sum(told.values()) - 12 == 11  # each that both were asked is in one of the four
    click(page, "verdict", "worse")
    cards(page)[0].find_element("css selector", "summary").click()
    assert texts(page, ".verdicts") == ["right → wrong"] * 2
    assert texts(page, ".side h2") == ["before", "after"]
    places = "return [...document.querySelectorAll('.side')].map((e) => e.offsetLeft)"
    left, right = page.execute_script(places)
    assert left < right


def test_samples_of_a_problem_are_one_group(opened):
    rows = [replace(one, id=f"q{i // 4}", sample=i % 4) for i, one in enumerate(samples(24)[8:])]
    page = opened(rows)
    assert count(page) == "4 of 4 problems"
    assert texts(page, ".verdicts") == [f"{n} of 4 right" for n in (1, 2, 1, 1)]
    click(page, "verdict", "some")
    assert count(page) == "4 of 4 problems"
    click(page, "unfold")
    assert len(texts(page, ".answered")) == 16


def test_an_address_opens_what_it_names_and_follows_what_is_done(opened):
    page = opened(samples(120), at="#q70")
    assert page.find_element("id", "gsm8k/q70").get_attribute("open")
    assert page.execute_script("return document.activeElement.parentElement.id") == "gsm8k/q70"
    click(page, "verdict", "right")
    page.find_element("name", "text").send_keys("number 11")
    address = page.current_url.partition("#")[2]
    assert "verdict=right" in address
    again = opened(samples(120), at=f"#{address}")
    assert count(again) == count(page) == "3 of 120 problems"
    assert again.find_element("name", "text").get_attribute("value") == "number 11"


def test_keys_walk_through_the_problems(opened):
    page = opened(samples(60))
    at = "return document.activeElement.parentElement.id"
    for keys, name in (("jj", "gsm8k/q1"), ("k", "gsm8k/q0"), ("j" * 52, "gsm8k/q52")):
        page.switch_to.active_element.send_keys(keys)
        assert page.execute_script(at) == name
    page.switch_to.active_element.send_keys("o")
    assert texts(page, "details[open].sample .text")[2] == "output number 52."
    page.switch_to.active_element.send_keys("o/")
    assert texts(page, "details[open].sample") == []
    page.switch_to.active_element.send_keys("jo")
    assert page.find_element("name", "text").get_attribute("value") == "jo"


def test_formulas_are_drawn_or_shown_as_their_source(opened):
    text = r"It costs $5 or $6: \(\frac{1}{2}\), \[x^2\] and $$\left( y$$; \boxed{7} < $z$"
    page = opened([replace(ONE, output=text)])
    click(page, "unfold")
    drawn = "return [...document.querySelectorAll('math')].map((e) => e.textContent)"
    assert page.execute_script(drawn) == ["12", "x2", "7", "z"]
    places = (
        "return [...document.querySelector('mfrac').children].map((e) => e.getClientRects()[0])"
    )
    above, below = page.execute_script(places)
    assert above["bottom"] <= below["top"] + 1  # the half has its 1 over its 2
    assert r"$5 or $6" in texts(page, ".text")[2]
    assert r"$$\left( y$$" in texts(page, ".text")[2]
    click(page, "source")
    assert texts(page, ".text")[2] == text


def test_samples_on_which_the_graders_differ_are_a_filter_of_their_own(opened):
    hidden = "return document.getElementsByName('differ')[0].parentElement.offsetParent === null"
    assert opened(samples(12)).execute_script(hidden)
    page = opened([replace(one, paper_correct=i < 2) for i, one in enumerate(samples(12))])
    assert not page.execute_script(hidden)
    click(page, "differ")  # right are 0, 3, 6, 9 and, by the paper's rules, 0 and 1
    assert count(page) == "4 of 12 problems"
    click(page, "verdict", "right")
    assert count(page) == "3 of 12 problems"
    click(page, "unfold")
    assert all("by the paper's rules wrong" in said for said in texts(page, ".judged"))


def test_no_text_of_a_model_becomes_markup_or_runs(opened):
    page = opened(samples(20), title=HOSTILE.replace("\udfff", "").replace("\x00", ""))
    page.find_element("name", "text").send_keys("hacked = 1")
    click(page, "unfold")
    assert count(page) == "1 of 20 problems"
    script = "return [window.hacked ?? null, document.querySelectorAll('img, svg, script').length]"
    assert page.execute_script(script) == [None, 2]  # the page's own data and script
    output = "return JSON.stringify(document.querySelectorAll('.text')[2].textContent)"
    assert json.loads(page.execute_script(output)) == HOSTILE
    assert [line for line in page.get_log("browser") if line["level"] == "SEVERE"] == []
    page.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 4';"
        "document.body.append(s)"
    )
    assert page.execute_script("return window.hacked ?? null") is None  # the policy forbids it


def test_ten_thousand_long_samples_stay_quick(opened):
    """Filtering and searching 30 MB of text takes a part of a second of the page's own time."""
    rows = [replace(one, output=f"{one.output}{' 3 + 4 = 7' * 300}") for one in samples(SHOWN + 1)]
    page = opened(rows)
    note = f"The first {SHOWN} of {SHOWN + 1} samples."
    assert page.find_element("css selector", "main > p").text == note
    assert count(page) == f"{SHOWN} of {SHOWN} problems"
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
    click(page, "unfold")
    wide = page.execute_script("return document.documentElement.scrollWidth")
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide == 360


def test_the_page_is_one_file_of_plain_data():
    page = render_page([SampleSet("gsm8k", (samples(20),))], ["model"], "t")
    data = page.partition('<script id="data" type="application/json">')[2].partition("</script>")[0]
    rows = json.loads(data)
    outputs = [sample["output"] for row in rows["problems"] for sample in row["sides"][0]]
    assert outputs == [s.output for s in samples(20)]
    assert "src=" not in page.replace(data, "")
    assert "http" not in page.replace(data, "").replace("http-equiv", "")


def test_a_run_leaves_the_page_of_its_answers_and_the_next_one_as_it_is(
    run_once, repro, root, settings, browser
):
    asked = ("run", "deepseekmath-grpo", "--jobs", "1", *settings)
    copytree(run_once(asked)[0], root, dirs_exist_ok=True)
    (path,) = root.glob("runs/train-*/samples.html")
    browser.get(path.as_uri())
    (run,) = runs_of(read_records())
    suites = {row["benchmark"] for row in run["scores"]}
    names = texts(browser, "select[name=asked] option")
    assert suites <= {*names}
    for row in run["scores"]:
        script = "return page.problems.filter((p) => p.asked === arguments[0])"
        problems = browser.execute_script(script, row["benchmark"])
        right = [one["sides"][1][0]["verdict"] == "right" for one in problems]
        assert 100 * sum(right) / len(right) == row["value"]
    written = path.stat().st_mtime_ns
    assert repro(*asked).exit_code == 0
    assert path.stat().st_mtime_ns == written
    path.unlink()
    assert "samples.html" in repro(*asked).stderr
    assert path.exists()
