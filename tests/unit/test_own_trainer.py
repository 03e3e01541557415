"""Classes of trainers that a run names: found, refused, and part of the key of a training."""

from typing import Any

import pytest

import core
from core.configs.idle import effective_fields
from core.settings.effective import effective
from core.settings.own_trainer import load_trainer, trainer_key
from core.settings.resolve import resolve
from core.settings.run_settings import IDLE, RunSettings
from eval.errors import BadValue, MissingFile
from papers.dapo import PAPER as DAPO

TEXT = """
from core import GRPOTrainer
from core.configs.grpo import GRPOConfig as Config

class Doubled(GRPOTrainer):
    def advantages(self, scored):
        return {factor} * super().advantages(scored)
"""


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch):
    """The files that a test names are registered for it alone."""
    monkeypatch.setenv("REPRO_PLUGINS", "")


def written(folder, name, factor=2):
    file = folder / f"{name}.py"
    file.write_text(TEXT.format(factor=factor))
    return f"{file}:Doubled"


def test_a_class_is_found_in_a_file_and_in_a_package(tmp_path):
    assert issubclass(load_trainer(written(tmp_path, "doubled_one")), core.GRPOTrainer)
    assert load_trainer("core.trainers.rloo:RLOOTrainer") is core.RLOOTrainer


@pytest.mark.parametrize(
    ("name", "error", "line"),
    [
        ("Doubled", BadValue, "trainer=Doubled: expected module:Class or FILE.py:Class"),
        ("core:", BadValue, "expected module:Class or FILE.py:Class"),
        ("core:GRPOConfig", BadValue, "expected a class that extends a trainer of core"),
        ("core:Nothing", BadValue, "found None"),
        ("no.such.module:Trainer", BadValue, "import failed with ModuleNotFoundError"),
        ("nowhere/none.py:Trainer", MissingFile, "no such file"),
    ],
)
def test_a_name_of_no_trainer_is_refused(name, error, line):
    with pytest.raises(error, match=line):
        load_trainer(name)


def test_the_key_is_that_of_the_source_and_not_of_the_place(tmp_path):
    first, same, other = (
        written(tmp_path, name, factor) for name, factor in (("one", 2), ("two", 2), ("three", 3))
    )
    assert trainer_key(first) == trainer_key(same) != trainer_key(other)
    settings: list[Any] = [
        effective(resolve(DAPO, arguments=arguments))["settings"]
        for arguments in ((), (f"trainer={first}",), (f"trainer={other}",))
    ]
    assert "trainer" not in settings[0]
    assert settings[1]["trainer"] == trainer_key(first) != settings[2]["trainer"]


def test_a_run_without_an_own_trainer_has_the_key_that_it_had_before():
    assert "trainer" not in effective_fields(RunSettings(model="m"), IDLE)
