"""Notes and folders of finished stages: what was edited, cut or added is named, on one line."""

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evaluate.sample_folder import SampleFolder
from core.records.files import folder_files
from core.records.found import models_here
from core.records.notes import DIGEST, read_note, write_note
from core.records.places import DONE
from core.run.leftovers import end_note, names_in
from core.spread.checkpoints import SEAL, check_seal
from core.stages.browse import is_of, seal_of
from core.stages.stage import Stage
from core.stages.training import TRAINED, train_model
from core.stages.watch.wandb_rows import ID, run_id
from eval.errors import DamagedFile

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@dataclass(frozen=True)
class Written(Stage):
    """A stage that writes a file of samples."""

    name = "train"
    text: str = "one"

    @property
    def inputs(self):
        return {"text": self.text}

    @property
    def subject(self):
        return "words"

    def work(self, folder):
        (folder / "samples.jsonl.gz").write_text(self.text)
        return {"weights": "0" * 64, "curves": {"held_out/accuracy": [[1, 45.5]]}}


@pytest.fixture
def stage(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    made = Written()
    made.run()
    return made


def edit(path, change):
    """Change the text of a file."""
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))


def raised(text):
    return text.replace("45.5", "99")


def cut(text):
    return text[: len(text) // 2]


def without_digest(text):
    return json.dumps({k: v for k, v in json.loads(text).items() if k != DIGEST})


@given(st.dictionaries(st.text(), VALUES, max_size=3))
def test_a_note_gives_back_what_was_written(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("notes") / "note.json"
    write_note(path, content)
    assert read_note(path, "") == content


def field_twice(text):
    return text.replace("{", '{"outputs": {},', 1)


@pytest.mark.parametrize(
    "change", [raised, cut, without_digest, field_twice, lambda _: "[[[", lambda _: "{}"]
)
def test_every_reader_refuses_an_edited_note(stage, change):
    path = stage.folder / DONE
    edit(path, change)
    for read in (stage.outputs, stage.run, lambda: end_note(stage.folder), models_here):
        with pytest.raises(DamagedFile) as error:
            read()
        assert str(path) in str(error.value)
        assert "\n" not in str(error.value)


def test_a_note_of_other_inputs_is_refused(stage):
    other = Written("two")
    other.run()
    (stage.folder / DONE).write_bytes((other.folder / DONE).read_bytes())
    with pytest.raises(DamagedFile, match="other inputs"):
        stage.outputs()


def test_the_outputs_of_a_training_are_a_note(tmp_path):
    write_note(tmp_path / TRAINED, {"curves": {"held_out/accuracy": [[1, 45.5]]}})
    edit(tmp_path / TRAINED, raised)
    unused = (None, 0, None, tmp_path)
    with pytest.raises(DamagedFile, match=TRAINED):
        train_model(*unused, tmp_path)


def test_the_note_beside_samples_is_one(tmp_path):
    write_note(tmp_path / "gsm8k.json", {"asked": {"limit": 45.5}, "digest": "0" * 64})
    edit(tmp_path / "gsm8k.json", raised)
    folder = SampleFolder(folder=tmp_path, name="gsm8k", model="m", asked={"limit": 99})
    with pytest.raises(DamagedFile, match="altered"):
        folder.samples(lambda _: [])


@pytest.mark.parametrize("name", ["note.txt", "model/extra.bin", "outcomes/other.jsonl.gz", ".x"])
def test_an_added_file_is_named(stage, name):
    path = stage.folder / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    with pytest.raises(DamagedFile, match=rf"{name} was added"):
        stage.outputs()


@pytest.mark.parametrize(
    "name",
    [
        "samples.html",
        "model/README.md",
        "outcomes/samples.jsonl.gz",
        ".samples.html.42",
        "outcomes/.samples.jsonl.gz.x7_q",
    ],
)
def test_what_later_commands_write_may_be_added(stage, name):
    path = stage.folder / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    assert stage.outputs() == stage.run()


@pytest.mark.parametrize("text", ["", "tw", None])
def test_a_cut_or_deleted_file_is_named(stage, text):
    path = stage.folder / "samples.jsonl.gz"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(DamagedFile, match=path.name):
        stage.outputs()


def test_a_checkpoint_with_an_added_file_is_refused(tmp_path):
    (tmp_path / "model.bin").write_text("weights")
    write_note(tmp_path / SEAL, folder_files(tmp_path))
    check_seal(tmp_path)
    (tmp_path / "optimizer.bin").touch()
    with pytest.raises(DamagedFile, match=r"optimizer\.bin was added"):
        check_seal(tmp_path)


@given(st.binary(max_size=300), st.integers(0, 400), st.binary(max_size=3))
def test_a_page_is_used_again_only_as_it_was_written(tmp_path_factory, body, place, change):
    path = tmp_path_factory.mktemp("pages") / "samples.html"
    page = b'<meta name="key" content="k">' + body
    whole = page + seal_of(page)
    path.write_bytes(whole)
    assert is_of(path, "k")
    assert not is_of(path, "other")
    damaged = whole[:place] + change + whole[place + 2 :]
    path.write_bytes(damaged)
    assert is_of(path, "k") == (damaged == whole)


def test_a_page_that_is_no_text_is_named(tmp_path, capsys):
    path = tmp_path / "samples.html"
    path.write_bytes(b"\xff\xfe" * 100)
    assert not is_of(path, "k")
    assert "samples.html was altered or cut off" in capsys.readouterr().err


def test_the_id_of_a_wandb_run_stays_and_an_edited_one_is_refused(tmp_path):
    path = tmp_path / ID
    assert run_id(path) == run_id(path)
    path.write_text(path.read_text().replace(run_id(path), "another"))
    with pytest.raises(DamagedFile, match=r"altered.*delete it to begin another W&B run"):
        run_id(path)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)), st.integers(0, 2**64 - 1))
def test_names_are_digests_and_keys_and_never_the_digits_of_a_number(numbers, key):
    names = {f"{key:016x}", f"{key:064x}"}
    assert names_in({"numbers": numbers}) == set()
    assert names_in([numbers, f"runs/train-seed0-{key:016x}", {f"{key:064x}": numbers}]) == names
