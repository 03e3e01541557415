"""The mode in which programs are not run, and the share of answers with an invented output."""

import pytest

from core.stages.evaluate import score_rows
from core.stages.questions import Question
from core.stages.tools import tools
from eval.errors import BadValue
from eval.samples.evaluation import Completion, Decoding, run_benchmark
from eval.samples.sealing import brief
from eval.sets.benchmarks import find_benchmark
from eval.stats.summary import metrics, score

POCKET = find_benchmark("pocket-gsm8k")
PROGRAM = "```python\nprint(6 * 7)\n```\n"
INVENTED = f"{PROGRAM}```output\n41\n```\nThe answer is \\boxed{{41}}."
OPENED = f"{PROGRAM}```output\n41"  # cut before its end
NONE = f"{PROGRAM}The answer is \\boxed{{42}}."


def answered(texts, samples=1):
    """Return the samples of a sampler that writes these texts, asked in the mode `untooled`."""
    asked = []

    def sampler(prompts, decoding):
        asked.extend(prompts)
        assert decoding.stop == ()
        rows = [texts[i : i + samples] for i in range(0, len(texts), samples)]
        return [[Completion(text, 9, truncated=False) for text in row] for row in rows]

    decoding = Decoding(samples=samples, temperature=float(samples > 1))
    with tools("untooled") as with_tools:
        solver = with_tools(sampler, None)
        assert solver is sampler
        rows = run_benchmark(
            solver, POCKET, limit=len(texts) // samples, mode="untooled", decoding=decoding
        )
    problems = POCKET.load(limit=len(texts) // samples)
    assert asked == [POCKET.prompt(problem, "tir") for problem in problems]
    return rows


def test_answers_hold_what_the_model_wrote_behind_its_programs():
    samples = answered([INVENTED, OPENED, NONE, NONE])
    assert [sample.output for sample in samples] == [INVENTED, OPENED, NONE, NONE]
    rows = score(samples, POCKET, metrics(1, "untooled"), mode="untooled")
    assert [(row.metric, row.value) for row in rows][1] == ("own-output@1", 25.0)
    assert [(row.programs, row.executor_errors) for row in rows] == [(0, 0)] * 2  # none was run


def test_several_answers_count_by_problem():
    texts = [INVENTED, NONE, INVENTED, INVENTED, NONE, NONE]
    (row,) = score(answered(texts, 2), POCKET, ("own-output@2",), mode="untooled")
    assert (row.value, row.n, row.low < 50 < row.high) == (50.0, 3, True)


def test_a_stage_of_the_mode_scores_it_and_others_do_not():
    samples = answered([INVENTED, NONE])
    names = {
        mode: [
            row["metric"]
            for row in score_rows(
                samples,
                Question(
                    suite="pocket-gsm8k",
                    mirrors="gsm8k",
                    limit=2,
                    decoding=Decoding(),
                    mode=mode,
                ),
            )
        ]
        for mode in ("untooled", "tir")
    }
    assert names == {"untooled": ["top1", "own-output@1"], "tir": ["top1"]}


def test_samples_without_their_texts_are_refused():
    with pytest.raises(BadValue, match="without its text"):
        score([brief(sample) for sample in answered([INVENTED, NONE])], POCKET, ("own-output@1",))
