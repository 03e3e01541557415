"""Held-out problems come from all parts of the data and are judged as their benchmarks are."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.data.data_set import DataSet
from core.data.load import load_training_data
from core.data.sources import File
from core.records.passed import Passed
from core.records.schema import runs_of
from core.run.order import run_order
from core.run.plan import count_rows, make_plan
from core.run.request import Order
from core.run.units import make_rows
from core.settings.resolve import resolve
from core.settings.run_settings import BENCHMARK, HELD_OUT
from core.stages.chain import Chain
from core.stages.data import read_rows, split_rows, write_rows
from core.stages.held_out import split_as_asked
from core.stages.watch.heldout import grade_rows
from core.verdicts.regrade import Regrader
from eval.errors import BadValue, ReproError
from eval.samples.evaluation import Completion
from papers.deepseekmath_grpo import PAPER


def rows_of(train, valid=0):
    made = [{"split": "train", "id": n} for n in range(train)]
    return made + [{"split": "valid", "id": -1 - n} for n in range(valid)]


@given(st.integers(1, 60), st.integers(0, 40), st.integers(0, 50))
def test_no_row_is_trained_on_and_held_out(train, valid, heldout):
    rows, number = rows_of(train, valid), heldout
    if heldout > valid > 0 or (not valid and heldout >= train):
        with pytest.raises(BadValue, match=f"heldout_problems={heldout}: the data has .* rows"):
            split_rows(rows, heldout, given=True)
        number = valid or train // 5
    else:
        assert split_rows(rows, heldout, given=True) == split_rows(rows, heldout)
    trained, held = split_rows(rows, heldout)
    assert len(held) == number
    used = [row["id"] for row in (*trained, *held)]
    assert len(set(used)) == len(used)
    assert len(trained) == (train if valid else train - number)


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A function that writes a file of rows and gives it as a setting."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))

    def write(count, name="rows.jsonl", **columns):
        row = {"prompt": "1?", **(columns or {"answer": "1"})}
        Path(name).write_text(f"{json.dumps(row)}\n" * count)
        return f"data={name}"

    return write


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 2000), st.sampled_from(["cpu", "gpu", "paper"]))
def test_a_fifth_of_small_data_is_held_out_unless_a_number_is_given(file, count, scale):
    data, usual = file(count), {"cpu": 300, "gpu": 200, "paper": 0}[scale]
    asked = resolve(PAPER, scale=scale, arguments=(data,))
    assert asked.run.heldout_problems == min(usual, count // 5)
    assert count_rows(asked) == count - asked.run.heldout_problems
    source = asked.values["heldout_problems"].source
    assert source.endswith("a fifth of the rows") == (asked.run.heldout_problems < usual)
    given = resolve(PAPER, scale=scale, arguments=(data, f"heldout_problems={usual}"))
    assert given.run.heldout_problems == usual
    if usual >= count:
        with pytest.raises(BadValue, match=f"={usual}: the data has {count} rows only; ask for at"):
            make_plan(given, 0)


def test_what_a_paper_says_of_held_out_problems_is_given_as_on_the_command_line(file):
    own = replace(PAPER, profiles={"cpu": {"heldout_problems": 64}})
    with pytest.raises(BadValue, match="heldout_problems=64: the data has 64 rows only"):
        make_plan(resolve(own, arguments=(file(64),)), 0)


def test_rows_without_answers_are_not_held_out(file):
    asked = ("rewards=LengthWithin(limit=9)", file(64, reply="1"))
    plan = make_plan(resolve(PAPER, arguments=asked), 0)
    assert plan.resolved.run.heldout_problems == 0
    with pytest.raises(BadValue, match="has no column answer"):
        make_plan(resolve(PAPER, arguments=(*asked, "heldout_problems=4")), 0)
    with pytest.raises(BadValue, match="has no column answer"):
        make_plan(resolve(PAPER, arguments=asked[1:]), 0)  # the paper's reward judges by it


def test_data_whose_rows_are_counted_late_is_said_to_hold_out_fewer(file, monkeypatch, capsys):
    file(40, "numina-math-1.5.jsonl", problem="1?", solution="1", answer="1")
    folder = Path("data/numina-math-1.5")
    folder.mkdir(parents=True)
    Path("numina-math-1.5.jsonl").rename(folder / "train.jsonl")
    monkeypatch.setenv("REPRO_DATA", "data")
    asked = ("data=numina-math-1.5", "prompt_column=problem")
    for more, held in (((), 8), (("heldout_problems=5",), 5)):
        chain = Chain(resolve(PAPER, arguments=(*asked, *more)))
        make_rows([chain])
        said = capsys.readouterr().err
        assert ("held out: 8 of 40 rows of numina-math-1.5, not 300" in said) == (not more)
        assert len(split_as_asked(chain.resolved, chain.data.folder, says=False)[1]) == held
    with pytest.raises(BadValue, match="heldout_problems=40: the data has 40 rows only"):
        make_rows([Chain(resolve(PAPER, arguments=(*asked, "heldout_problems=40")))])


@pytest.mark.parametrize("n", [None, 7])
def test_the_rows_of_a_registered_file_are_counted(file, n):
    file(30)
    row = DataSet(name="mine", source=File(Path("rows.jsonl")), n=n)
    assert row.rows == 30
    assert replace(row, source=File(Path("gone.jsonl"))).rows == n


def test_rows_held_out_of_joined_data_are_of_every_part():
    rows = [{"split": "train", "part": part} for part in "abcd" for _ in range(50)]
    _, held = split_rows(rows, 8)
    assert [row["part"] for row in held] == list("aabbccdd")


@given(st.integers(2, 20), st.integers(1, 4))
def test_rows_held_out_of_parts_in_turn_are_of_every_part(n, parts):
    rows = [{"split": "valid", "part": place % parts} for place in range(30 * n)]
    _, held = split_rows(rows, 30)
    assert {row["part"] for row in held} == set(range(parts))


def rights(texts, rows):
    answers = [Completion(text, 1, truncated=False) for text in texts]
    return sum(sample.correct is True for sample in grade_rows(answers, rows))


@pytest.fixture
def boxes(tmp_path, monkeypatch):
    """Training data of two sets, in one of which a question has two answers."""
    lines = [{"id": str(n), "question": "?", "answer": "1", "language": "en"} for n in range(3)]
    for name in ("gsm8k", "math"):
        path = tmp_path / "data" / name / "train.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    both = {"id": "2", "mode": "all", "answers": ["-2", "1"], "last_box": "1"}
    path.with_name("train_multibox.jsonl").write_text(f"{json.dumps(both)}\n")
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "data"))
    return tmp_path


def test_a_question_with_several_answers_asks_for_all_of_them(boxes):
    data = load_training_data("gsm8k+math")
    write_rows(data, None, ("prompt", "answer"), boxes)
    rows = [row for row in read_rows(boxes) if row["answers"]]
    assert len(rows) == 1
    texts = {r"\boxed{1}": 0, r"\boxed{-2}": 0, r"\boxed{1} and \boxed{-2}": 1}
    assert {text: rights([text], rows) for text in texts} == texts
    plain = [row for row in read_rows(boxes) if not row["answers"]]
    assert rights([r"\boxed{1}"] * 5, plain) == 5


def test_rows_without_such_questions_have_no_such_column():
    assert "answers" not in load_training_data("pocket", split="valid").column_names


def test_on_a_gpu_there_are_held_out_problems_for_the_claims_that_read_them():
    assert HELD_OUT in {need.name for claim in PAPER.claims for _, need in claim.needs}
    resolved = resolve(PAPER, scale="gpu")
    assert resolved.run.heldout_problems == 200
    assert (
        resolved.preview().max_steps // resolved.run.heldout_every >= 9
    )  # three of them in the last third


WATCHED = (
    *("max_steps=2", "num_generations=2", "per_device_train_batch_size=4"),
    *("gradient_accumulation_steps=1", "heldout_every=1", "heldout_problems=0"),
    *("heldout_benchmarks=gsm8k,pocket-math", "heldout_limit=5"),
    *("eval_limit=5", "at_k_benchmarks=0"),
)


def test_benchmarks_scored_while_training_have_the_scores_before_and_after(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    (record,) = runs_of(run_order(Order(paper=PAPER, arguments=WATCHED)).runs)
    rows = zip(record["start_scores"], record["scores"], strict=True)
    scored = {before["benchmark"]: (before["value"], after["value"]) for before, after in rows}
    names = [name for name in record["curves"] if name.startswith(BENCHMARK)]
    assert names == ["benchmark/pocket-gsm8k", "benchmark/pocket-math"]
    for name in names:
        steps, values = zip(*record["curves"][name], strict=True)
        assert steps == (0, 1, 2)
        assert (values[0], values[-1]) == scored[name.removeprefix(BENCHMARK)]
    stored = record["train"]["held_out"]
    assert list(stored) == [f"{s}/{n}" for s in ("pocket-gsm8k", "pocket-math") for n in range(3)]
    assert not list(Regrader(Passed(ask_again=True)).problems(record))
    record["curves"][names[1]][2][1] += 20
    (problem,) = Regrader(Passed(ask_again=True)).problems(record)
    assert f"{names[1]}: is " in problem


def test_a_benchmark_that_is_scored_while_training_is_part_of_the_training():
    def key(*arguments):
        return Chain(resolve(PAPER, arguments=arguments)).policy.key

    assert len({key(), key("heldout_benchmarks=gsm8k"), key("heldout_benchmarks=cmath")}) == 3
    others = (("heldout_limit=7",), ("heldout_mode=few-shot",), ("system_prompt=Think.",))
    keys = {key("heldout_benchmarks=gsm8k", *more) for more in ((), *others)}
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("heldout_benchmarks=gsm9k",), "no benchmark 'gsm9k'"),
        (("heldout_benchmarks=gsm8k", "heldout_mode=cod"), "no mode 'cod': did you mean cot"),
        (("heldout_mode=tir",), "heldout_mode is set and heldout_benchmarks is not"),
        (("heldout_benchmarks=gsm8k", "heldout_limit=0"), "heldout_limit=0: expected at least 1"),
    ],
)
def test_what_cannot_be_scored_while_training_is_refused_before_it(arguments, message):
    with pytest.raises(ReproError, match=message):
        make_plan(resolve(PAPER, arguments=arguments), 0)
