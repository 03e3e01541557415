import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from eval.errors import BadValue, UnknownName
from eval.tables import Block, Cell, Column, Row, Section, Table
from eval.tables.render import TEMPLATES
from eval.tables.report import (
    Answer,
    ClaimResult,
    Example,
    Examples,
    Field,
    File,
    Link,
    Passage,
    Picture,
    Report,
    render_report,
)

NASTY = "<b>&</b> a_b | *x*"
VOID = {"wbr", "meta", "img", "br"}
TABLE = Table(
    name="pocket",
    caption="pocket table",
    scale="cpu",
    heads=("Model",),
    columns=(Column("GSM8K"),),
    blocks=(
        Block("CoT", (Section("RL", (Row(("grpo",), (Cell(55.5, 51.2, 59.9, 500, seeds=3),)),)),)),
    ),
)
SEEDS = replace(
    TABLE,
    name="pocket-seeds",
    blocks=(
        Block(
            "CoT",
            (
                Section(
                    "RL",
                    (
                        Row(
                            ("+ one",),
                            (Cell(41.25, 31, 51, 500, path="../s.gz"),),
                            path="../r.json",
                        ),
                    ),
                ),
            ),
        ),
    ),
)
REPORT = Report(
    title="A paper",
    paper="a-paper",
    scale="cpu",
    summary="What happened.",
    claims=(
        ClaimResult(
            slug="up",
            statement="It goes up.",
            compare="grpo > start",
            verdict="held",
            effect=10.34,
            low=7.11,
            high=13.5,
            p=0.0004,
            holm=0.0123,
            seen=2.5,
            seeds=3,
            unit="points",
        ),
        ClaimResult(slug="not", statement=NASTY, compare="", verdict="untested", detail="no run"),
    ),
    rules="How they were judged.",
    tables=(TABLE,),
    pictures=(
        Picture(name="curves", caption="Reward", alt="reward rises", svg=b"<svg/>", path="p/c.svg"),
    ),
    settings=(Field(name="beta", value="0.04", source="s4.2"),),
    caveats=("Not the paper's reward.",),
    passages=(Passage(title="Batch plan", text="  16 x 64\n  one update <x>"),),
    versions={"torch": "2.13.0"},
    records=(File(name="results/a.json", path="../a.json", text="grpo, seed 0"),),
    address="https://arxiv.org/abs/1",
    place="arXiv 1",
    scales=(Link(name="gpu", path="../gpu/report", text="Nothing held."),),
    chosen="The first of each kind.",
    examples=(
        Examples(
            suite="pocket-gsm8k",
            rows=(
                Example(
                    because="Became right",
                    problem="p-1",
                    question="How many?",
                    answers=(
                        Answer(by="start", verdict="wrong", text="x <b>", more=7, path="../b.gz"),
                        Answer(by="grpo", verdict="right", text="y `z`", more=0, path="../t.gz"),
                    ),
                ),
            ),
            notes=("Became wrong: none.",),
        ),
    ),
    seeds=SEEDS,
    printed=(replace(TABLE, name="printed", caption="printed table"),),
)


class Outline(HTMLParser):
    """Tags in order, with a check that every opened element is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def named(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.mark.parametrize("fmt", ["md", "html"])
def test_every_part_is_on_the_page(fmt):
    text = render_report(REPORT, fmt)
    for part in (
        "A paper",
        "a-paper",
        "cpu",
        "What happened.",
        "It goes up.",
        "grpo &gt; start",
        "held",
        "+10.3",
        "[+7.1, +13.5]",
        "points",
        "0.001",
        "0.012",
        "2.5",
        "How they were judged.",
        "untested",
        "no run",
        "55.5",
        "[51.2, 59.9]",
        "n=500×3",
        "pocket table",
        "Reward",
        "reward rises",
        "beta",
        "0.04",
        "s4.2",
        "reward.",
        "Batch plan",
        "  16 x 64",
        "torch 2.13.0",
        "results/a.json",
        "grpo, seed 0",
        "../a.json",
        "https://arxiv.org/abs/1",
        "arXiv 1",
        f"../gpu/report.{fmt}",
        "Nothing held.",
        "The first of each kind.",
        "Became right",
        "How many?",
        "x <b>" if fmt == "md" else "x &lt;b&gt;",
        "7 more characters",
        "../b.gz",
        "../t.gz",
        "y `z`",
        "Became wrong: none.",
        "41.3",
        "printed table",
    ):
        assert (part if fmt == "html" else part.replace("&gt;", ">")) in text, part


def test_headings_come_in_order_and_only_for_parts_that_exist():
    titles = [
        "Claims",
        "Benchmarks",
        "Samples before and after",
        "Figures",
        "Every seed",
        "Printed numbers",
        "Caveats",
        "Settings at cpu scale",
        "Batch plan",
        "Versions",
        "Records",
    ]
    assert re.findall(r"^## (.*)$", render_report(REPORT, "md"), re.MULTILINE) == titles
    assert re.findall(r"<h2[^>]*>(.*)</h2>", render_report(REPORT, "html")) == titles
    bare = Report(title="A", paper="a", scale="cpu")
    assert "##" not in render_report(bare, "md")
    assert "<h2" not in render_report(bare, "html")


def test_the_page_is_well_formed_and_accessible_and_loads_its_figures_alone():
    page = Outline(render_report(REPORT, "html"))
    assert not page.open
    assert page.named("html") == [{"lang": "en"}]
    assert [attrs["alt"] for attrs in page.named("img")] == ["reward rises"]
    assert [attrs["src"] for attrs in page.named("img")] == [p.path for p in REPORT.pictures]
    assert not page.named("link") + page.named("script")
    assert len(page.named("table")) == len(page.named("caption")) == 5
    assert {attrs["scope"] for attrs in page.named("th")} == {"col", "row", "rowgroup"}
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.named(
        "meta"
    )
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
    assert levels == [1, 2, 2, 2, 3, 4] + [2] * 8
    assert {"../r.json", "../s.gz"} <= {attrs["href"] for attrs in page.named("a")}
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_the_contents_are_all_headings_in_order_for_a_wide_page_and_for_a_narrow_one():
    text = render_report(REPORT, "html")
    headings = re.findall(r'<h2 id="([^"]+)">', text)
    assert len(headings) == len(re.findall("<h2", text)) == 11
    assert re.findall(r'<a href="#([^"]+)"', text) == headings * 2
    assert Outline(text).named("details")[0] == {"class": "folded"}


def test_text_of_others_is_escaped():
    assert "&lt;b&gt;&amp;&lt;/b&gt; a_<wbr>b | *x*" in render_report(REPORT, "html")
    assert r"\<b>&\</b> a_b \| \*x\*" in render_report(REPORT, "md")
    assert "one update &lt;x&gt;" in render_report(REPORT, "html")
    assert "one update <x>" in render_report(REPORT, "md")


@pytest.mark.parametrize("missing", ["low", "high", "p"])
def test_a_comparison_without_interval_or_p_is_refused(missing):
    with pytest.raises(BadValue, match="a comparison needs all of them"):
        replace(REPORT.claims[0], **{missing: None})


def test_a_comparison_without_seeds_is_refused():
    with pytest.raises(BadValue, match="0 seeds"):
        replace(REPORT.claims[0], seeds=0)


def test_unknown_format():
    with pytest.raises(UnknownName, match="pdf"):
        render_report(REPORT, "pdf")


def test_the_same_report_gives_the_same_text():
    assert render_report(REPORT, "html") == render_report(replace(REPORT), "html")


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1])
def test_text_contrast_is_at_least_wcag_aa_in_both_schemes(scheme):
    css = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    palette = dict(re.findall(r"--(\w+): (#\w{6});", css.split(":root {")[1 + scheme]))
    assert set(palette) == {
        "paper",
        "ink",
        "soft",
        "line",
        "band",
        "held",
        "refuted",
        "tie",
        "undecided",
        "blocked",
        "unhealthy",
        "equal",
        "link",
    }
    for ground in ("paper", "band"):
        for name in palette.keys() - {"paper", "line", "band", "equal"}:
            light, dark = sorted((luminance(palette[name]), luminance(palette[ground])))[::-1]
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (ground, name)


def test_the_page_opens_in_a_browser_and_fits_a_phone(tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed: the report was NOT opened in a browser")
    (tmp_path / "report.html").write_text(render_report(REPORT, "html"), encoding="utf-8")
    # Headless windows have a least width; a frame of 360 pixels does not.
    (tmp_path / "phone.html").write_text(
        '<iframe id="f" src="report.html" style="width:360px;height:640px"></iframe><p id="w"></p>'
        "<script>onload=()=>{const d=document.getElementById('f').contentDocument.documentElement;"
        "document.getElementById('w').textContent='width '+d.scrollWidth+' '+"
        "d.querySelectorAll('table').length}</script>",
        encoding="utf-8",
    )
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--allow-file-access-from-files",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=3000",
            "--dump-dom",
            f"file://{tmp_path / 'phone.html'}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    width, tables = re.search(r"width (\d+) (\d+)</p>", done.stdout).groups()
    assert int(width) <= 360
    assert tables == "5"
