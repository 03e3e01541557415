"""Held-out accuracy while training: greedy answers to problems that are never trained on."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from accelerate.utils import gather_object  # pyright: ignore[reportMissingTypeStubs]
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from core.rewards.verifiers import problem_of
from core.rollout.samplers.policy import PolicySampler
from core.run.settings import HELD_OUT
from core.shards.sharding import gathered
from eval.errors import BadValue
from eval.samples.evaluation import Completion, Decoding
from eval.samples.store import Sample, judged, read_content, write_samples

FOLDER = "held-out"


class HeldOutCallback(TrainerCallback):
    """Logs `held_out/accuracy` (percent) before the first step and after every `every` steps.

    It enters the trainer's own metrics, so it is in the same line as the step's other numbers. The
    graded answers lie in `folder`, one file for each of these steps.
    Training goes on as if it had not happened: greedy decoding draws nothing.

    Raises:
        BadValue: the rows have no answers to judge by.
    """

    def __init__(
        self, rows: Sequence[dict[str, Any]], *, every: int, max_tokens: int, folder: Path
    ):
        if rows and "answer" not in rows[0]:
            raise BadValue(
                f"heldout_problems={len(rows)}: the data has no column answer to judge by, only "
                f"{', '.join(rows[0])}; ask for heldout_problems=0"
            )
        self.rows = rows
        self.every = every
        self.decoding = Decoding(max_tokens=max_tokens)
        self.folder = folder
        self.trainer: Any = None  # Any: a transformers.Trainer, known only after it took callbacks

    def on_train_begin(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        **_: object,
    ) -> None:
        """Log the starting model's accuracy, unless the run is resumed."""
        if state.global_step == 0:
            self.trainer.log({HELD_OUT: self.accuracy(0)})

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        **_: object,
    ) -> None:
        """Hand the accuracy to the trainer's metrics of this step."""
        if state.global_step % self.every == 0 or state.global_step == state.max_steps:
            self.trainer._metrics["train"][HELD_OUT].append(self.accuracy(state.global_step))

    def accuracy(self, step: int) -> float:
        """Percent of the held-out problems that greedy decoding solves."""
        processes = self.trainer.accelerator
        rows = self.rows[processes.process_index :: processes.num_processes]
        found = cast("list[Sample]", gather_object(self.answered(rows)))
        if processes.is_main_process:
            order = sorted(found, key=lambda sample: sample.id)
            write_samples(self.folder / f"{step}.jsonl.gz", order)
        return 100 * sum(sample.correct is True for sample in found) / len(self.rows)

    def answered(self, rows: Sequence[dict[str, Any]]) -> list[Sample]:
        """Graded answers to these, the share of this process and perhaps none."""
        frame, autocast = getattr(self.trainer, "frame", None), self.trainer.accelerator.autocast
        with autocast(), gathered(self.trainer.model, frame) as model:  # as in training
            sampler = PolicySampler(model, self.trainer.processing_class)
            asked = [row["prompt"] for row in rows]
            answers = sampler(asked, self.decoding) if asked else []
        return graded([completions[0] for completions in answers], rows)


def graded(answers: Sequence[Completion], rows: Sequence[dict[str, Any]]) -> list[Sample]:
    """One answer to each row, judged as an evaluation of the rows' benchmarks judges them."""
    problems = [problem_of(row) for row in rows]
    verdicts = judged([answer.text for answer in answers], problems)
    return [
        Sample(
            benchmark=FOLDER,
            id=problem.id,
            sample=0,
            output=answer.text,
            tokens=answer.tokens,
            truncated=answer.truncated,
            extracted=verdict.extracted,
            correct=verdict.correct,
            rule=verdict.rule,
            reason=verdict.reason,
        )
        for problem, answer, verdict in zip(problems, answers, verdicts, strict=True)
    ]


def digests(folder: Path) -> dict[str, str]:
    """The digest of the answers of every step that was looked at."""
    files = sorted(folder.glob("*.jsonl.gz"), key=lambda path: int(path.name.split(".")[0]))
    return {
        path.name.split(".")[0]: hashlib.sha256(read_content(path)).hexdigest() for path in files
    }
