"""Each option of `repro eval` acts, is kept with the samples, or is refused in one line."""

import json

import pytest

from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.record import score_start
from papers.deepseekmath_grpo import PAPER

SUITE = ("--benchmarks", "pocket-gsm8k", "--limit", 4, "--max-tokens", 6)


def kept(folder):
    """What the note beside the samples says, and the samples' outputs."""
    note = json.loads((folder / "pocket-gsm8k.json").read_text())
    return note["asked"], note["digest"]


def test_how_answers_are_drawn_is_kept_with_them(repro, tiny_model, tmp_path):
    sampled = ("--samples", 2, "--temperature", 1)
    ways = {
        "plain": (),
        "half": ("--dtype", "bfloat16"),
        "told": ("--system-prompt", "be brief"),
        "narrow": (*sampled, "--top-p", 0.1),
        "few": (*sampled, "--top-k", 2),
        "wide": sampled,
    }
    found = {}
    for name, way in ways.items():
        done = repro("eval", tiny_model, *SUITE, *way, "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
        found[name] = kept(tmp_path / name)
    asked = {name: found[name][0] for name in found}
    assert "dtype" not in asked["plain"]
    assert asked["half"]["dtype"] == "bfloat16"
    assert asked["told"]["system"] == "be brief"
    assert (asked["narrow"]["top_p"], asked["few"]["top_k"]) == (0.1, 2)
    drawn = {digest for name, (_, digest) in found.items() if name != "half"}
    assert len(drawn) == len(ways) - 1
    for name, option in (("half", "dtype"), ("told", "system")):
        again = repro("eval", tiny_model, *SUITE, "--out", tmp_path / name)
        assert again.exit_code == 2
        assert f"made with {option}=" in again.stderr


def test_how_many_are_decoded_at_a_time_changes_nothing(repro, tiny_model, tmp_path):
    sampled = ("--samples", 3, "--temperature", 1)
    for name, size in (("default", ()), ("one", ("--batch-size", 1))):
        done = repro("eval", tiny_model, *SUITE, *sampled, *size, "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
    assert kept(tmp_path / "one") == kept(tmp_path / "default")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dtype", "half"), "no dtype 'half'"),
        (("--device", "cuda:99"), "device=cuda:99: "),
        (("--top-p", "0.5"), "at temperature 0 the most likely token is taken"),
        (("--mode", "few-shot", "--system-prompt", "x"), "plain text has no system prompt"),
        (("--mode", "few-shot", "--chat-template", "plain"), "--mode few-shot asks in plain text"),
        (("--server", "http://x", "--api", "chat", "--chat-template", "plain"), "own template"),
        (("--power",), "MODEL goes with --lm-eval or --server or --benchmarks, not with --power"),
        (("--rate", "10"), "--rate goes with --power, not with --benchmarks"),
        (
            ("--server", "http://x", "--dtype", "auto"),
            "--dtype goes with --lm-eval or --benchmarks, not with --server",
        ),
        (
            ("--server", "http://x", "--top-k", "3"),
            "--top-k goes with --benchmarks, not with --server",
        ),
        (("--contamination", "x", "--samples", "3"), ", not with --contamination"),
        (("--scorer", "x"), "--scorer x chooses among answers: give --samples of at least 2"),
        (("--step-separator", ";"), "--step-separator ';' goes with --scorer"),
    ],
)
def test_what_would_not_act_is_one_line(repro, tiny_model, arguments, message):
    done = repro("eval", tiny_model, "--benchmarks", "pocket-gsm8k", *arguments)
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert message in line


def test_a_scorer_has_to_be_a_model_that_rates(repro, tiny_model):
    asked = ("eval", tiny_model, "--benchmarks", "pocket-gsm8k", "--samples", "2", "--limit", "2")
    done = repro(*asked, "--scorer", tiny_model)
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()[-1:]
    assert "LlamaForCausalLM with 2 labels rates no answers: expected a model that" in line


def test_lm_eval_takes_the_same_precision_and_no_way_to_draw(repro, tiny_model):
    tasks = ("eval", tiny_model, "--lm-eval", "repro_pocket_gsm8k")
    done = repro(*tasks, "--top-p", "0.5")
    assert (done.exit_code, "--top-p goes with --server or --benchmarks, not" in done.stderr) == (
        2,
        True,
    )
    done = repro(*tasks, "--dtype", "half")
    assert (done.exit_code, "no dtype 'half'" in done.stderr) == (2, True)


def test_the_scores_of_a_run_say_how_they_were_computed(root, tiny_model):
    """But for 32 bits on a CPU, as the records of that scale have always been."""
    del root
    few = (f"model={tiny_model}", "eval_limit=2", "eval_max_tokens=6", "benchmarks=('gsm8k',)")
    few = (*few, "at_k_samples=2", "at_k_limit=2")
    plain = score_start(Chain(resolve(PAPER, arguments=few)))
    half = score_start(Chain(resolve(PAPER, arguments=(*few, "bf16=true"))))
    assert all("computed" not in row for row in (*plain.scores, *plain.at_k.values()))
    rows = [*half.scores, *half.at_k.values()]
    assert {row["computed"] for row in rows} == {"bfloat16 on cpu"}
