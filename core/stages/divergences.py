"""The stage of quantities of a student's samples, by its and its teacher's probabilities."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.records.pair_files import write_pairs
from core.stages.answering import Answering
from core.stages.data import Row, read_rows, split_rows
from core.stages.pair_quantities import FILE, PairQuantities, derive
from eval.nano.splits import gone_prefixes
from eval.terminal import say

if TYPE_CHECKING:  # torch, which the plan of a run must not wait for
    from core.distillation.teacher_quantities import Samples


TOKENS = "tokens.parquet"
SAMPLES = 4  # of a problem: few tokens have most of a divergence


@dataclass(frozen=True, kw_only=True)
class Divergences(PairQuantities):
    """Quantities over `SAMPLES` answers at temperature 1 to each of `rows` held-out problems.

    Sums of each answer of the policy and of its start, under both models, are left in a file that
    records refer to. The numbers of each token, from which the sums are computed, are left in
    another one, together with those of one answer of the teacher to each problem. Families that
    have these quantities refuse a teacher of other tokens before the training.

    Attributes:
        teacher: The teacher of the training.
        tokens: Largest length of an answer.
        benchmark: The benchmark that the problems are of, which may judge answers by steps.
    """

    name = "divergences"
    teacher: Answering
    tokens: int
    benchmark: str

    @property
    def inputs(self) -> Mapping[str, object]:
        """The inputs of all such stages, the teacher and how answers are drawn and judged."""
        own = {"teacher": self.teacher.policy.key, "tokens": self.tokens, "samples": SAMPLES}
        return {**super().inputs, **own, "benchmark": self.benchmark}

    def work(self, folder: Path) -> Mapping[str, object]:
        """Write both files, and return every quantity by its name."""
        from core.collect.generation import pad_token_id
        from core.distillation.teacher_quantities import (
            OWN,
            START,
            START_SAMPLES,
            TEACHER_SAMPLES,
            answer_columns,
            token_columns,
        )

        _, held_out = split_rows(read_rows(self.data.folder), self.rows)
        teacher = self.teacher.sampler.model.eval()
        begun, trained = (x.sampler.model.eval() for x in (self.begun, self.answering))
        pad = pad_token_id(self.begun.tokenizer)
        by_start = self.drawn(self.begun, held_out)
        start = token_columns(begun, teacher, by_start, pad)
        tokens = {OWN: start, START: start, START_SAMPLES: start}
        if self.answering is not self.begun:
            own = self.drawn(self.answering, held_out)
            tokens[OWN] = token_columns(trained, teacher, own, pad)
            tokens[START_SAMPLES] = token_columns(trained, teacher, by_start, pad)
        sets = {name: answer_columns(columns) for name, columns in tokens.items()}
        write_pairs(folder / FILE, sets)
        by_teacher = self.drawn(self.teacher, held_out, 1)
        tokens[TEACHER_SAMPLES] = token_columns(trained, teacher, by_teacher, pad)
        write_pairs(folder / TOKENS, tokens)
        say(f"{self.name}: {self.subject} of {SAMPLES * len(held_out)} samples")
        return derive(sets, self.quantities)

    def drawn(self, answering: Answering, rows: list[Row], samples: int = SAMPLES) -> "Samples":
        """Draw answers to each row, and judge what stands before each of their tokens."""
        from core.distillation.teacher_quantities import Samples
        from core.forward.own_answers import draw_answers
        from core.rewards.completions import completion_text

        prompts, answers = draw_answers(answering.sampler, rows, self.tokens, samples)
        repeated = [row for row in rows for _ in range(samples)]
        tokenizer = answering.sampler.tokenizer
        texts = tokenizer.batch_decode(answers, skip_special_tokens=True)
        is_gone = [
            gone_prefixes(self.benchmark, completion_text(row["prompt"]), text, len(answer))
            for row, text, answer in zip(repeated, texts, answers, strict=True)
        ]
        problems = [number for number in range(len(rows)) for _ in range(samples)]
        return Samples(prompts, answers, is_gone, problems)
