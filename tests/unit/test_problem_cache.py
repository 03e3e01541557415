"""Generated problems that are kept between processes are those that the generator makes."""

import pytest

from eval.pocket.suites import pocket_problems
from eval.sets import problem_cache
from eval.sets.problem_cache import cached_pocket_problems

SPLIT = ("pocket-math", "valid", 0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(problem_cache, "user_cache_path", lambda _: tmp_path / "cache")
    return tmp_path / "cache"


def made(monkeypatch):
    """How often the generator has been asked since."""
    calls = []

    def counted(*arguments, **named):
        calls.append(arguments)
        return pocket_problems(*arguments, **named)

    monkeypatch.setattr(problem_cache, "pocket_problems", counted)
    return calls


def test_they_are_made_once_for_each_split_and_version(folder, monkeypatch):
    calls = made(monkeypatch)
    assert list(cached_pocket_problems(*SPLIT)) == pocket_problems("pocket-math", "valid")
    assert list(cached_pocket_problems(*SPLIT)) == pocket_problems("pocket-math", "valid")
    assert len(calls) == 1
    assert cached_pocket_problems("pocket-cmath", "valid", 0) != cached_pocket_problems(*SPLIT)
    assert len(calls) == 2
    monkeypatch.setattr(problem_cache, "version", lambda: "another generator")
    cached_pocket_problems(*SPLIT)
    assert len(calls) == 3
    assert any(folder.iterdir())


def test_what_is_damaged_is_made_again(folder, monkeypatch):
    cached_pocket_problems(*SPLIT)
    calls = made(monkeypatch)
    (file,) = folder.rglob("pocket-math-valid-0")
    whole = file.read_bytes()
    for damaged in (whole[:1000], whole.replace(b"Compute", b"compute", 1), b""):
        file.write_bytes(damaged)
        assert list(cached_pocket_problems(*SPLIT)) == pocket_problems("pocket-math", "valid")
        assert file.read_bytes() == whole
    assert len(calls) == 3


def test_where_nothing_can_be_kept_they_are_made_all_the_same(folder):
    folder.write_text("a file in the place of a folder")
    assert list(cached_pocket_problems(*SPLIT)) == pocket_problems("pocket-math", "valid")


def test_what_keeps_problems_is_no_part_of_what_makes_them():
    """Else every key of a stage would move with it."""
    assert not problem_cache.__name__.startswith(pocket_problems.__module__.rpartition(".")[0])
