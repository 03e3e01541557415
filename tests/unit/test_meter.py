"""How far work is: told as it is done, in whole lines where nobody sees a bar."""

import io
import sys

import pytest

from core.samplers.policy import PolicySampler
from core.stages.watch import meter
from core.stages.watch.meter import Meter, open_meter, track
from eval.samples.evaluation import Decoding

PROMPTS = ["1+1", "what is 12*3?", "x"]
DRAWN = Decoding(samples=2, temperature=1.0, max_tokens=9)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands until `clock[0]` is moved."""
    now = [0.0]
    monkeypatch.setattr(meter, "monotonic", lambda: now[0])
    return now


def test_plain_lines_come_every_ten_seconds_with_the_time_left(clock, capsys):
    shown = Meter("eval", first=10)
    for clock[0], done in ((1, 11), (11, 20), (12, 21), (30, 30)):
        shown.show(done, 50, "half way")
    shown.show(31, 50, now=True)
    shown.close()
    assert capsys.readouterr().err.splitlines() == [
        "eval: 20/50  half way  33 s left",
        "eval: 30/50  half way  30 s left",
        "eval: 31/50  27 s left",
    ]


def test_a_terminal_has_a_bar_and_keeps_what_was_said(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with open_meter("eval: [a] on b") as watch:
        watch(3, 4)
        print("programs run", file=sys.stderr)
    text = screen.getvalue()
    assert "eval: [a] on b" in text
    assert "3/4" in text
    assert "programs run\n" in text


def test_things_are_named_while_they_are_at_work(clock, capsys):
    seen = []
    for thing in track("check", ["dapo", "ppo", "dft"], str.upper):
        seen.append(thing)
        clock[0] += 11
    assert seen == ["dapo", "ppo", "dft"]
    assert capsys.readouterr().err.splitlines() == [
        "check: 1/3  PPO  22 s left",
        "check: 2/3  DFT  11 s left",
        "check: 3/3  0 s left",
    ]


@pytest.mark.parametrize("chunk", [2, 256])
@pytest.mark.parametrize("rows", [1, 128])
def test_a_sampler_tells_of_every_completion_and_draws_the_same(
    chunk, rows, build_llama, tiny_tokenizer
):
    told = []
    sampler = PolicySampler(build_llama(seed=4), tiny_tokenizer, chunk=chunk, rows=rows)
    drawn = sampler.with_progress(lambda done, of: told.append((done, of)))(PROMPTS, DRAWN)
    assert drawn == sampler(PROMPTS, DRAWN)
    counts = [done for done, _ in told]
    assert {of for _, of in told} == {6}
    assert counts == sorted(counts)
    assert set(counts) == set(range(7))
