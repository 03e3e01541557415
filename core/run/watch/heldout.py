"""Held-out accuracy while training: greedy answers to problems that are never trained on."""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from core.rewards.verifiers import problem_of
from core.rollout.samplers.policy import PolicySampler
from core.run.settings import HELD_OUT
from core.shards.sharding import gathered
from eval.errors import BadValue
from eval.samples.evaluation import Decoding
from eval.samples.store import judged


class HeldOutCallback(TrainerCallback):
    """Logs `held_out/accuracy` (percent) before the first step and after every `every` steps.

    It enters the trainer's own metrics, so it is in the same line as the step's other numbers.
    Training goes on as if it had not happened: greedy decoding draws nothing.

    Raises:
        BadValue: the rows have no answers to judge by.
    """

    def __init__(self, rows: Sequence[dict[str, Any]], *, every: int, max_tokens: int):
        if rows and "answer" not in rows[0]:
            raise BadValue(
                f"heldout_problems={len(rows)}: the data has no column answer to judge by, only "
                f"{', '.join(rows[0])}; ask for heldout_problems=0"
            )
        self.rows = rows
        self.every = every
        self.decoding = Decoding(max_tokens=max_tokens)
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
            self.trainer.log({HELD_OUT: self.accuracy()})

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        **_: object,
    ) -> None:
        """Hand the accuracy to the trainer's metrics of this step."""
        if state.global_step % self.every == 0 or state.global_step == state.max_steps:
            self.trainer._metrics["train"][HELD_OUT].append(self.accuracy())

    def accuracy(self) -> float:
        """Percent of the held-out problems that greedy decoding solves."""
        processes = self.trainer.accelerator
        rows = self.rows[processes.process_index :: processes.num_processes]
        right = torch.tensor(self.solved(rows), device=processes.device)
        return 100 * processes.reduce(right, reduction="sum").item() / len(self.rows)

    def solved(self, rows: Sequence[dict[str, Any]]) -> int:
        """How many of these, the share of this process and perhaps none, are solved."""
        frame, autocast = getattr(self.trainer, "frame", None), self.trainer.accelerator.autocast
        with autocast(), gathered(self.trainer.model, frame) as model:  # as in training
            sampler = PolicySampler(model, self.trainer.processing_class)
            asked = [row["prompt"][-1]["content"] for row in rows]
            answers = sampler(asked, self.decoding) if asked else []
        return count_right([completions[0].text for completions in answers], rows)


def count_right(texts: Sequence[str], rows: Sequence[dict[str, Any]]) -> int:
    """How many texts answer their rows, as an evaluation of the rows' benchmarks judges them."""
    verdicts = judged(texts, [problem_of(row) for row in rows])
    return sum(verdict.correct is True for verdict in verdicts)
