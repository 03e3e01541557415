"""The notebook in examples/, executed: its outputs are what the records give now, word for word.

`make golden` (GOLDEN=1) writes it again with its outputs; the diff is reviewed.
"""

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from core.pages.verdicts import verdict_line
from core.paper.registry import find_paper
from core.records.record import read_records, standard
from core.records.schema import claims_of

ROOT = Path(__file__).parents[2]
PATH = ROOT / "examples" / "claims.ipynb"
TEXTS = ("text/plain", "text/markdown")  # of a figure's bytes matplotlib's version decides


def read():
    return nbformat.read(PATH, as_version=4)


@pytest.fixture(scope="module")
def executed():
    """The notebook after a kernel of its own has run it in the folder that it lies in."""
    notebook = read()
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": PATH.parent}},
    )
    client.execute()
    return notebook


def texts(notebook):
    """What each cell of code wrote, by its name; of a picture that it is one."""
    return {
        cell["id"]: [
            output.get("text") or {kind: output["data"].get(kind) for kind in TEXTS}
            for output in cell["outputs"]
        ]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    }


def test_its_outputs_are_those_of_the_records_now(executed):
    written = read()
    if os.environ.get("GOLDEN") == "1":
        written["cells"] = executed["cells"]
        nbformat.write(written, PATH)
    assert texts(executed) == texts(written), f"{PATH.name} differs: `make golden` rewrites it"


def test_its_verdicts_are_those_of_the_record(executed):
    slug = find_paper("deepseekmath-grpo").slug
    (recorded,) = claims_of(standard(read_records(slug)), "cpu")
    lines = {row["id"]: verdict_line(row) for row in recorded["verdicts"]}
    ((claim,), (same,), (own,)) = (texts(executed)[cell] for cell in ("claim", "recorded", "own"))
    assert lines["online-rft-beats-rft"] in claim
    assert same.splitlines() == [f"same {line}" for line in lines.values()]
    assert lines["grpo-beats-online-rft"] in own


def test_it_shows_a_figure(executed):
    (figure,) = (cell["outputs"] for cell in executed["cells"] if cell["id"] == "curves")
    assert re.match("iVBORw0KGgo", figure[0]["data"]["image/png"])  # the first bytes of a PNG
