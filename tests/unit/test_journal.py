"""A journal cut anywhere gives the completions of an uninterrupted run; damage is named."""

import pytest

from core.rollout.native.native import NativeEngine
from core.samplers.journal import PROGRAMS, Journal, JournaledExecutor
from core.samplers.policy import PolicySampler
from eval.errors import BadValue, DamagedFile
from eval.samples.evaluation import Decoding
from eval.sandbox import Execution

PROMPTS = ["1+1", "a long prompt", "2", "12*3", "what is x", "7-7"]
GREEDY = Decoding(max_tokens=8)
SAMPLED = Decoding(samples=3, temperature=1.0, top_p=0.9, max_tokens=8, seed=5)
HEADER = {"model": "tiny", "temperature": 1.0}


@pytest.fixture
def sampler(build_llama, tiny_tokenizer):
    return PolicySampler(build_llama(seed=4), tiny_tokenizer, chunk=2)


def run(sampler, path, decoding):
    """The completions, and how many batches had been there before."""
    with Journal(path, HEADER) as journal:
        there = len(journal.batches)
        return sampler.with_journal(journal)(PROMPTS, decoding), there


@pytest.mark.parametrize("decoding", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_a_run_cut_anywhere_ends_as_an_uninterrupted_one(sampler, tmp_path, decoding):
    path = tmp_path / "deep" / "j"
    straight = sampler(PROMPTS, decoding)
    assert run(sampler, path, decoding) == (straight, 0)
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    batches = len(ends) - 1
    assert batches == len(PROMPTS) * decoding.samples / 2
    cuts = {0, 1, *ends, *(end - 1 for end in ends), *range(0, len(whole), len(whole) // 12)}
    for cut in sorted(cuts):
        path.write_bytes(whole[:cut])
        done = max(0, sum(end <= cut for end in ends) - 1)
        assert run(sampler, path, decoding) == (straight, done), cut
        assert path.read_bytes() == whole


def test_what_is_in_the_journal_is_not_decoded_again(sampler, tmp_path, build_llama):
    straight, _ = run(sampler, tmp_path / "j", SAMPLED)
    sampler.engine = NativeEngine(build_llama(seed=5).eval())
    assert sampler(PROMPTS, SAMPLED) != straight
    assert run(sampler, tmp_path / "j", SAMPLED)[0] == straight


def test_another_question_finds_no_batch(sampler, tmp_path):
    run(sampler, tmp_path / "j", SAMPLED)
    other = Decoding(**{**vars(SAMPLED), "seed": 6})
    assert run(sampler, tmp_path / "j", other)[0] == sampler(PROMPTS, other)


class Clock:
    """An executor whose programs never print the same again."""

    def __init__(self):
        self.ran = 0

    def run(self, programs):
        self.ran += len(programs)
        return [Execution(f"{p} at {self.ran + i}", "", "ok", 0.1) for i, p in enumerate(programs)]


def test_programs_of_a_run_cut_anywhere_print_what_they_printed(tmp_path):
    programs, more = [f"print({i})" for i in range(PROGRAMS + 9)], ["print(0)", "print(0)"]

    def execute(clock):
        with Journal(tmp_path / "j", HEADER) as journal:
            executor = JournaledExecutor(clock, journal)
            return [executor.run(programs), executor.run(more), executor.run([])]

    straight = execute(Clock())
    assert [len(done) for done in straight] == [len(programs), 2, 0]
    assert straight[0][3].output.startswith("print(3) at")
    whole = (tmp_path / "j").read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for done, left in enumerate((len(programs) + 2, 11, 2, 0)):
        (tmp_path / "j").write_bytes(whole[: ends[done]])
        clock = Clock()
        again = execute(clock)
        assert clock.ran == left
        kept = min(done * PROGRAMS, len(programs))
        assert again[0][:kept] == straight[0][:kept]
    assert again == straight


def test_a_foreign_journal_is_refused_and_kept(tmp_path):
    path = tmp_path / "j"
    Journal(path, HEADER).file.close()
    before = path.read_bytes()
    with pytest.raises(BadValue, match=r"begun with temperature=1\.0, asked for 0\.5: give"):
        Journal(path, {**HEADER, "temperature": 0.5})
    assert path.read_bytes() == before


def test_a_changed_byte_is_found_in_its_line(sampler, tmp_path):
    path = tmp_path / "j"
    run(sampler, path, SAMPLED)
    whole = path.read_bytes()
    second = whole.index(b"\n") + 1
    for place in (0, second + 3, second + 40, len(whole) - 2):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        line = whole[:place].count(b"\n") + 1
        with pytest.raises(DamagedFile, match=f"line {line}: not what was written"):
            Journal(path, HEADER)
    path.write_bytes(b"some other file\n")
    with pytest.raises(DamagedFile, match="line 1"):
        Journal(path, HEADER)


def test_two_at_once_are_refused(tmp_path):
    with (
        Journal(tmp_path / "j", HEADER),
        pytest.raises(BadValue, match="another process is writing it"),
    ):
        Journal(tmp_path / "j", HEADER)
    Journal(tmp_path / "j", HEADER).file.close()
