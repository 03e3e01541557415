"""`repro score` and `repro eval`: finished outputs and a model on benchmarks."""

import gzip
import json
from dataclasses import replace

import pytest

from eval.sets.benchmarks import BENCHMARKS, find_benchmark

LONGEST = {"pocket-math": 7, "pocket-cmath": 3}
PROBLEMS = find_benchmark("pocket-math").load()
N = len(PROBLEMS)


def write(path, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def answers(right):
    """Outputs for the whole suite, the first `right` of them right, and a number none has."""
    return [
        {"id": p.id, "output": f"\\boxed{{{p.answer}}}" if i < right else "\\boxed{-98765}"}
        for i, p in enumerate(PROBLEMS)
    ]


@pytest.mark.parametrize("name", ["outputs.jsonl", "outputs.jsonl.gz"])
def test_finished_outputs_are_graded_without_a_model(repro, tmp_path, name):
    file = write(tmp_path / name, answers(N // 4))
    kept = tmp_path / "verdicts.jsonl"
    result = repro("score", file, "--benchmark", "pocket-math", "--per-sample", kept, "--json")
    assert result.exit_code == 0, result.output
    (score,) = json.loads(result.stdout)
    assert (score["value"], score["n"], score["limited"]) == (25.0, N, False)
    verdicts = [json.loads(line) for line in kept.read_text().splitlines()]
    assert sum(v["correct"] is True for v in verdicts) == N // 4
    assert all(v["reason"] for v in verdicts)


def test_both_graders_stand_side_by_side(repro, tmp_path):
    rows = answers(N)
    number = next(i for i, p in enumerate(PROBLEMS) if p.answer.isdecimal() and int(p.answer) > 1)
    rows[number]["output"] = f"\\boxed{{{int(PROBLEMS[number].answer) * 100}}}"  # the paper's gift
    rows[number + 1]["output"] = f"The answer is {PROBLEMS[number + 1].answer}"  # right for both
    kept = tmp_path / "verdicts.jsonl"
    command = ("score", write(tmp_path / "o.jsonl", rows), "--benchmark", "pocket-math")
    result = repro(*command, "--explain", "--json", "--per-sample", kept)
    assert result.exit_code == 0, result.output
    (score,) = json.loads(result.stdout)
    assert (score["n"], score["problems"]) == (N, N)
    assert score["score"] == pytest.approx(100 * (N - 1) / N)
    assert score["interval"] == [score["low"], score["high"]]
    assert score["paper"]["score"] == 100
    assert score["counts"] == {
        "samples": N,
        "truncated": None,  # the file does not say
        "unanswered": 0,
        "timeouts": 0,
        "errors": 0,
        "paper_timeouts": 0,
        "executor_errors": 0,
    }
    (difference,) = score["differences"]
    assert difference["id"] == PROBLEMS[number].id
    assert (difference["strict"]["correct"], difference["paper"]["correct"]) == (False, True)
    verdicts = [json.loads(line) for line in kept.read_text().splitlines()]
    keys = {"id", "sample", "extracted", "correct", "paper_correct", "rule", "reason"}
    assert all(keys <= set(v) for v in verdicts)
    assert [v["correct"] for v in verdicts].count(False) == 1
    assert all(v["paper_correct"] for v in verdicts)
    shown = repro(*command, "--explain").stdout
    assert "by the paper's grader: 100.0" in shown
    assert "the graders differ on 1" in shown
    assert PROBLEMS[number].id in shown


def test_the_official_rule_is_a_third_count(repro, tmp_path, monkeypatch):
    """GSM8K's own rule accepts `#### N` alone, with N written as the reference is."""
    benchmark = replace(find_benchmark("pocket-math"), official="gsm8k")
    monkeypatch.setitem(BENCHMARKS, "pocket-math", benchmark)
    forms = ["#### {}", r"\boxed{{{}}}", "#### {}.0", "#### 98765"]
    wholes = [p for p in PROBLEMS if p.answer.isdecimal()]
    rows = [
        {"id": p.id, "output": forms[i % 4].format(p.answer)} for i, p in enumerate(wholes[:40])
    ]
    command = ("score", write(tmp_path / "o.jsonl", rows), "--benchmark", "pocket-math")
    (score,) = json.loads(repro(*command, "--json").stdout)
    assert (score["score"], score["official"]["score"]) == (75.0, 25.0)
    assert score["official"]["errors"] == 0
    assert "top1 by the benchmark's official rule: 25.0 (" in repro(*command).stdout


def test_the_doctor_tries_a_verifier(repro):
    result = repro("doctor", "--verifier", "pocket-cmath", "--json")
    assert result.exit_code == 0, result.output
    trials = {trial["name"]: trial for trial in json.loads(result.stdout)}
    assert (trials["gold"]["accepted"], trials["gold"]["tried"]) == (50, 50)
    assert all(t["passed"] for t in trials.values())
    shown = repro("doctor", "--verifier", "pocket-cmath").stdout
    assert "box inside a failed attempt" in shown
    unknown = repro("doctor", "--verifier", "gsm9k")
    assert unknown.exit_code == 2
    assert "did you mean gsm8k" in unknown.stderr


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": PROBLEMS[0].id}, "line 1: no output: expected a JSON object with id and output"),
        ({"id": 3, "output": ""}, "line 1: id=3: expected str"),
        ({"id": "stranger", "output": ""}, "the first is 'stranger'"),
        ([], "line 1: no JSON object"),
        (
            {"id": PROBLEMS[0].id, "output": "", "truncated": "yes"},
            "line 1: truncated='yes': expected bool or NoneType",
        ),
    ],
)
def test_outputs_of_another_form_are_refused_with_the_line(repro, tmp_path, row, message):
    result = repro("score", write(tmp_path / "o.jsonl", [row]), "--benchmark", "pocket-math")
    assert result.exit_code == 2
    assert message in result.stderr.splitlines()[-1]


def test_an_answer_may_be_as_long_as_its_benchmark_allows(repro, tiny_model, tmp_path, monkeypatch):
    short = {name: replace(find_benchmark(name), max_tokens=n) for name, n in LONGEST.items()}
    for name, benchmark in short.items():
        monkeypatch.setitem(BENCHMARKS, name, benchmark)
    command = ("eval", tiny_model, "--benchmarks", ",".join(LONGEST), "--limit", 4)
    for options, longest in (((), LONGEST), (("--max-tokens", 4), dict.fromkeys(LONGEST, 4))):
        out = tmp_path / str(len(options))
        result = repro(*command, *options, "--out", out)
        assert result.exit_code == 0, result.output
        for name, most in longest.items():
            lines = gzip.decompress((out / f"{name}.jsonl.gz").read_bytes()).splitlines()
            rows = [json.loads(line) for line in lines]
            assert max(row["tokens"] for row in rows) == most
            assert all(row["truncated"] == (row["tokens"] == most) for row in rows)


def test_files_that_are_missing_or_cut_are_named(repro, tmp_path):
    missing = repro("score", tmp_path / "no.jsonl", "--benchmark", "pocket-math")
    assert missing.exit_code == 2
    assert "no.jsonl: no such file" in missing.stderr
    cut = write(tmp_path / "cut.jsonl.gz", answers(5))
    cut.write_bytes(cut.read_bytes()[:-30])
    refused = repro("score", cut, "--benchmark", "pocket-math")
    assert refused.exit_code == 2
    assert "cut.jsonl.gz: not a whole gzip file" in refused.stderr
    for text, message in (
        ("", "holds no outputs: expected lines with id and output"),
        (" \r\n\n", "holds no outputs: expected lines with id and output"),
        ("[" * 100_000, "line 1: not JSON"),
    ):
        odd = tmp_path / "odd.jsonl"
        odd.write_text(text)
        result = repro("score", odd, "--benchmark", "pocket-math")
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert message in result.stderr


def test_places_that_cannot_be_written_are_one_line(repro, tmp_path):
    file = write(tmp_path / "o.jsonl", answers(1)[:1])
    command = ("score", file, "--benchmark", "pocket-math", "--per-sample")
    for place in (tmp_path, file / "v.jsonl"):
        result = repro(*command, place)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert str(tmp_path) in line
        assert "give another path" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.jsonl"]


def test_unknown_modes_and_empty_lists_are_refused(repro, tmp_path):
    file = write(tmp_path / "o.jsonl", answers(1)[:1])
    unknown = repro("score", file, "--benchmark", "pocket-math", "--mode", "ctr")
    assert (unknown.exit_code, "no mode 'ctr'" in unknown.stderr) == (2, True)
    nothing = repro("eval", "pocket-instruct", "--benchmarks", " , ")
    assert (nothing.exit_code, "different names" in nothing.stderr) == (2, True)
    empty = write(tmp_path / "empty.jsonl", [])
    clean = repro("eval", "--contamination", empty, "--benchmarks", "pocket-math")
    assert (clean.exit_code, "holds no rows" in clean.stderr) == (2, True)


def test_a_model_is_scored_with_samples(repro, tiny_model):
    options = ("--limit", 3, "--samples", 2, "--max-tokens", 6, "--json")
    result = repro("eval", tiny_model, "--benchmarks", "pocket-math,pocket-cmath", *options)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [(r["benchmark"], r["metric"]) for r in rows][:5] == [
        ("pocket-math", "avg@2"),
        ("pocket-math", "maj@2"),
        ("pocket-math", "maj-first@2"),
        ("pocket-math", "pass@2"),
        ("pocket-cmath", "avg@2"),
    ]
    assert all(r["n"] == 3 and r["samples"] == 2 and r["limited"] for r in rows)


@pytest.mark.parametrize(
    ("printed", "verdict"), [("25.0", "undecided"), ("60.4", "below"), ("3", "above")]
)
def test_a_score_is_compared_with_a_printed_one(repro, tmp_path, printed, verdict):
    rows = [row | {"truncated": i < N // 100} for i, row in enumerate(answers(N // 4))]
    file = write(tmp_path / "o.jsonl", rows)
    options = ("--benchmark", "pocket-math", "--reported", f"pocket-math={printed}")
    [row] = json.loads(repro("score", file, *options, "--json").stdout)
    assert (row["against"]["verdict"], row["against"]["margin"]) == (verdict, 2.0)
    assert row["truncated"] == 1.0
    text = repro("score", file, *options).stdout
    assert f"pocket-math top1: {verdict} (" in text
    assert "1.0 %" in text


def test_right_answers_alone_reproduce_nothing(repro, tmp_path, tiny_model):
    file = write(tmp_path / "o.jsonl", answers(N)[:300])
    options = ("--benchmark", "pocket-math", "--reported", "pocket-math=99.9")
    for form in ((), ("--json",)):
        result = repro("score", file, *options, *form)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert f"all {N} problems, but 300 are scored here" in result.stderr
        assert "reproduced" not in result.output
    [row] = json.loads(result.stdout)
    assert (row["n"], row["total"], row["limited"], row["score"]) == (300, N, True, 100)
    assert "against" not in row
    part = ("--benchmarks", "pocket-math", "--limit", 300, "--reported", "pocket-math=99.9")
    refused = repro("eval", tiny_model, *part)
    assert (refused.exit_code, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "but 300 are scored here" in refused.stderr


def test_a_limit_says_how_it_was_drawn(repro, tiny_model):
    command = ("eval", tiny_model, "--benchmarks", "pocket-math", "--limit", 3, "--max-tokens", 3)
    [row] = json.loads(repro(*command, "--json").stdout)
    assert (row["n"], row["total"]) == (3, N)
    assert row["drawn"] == "the first ones, which are of all kinds in turn"
    shown = repro(*command).stdout
    assert f"pocket-math: {row['drawn']}" in shown
    assert f" {N} " in shown


@pytest.mark.usefixtures("sandbox")
def test_programs_alone_are_run_and_their_values_graded(repro, tmp_path, tiny_model):
    problems = find_benchmark("pocket-gsm8k").load()
    forms = ("ans = {}", "```python\nprint({})\n```", "\ndef solution():\n    return {}\n\nQ: next")
    rows = [
        {"id": p.id, "output": forms[i % 3].format(p.answer)} for i, p in enumerate(problems[:30])
    ]
    rows[7]["output"] = f"ans = {problems[7].answer} / 0"
    file, kept = write(tmp_path / "o.jsonl", rows), tmp_path / "verdicts.jsonl"
    command = ("score", file, "--benchmark", "pocket-gsm8k", "--mode", "pal", "--json")
    result = repro(*command, "--per-sample", kept, "--html", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    assert "programs run in the sandbox" in result.stderr
    [row] = json.loads(result.stdout)
    assert (row["mode"], row["score"]) == ("pal", pytest.approx(100 * 29 / 30))
    assert (row["programs"], row["executor_errors"], row["unanswered"] > 0) == (30, 1, True)
    assert row["paper"]["score"] == row["score"]
    verdicts = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [v["id"] for v in verdicts if not v["correct"]] == [problems[7].id]
    assert "# solution in Python:" in (tmp_path / "page.html").read_text(encoding="utf-8")
    out = ("--mode", "pal", "--limit", 3, "--max-tokens", 4, "--out", tmp_path / "kept", "--json")
    evaluated = repro("eval", tiny_model, "--benchmarks", "pocket-gsm8k", *out)
    assert evaluated.exit_code == 0, evaluated.output
    [row] = json.loads(evaluated.stdout)
    assert (row["mode"], row["n"], row["programs"]) == ("pal", 3, 3)
    again = repro("eval", tiny_model, "--benchmarks", "pocket-gsm8k", *out)
    assert again.stdout == evaluated.stdout


def test_a_direct_answer_continues_its_beginning_on_one_line(repro, tmp_path, tiny_model):
    options = ("--mode", "direct", "--limit", 3, "--max-tokens", 4, "--out", tmp_path / "kept")
    result = repro("eval", tiny_model, "--benchmarks", "pocket-gsm8k", *options, "--json")
    assert result.exit_code == 0, result.output
    [row] = json.loads(result.stdout)
    assert (row["mode"], row["n"]) == ("direct", 3)
    with gzip.open(tmp_path / "kept" / "pocket-gsm8k.jsonl.gz", "rt", encoding="utf-8") as file:
        outputs = [json.loads(line)["output"] for line in file]
    assert all(text.startswith(r"\boxed{") and "\n" not in text for text in outputs)


def test_a_byte_order_mark_is_no_part_of_the_outputs(repro, tmp_path):
    marked = write(tmp_path / "o.jsonl", answers(N))
    marked.write_bytes(b"\xef\xbb\xbf" + marked.read_bytes())
    [row] = json.loads(repro("score", marked, "--benchmark", "pocket-math", "--json").stdout)
    assert row["score"] == 100


@pytest.mark.parametrize("option", ["--per-sample", "--html"])
def test_outputs_are_not_overwritten_by_what_is_said_of_them(repro, tmp_path, option):
    file = write(tmp_path / "o.jsonl", answers(1))
    before = file.read_bytes()
    same = tmp_path / "elsewhere" / ".." / file.name
    result = repro("score", file, "--benchmark", "pocket-math", option, same)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "o.jsonl would be overwritten" in result.stderr
    assert file.read_bytes() == before


def test_a_sample_that_is_there_twice_is_refused(repro, tmp_path):
    file = write(tmp_path / "o.jsonl", [*answers(1), answers(1)[0]])
    result = repro("score", file, "--benchmark", "pocket-math")
    assert result.exit_code == 2
    assert f"problem {PROBLEMS[0].id} has the numbers [0, 0] as `sample`" in result.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("--benchmarks", "gsm8k,gsm8k"), "expected different names"),
        (("--benchmarks", "gsm8k", "--reported", "gsm8k=1,gsm8k=2"), "expected one for each"),
        (("--benchmarks", "gsm8k", "--reported", "gsm8k=0.88"), "percent, such as gsm8k=88;"),
        (("--benchmarks", "gsm9k"), "no benchmark 'gsm9k': did you mean gsm8k"),
        (("--benchmarks", "gsm8k", "--server", "foo"), "expected an address such as http://"),
        (("--benchmarks", "gsm8k", "--rate", "40"), "--rate goes with --power"),
    ],
)
def test_what_contradicts_itself_is_refused_before_a_model_is_loaded(
    repro, tiny_model, command, message
):
    result = repro("eval", tiny_model, *command)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr


@pytest.mark.parametrize(
    "value", ["gsm8k=88.2", "pocket-math=high", "pocket-math", "pocket-math=1,pocket-math=2"]
)
def test_a_printed_score_that_cannot_be_compared_is_refused_before_grading(repro, tmp_path, value):
    result = repro("score", tmp_path / "no", "--benchmark", "pocket-math", "--reported", value)
    assert result.exit_code == 2
    assert "expected" in result.stderr
    assert "no such file" not in result.stderr


def test_power_is_said_before_a_run(repro):
    options = ("--benchmarks", "gsm8k,mgsm_zh", "--rate", 80, "--samples", 4, "--limit", 500)
    rows = json.loads(repro("eval", "--power", *options, "--json").stdout)
    assert [(r["benchmark"], r["n"], r["samples"]) for r in rows] == [
        ("gsm8k", 500, 4),
        ("mgsm_zh", 250, 4),
    ]
    assert 0 < rows[0]["paired"] < rows[0]["unpaired"] < rows[1]["unpaired"]
    assert f"{rows[0]['paired']:.2f}" in repro("eval", "--power", *options).stdout
    assert repro("eval", *options).exit_code == 2  # a model is needed without --power


def test_contaminated_training_data_is_an_exit_code(repro, tmp_path):
    asked = [{"text": p.question.upper()} for p in PROBLEMS[:3]]
    options = ("--benchmarks", "pocket-math,pocket-cmath")
    dirty = write(tmp_path / "dirty.jsonl", [{"text": "1 + 1"}, *asked])
    result = repro("eval", "--contamination", dirty, *options, "--json")
    rows = json.loads(result.stdout)
    assert (result.exit_code, [r["found"] for r in rows]) == (1, [3, 0])
    assert [(p["id"], p["row"]) for p in rows[0]["pairs"]] == [
        (p.id, i) for i, p in enumerate(PROBLEMS[:3], start=2)
    ]
    assert PROBLEMS[0].id in repro("eval", "--contamination", dirty, *options).stdout
    clean = write(tmp_path / "clean.jsonl", [{"text": "1 + 1"}])
    assert repro("eval", "--contamination", clean, *options).exit_code == 0
