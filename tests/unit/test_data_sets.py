"""The table of data sets: every row can be planned, and its rows are what it states."""

import hashlib
import json
from pathlib import Path

import pytest

from core.data.load import load_training_data
from core.data.sets import SETS, find_sets
from core.data.sources import File, Generated, Hub, Problems
from core.run.plan import count_rows, make_plan
from core.settings.resolve import resolve
from core.stages.chain import Chain
from eval.errors import BadValue, DamagedFile, MissingFile, UnknownName
from papers.deepseekmath_grpo import PAPER

CARDS = [
    line.split(",") for line in Path(__file__).with_name("training_sets.csv").read_text().split()
]
POCKET = [row for row in SETS.values() if row.name.startswith("pocket")]
MADE = [row for row in POCKET if isinstance(row.source, Problems)]
DEMONSTRATIONS = [row for row in POCKET if isinstance(row.source, Generated)]
ON_HUB = [row for row in SETS.values() if isinstance(row.source, Hub) and row.source.id]


@pytest.mark.parametrize(("paper", "data"), CARDS[1:])
def test_every_training_set_that_a_paper_names_has_its_row(paper, data):
    assert "+".join(one.name for one in find_sets(data)) == data, paper


@pytest.mark.parametrize("row", MADE, ids=lambda row: row.name)
def test_rows_that_are_generated_are_those_that_the_table_states(row):
    for split, n in (("train", row.n), ("valid", 300 * len(row.source.benchmarks))):
        rows = load_training_data(row.name, split)
        assert len(rows) == n
        assert set(rows.column_names) == set(row.columns)


@pytest.mark.long
@pytest.mark.parametrize("row", DEMONSTRATIONS, ids=lambda row: row.name)
def test_pocket_answers_have_the_mistakes_of_their_seed(row):
    one, again, other = (row.source.for_seed(s).rows(row.name, "train", None) for s in (3, 3, 4))
    assert len(one) == row.n
    assert one == again
    always_right = row.name == "pocket-demonstrations"
    assert (one == other) == always_right
    assert [r["prompt"] for r in one] == [r["prompt"] for r in other]


@pytest.mark.parametrize("row", SETS.values(), ids=lambda row: row.name)
def test_every_row_is_planned_or_refused_for_its_columns(row):
    arguments = (f"data={row.name}", "heldout_problems=0")
    if row.n == 1:
        with pytest.raises(BadValue, match="1 prompts do not fill one rollout"):
            make_plan(resolve(PAPER, arguments=arguments), 0)
    elif "answer" in (row.columns or ("answer",)) and "prompt" in (row.columns or ("prompt",)):
        plan = make_plan(resolve(PAPER, arguments=arguments), 0)
        known = row.n is not None
        assert (plan.batches != "known with the data") == known
    else:
        with pytest.raises(BadValue, match=f"data={row.name} has no column"):
            make_plan(resolve(PAPER, arguments=arguments), 0)


@pytest.mark.parametrize("row", ON_HUB, ids=lambda row: row.name)
def test_rows_of_the_hub_are_read_from_a_folder_of_their_name(row, tmp_path, monkeypatch):
    theirs = {path: f"what {path} says" for path in row.source.columns.values()}
    plain = {name: f"what {name} says" for name in row.columns or ("text",)}
    path = tmp_path / row.name / "train.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(theirs or plain) + "\n", encoding="utf-8")
    before = data_key(row.name)
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    (found,) = load_training_data(row.name)
    assert set(row.columns or plain) <= set(found)
    for ours, column in row.source.columns.items():
        said = found[ours][0]["content"] if ours == "completion" else found[ours]
        assert said == theirs[column]
    if "question" in row.source.columns:
        assert found["prompt"][0]["content"].startswith(found["question"] + "\n")
    read = data_key(row.name)
    path.write_text(json.dumps({**(theirs or plain), "more": 1}) + "\n", encoding="utf-8")
    assert len({before, read, data_key(row.name)}) == 3


def data_key(name):
    return Chain(resolve(PAPER, arguments=(f"data={name}",))).train.data.key


def test_what_nobody_published_says_where_it_is_looked_for():
    with pytest.raises(MissingFile, match=r"no public place .* gfpo-math-72k/train.jsonl"):
        load_training_data("gfpo-math-72k")


def test_the_rows_that_are_held_out_are_not_counted():
    counted = [
        count_rows(resolve(PAPER, arguments=(f"data={name}", "heldout_problems=100")))
        for name in ("pocket", "gsm8k+math", "pocket+gsm8k", "gsm8k+c4")
    ]
    assert counted == [12_000, 7473 + 7500 - 100, 12_000 + 7473 - 100, None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"prompt": "1"}\n', "lines: no column answer; there are prompt"),
        ("", "lines: there are no rows"),
        ('{"prompt": "1", "answer": "2"}\n[1]\n', "rows.jsonl, line 2: no JSON object"),
        ('{"prompt": "1", "answer":\n', "rows.jsonl, line 1: not JSON"),
        (None, "rows.jsonl: no such file"),
    ],
)
def test_a_file_that_is_not_what_its_row_states_is_refused(text, message, tmp_path, plug):
    path = tmp_path / "rows.jsonl"
    if text is not None:
        path.write_text(text)
    plug(f"DataSet(name='lines', columns=('prompt', 'answer'), source=File(Path({str(path)!r})))")
    with pytest.raises((DamagedFile, MissingFile), match=message):
        load_training_data("lines")


def test_a_file_of_another_digest_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "1"}\n')
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert File(path, digest).rows("lines", "train", None) == [{"prompt": "1"}]
    path.write_text('{"prompt": "2"}\n')
    with pytest.raises(DamagedFile, match=f"expected {digest}"):
        File(path, digest).rows("lines", "train", None)


@pytest.fixture
def plug(install):
    """Install a distribution with one data set, `lines`, or what stands in its place."""

    def put(made, name="lines"):
        text = (
            "from pathlib import Path\nfrom core.data.data_set import DataSet\n"
            f"from core.data.sources import File\nROWS = {made}\n"
        )
        install("plug", {name: "plugged:ROWS"}, {"plugged": text}, group="repro.data")

    return put


@pytest.mark.parametrize(
    ("made", "name", "message"),
    [
        ("3", "lines", "expected a core.data.data_set.DataSet of that name, got 3"),
        ("DataSet(name='other')", "lines", "DataSet of that name, got DataSet.name='other'"),
        ("1 / 0", "lines", "import failed with ZeroDivisionError"),
        ("DataSet(name='gsm8k')", "gsm8k", "'gsm8k' is provided twice: ours, plugged:ROWS"),
    ],
)
def test_what_another_distribution_registers_wrongly_is_named(made, name, message, plug):
    plug(made, name)
    with pytest.raises(BadValue, match=message):
        find_sets(name)


def test_the_nearest_name_may_be_of_another_distribution(plug):
    plug("DataSet(name='lines')")
    with pytest.raises(UnknownName, match="did you mean lines"):
        find_sets("linse")


def test_problems_of_several_benchmarks_take_turns():
    rows = Problems(("pocket-gsm8k", "pocket-math")).rows("both", "valid", None)
    assert [row["id"].rsplit("-valid-")[0] for row in rows] == ["pocket-gsm8k", "pocket-math"] * 300
