"""The training loop of on-policy methods: rollouts, micro-batches and updates."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from time import perf_counter
from typing import Unpack, cast

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import TrainerCallback
from transformers.data.data_collator import DataCollator
from transformers.trainer_utils import EvalLoopOutput

from core.collect.metrics import LossSums, loss_metrics
from core.configs.rollout import RolloutConfig
from core.explain.health import HealthCallback
from core.explain.plan_callback import BatchPlanCallback
from core.forward.batches import Batch, Parts, shuffle_rows, split_rows, trained_mask, trim
from core.forward.micro_pieces import pieces, take, with_counts
from core.losses.aggregate import Scale, average_counts
from core.losses.loss_statistics import Statistic
from core.trainers.prompts import PromptTrainer, Rows
from core.trainers.publish import TrainerArguments
from core.trainers.resume import ProcessState


class RolloutTrainer(PromptTrainer):
    """Trainer that cuts each `rollout(rows)` into micro-batches for `loss`, over several updates.

    `compare` adds log-probabilities to the micro-batches, each of which goes through `loss` once
    per iteration. All rollouts of an optimizer step are sampled before its first backward pass: the
    policy is the same, and a loss that divides by the tokens of the step knows their number.
    """

    args: RolloutConfig
    loss_is_scaled_for_ga = True  # the loss is divided by the step's size here, not by transformers
    logged: Sequence[Statistic] = ()  # of the loss, beside KL and entropy
    rows_together = 1  # rows of a rollout that stay in one micro-batch and piece
    router_weight = 0.0  # of the load-balancing loss of experts, which is no sum over pieces

    def __init__(
        self,
        *,
        args: RolloutConfig,
        callbacks: Sequence[TrainerCallback] | None,
        **rest: Unpack[TrainerArguments],
    ):
        self._step = 0  # micro-batches done
        self._rollouts = 0  # rollouts done
        self._step_time = 0.0
        self.evaluated = 0  # completions of this evaluation so far
        self._parts: Parts | None = None
        self._rows: Iterable[Rows] = ()  # of the micro-batches of the next optimizer step
        self._prepared: list[Batch] = []
        self.seen: list[LossSums] = []  # of the pieces of this micro-batch, so far
        self._more = False  # whether more of its pieces come
        explained = [
            BatchPlanCallback(),
            HealthCallback(),  # before those that write logs, which then have its flags
            *(callbacks or []),
        ]
        rest["data_collator"] = cast(DataCollator, list)  # rows stay as they are until sampling
        super().__init__(args=args, callbacks=explained, **rest)
        self.current_gradient_accumulation_steps = args.gradient_accumulation_steps

    @abstractmethod
    def rollout(self, rows: Rows) -> Batch:
        """Collect, score and select completions; return what `loss` needs of each."""

    @abstractmethod
    def loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return the contribution of a piece of a micro-batch to the loss of its optimizer step."""

    def learns(self, inputs: Batch) -> Tensor:
        """Return a mask (B,) of the completions that may have a gradient."""
        return torch.ones(len(inputs["completion_ids"]), dtype=torch.bool)

    def scale(self, inputs: Batch) -> Scale:
        """Return the denominators of a micro-batch, see `Scale`."""
        training = self.mode == "train"
        return Scale(
            rollout_tokens=inputs["num_items_in_batch"],
            accumulation=self.current_gradient_accumulation_steps if training else 1,
            micro_batches=self.args.rollout_parts if training else 1,
            processes=self.accelerator.num_processes,
            rows=inputs.get("rows"),
        )

    def compare(self, batches: list[Batch]) -> None:
        """Add the log-probabilities of other policies to the micro-batches of a rollout."""

    def mark_tokens(self, batch: Batch) -> Batch:
        """Add what the current policy determines of a micro-batch right before its use."""
        return batch

    def pieces(self, batch: Batch) -> tuple[list[list[int]], list[list[int]]]:
        """Return the rows of the pieces of a micro-batch with and without gradient.

        See `pieces`.
        """
        sharded = self.is_deepspeed_enabled or self.is_fsdp_enabled
        uncut = sharded or self.mode == "eval" or self.router_weight != 0.0
        return pieces(batch, self.learns(batch), uncut=uncut)

    def get_batch_samples(
        self, epoch_iterator: Iterator[Rows], num_batches: int, device: torch.device
    ) -> tuple[list[Rows], None]:
        """Count the micro-batches of the optimizer step; the first one draws the rollouts of all.

        A rollout draws its prompts after those before it, which may have drawn more than their
        share.
        """
        batches, _ = super().get_batch_samples(epoch_iterator, num_batches, device)
        steps = range(self._step, self._step + len(batches))
        self._rows = (self.draw() if self.starts_rollout(step) else [] for step in steps)
        self._prepared = []
        return batches, None

    def starts_rollout(self, step: int) -> bool:
        """Return whether a micro-batch is the first of a new rollout."""
        return step % self.args.rollout_uses == 0

    def _prepare_inputs(self, inputs: Rows | Batch) -> Batch:  # pyright: ignore[reportIncompatibleMethodOverride]
        if isinstance(inputs, dict):
            return inputs
        if self.mode == "eval":
            batch = self.rollout(inputs)
            self.compare([batch])
            batch, tokens = self.mark_tokens(batch), self.count_tokens(batch)
            return {**batch, "num_items_in_batch": self.counted_tokens([tokens], [batch])[0]}
        if not self._prepared:
            self._prepared, self._rows = self.optimizer_step_batches(self._rows or [inputs]), ()
        return self._prepared.pop(0)

    def optimizer_step_batches(self, rows: Iterable[Rows]) -> list[Batch]:
        """Return the micro-batches of one optimizer step, sampling rollouts as they are needed.

        `num_items_in_batch` is the number of tokens of a rollout; see `counted_tokens` for a step
        with micro-batches of several rollouts.
        """
        per_rollout = self.args.rollout_parts
        chosen: list[Batch] = []
        tokens: list[Tensor] = []
        for step, micro_batch_rows in enumerate(rows, start=self._step):
            if self._parts is None or self.starts_rollout(step):
                self._parts = self.cut_rollout(self.rollout(micro_batch_rows))
                self._rollouts += 1
            batch, rows_each = self._parts.micro_batches[step % per_rollout], self._parts.rows
            prepared = self.mark_tokens(batch)
            chosen.append(prepared if rows_each is None else {**prepared, "rows": rows_each})
            tokens.append(self._parts.tokens)
        pairs = zip(chosen, self.counted_tokens(tokens, chosen), strict=True)
        return [{**batch, "num_items_in_batch": items} for batch, items in pairs]

    def counted_tokens(
        self,
        tokens: Sequence[Tensor],
        batches: Sequence[Batch],  # noqa: ARG002 - for those who override it
    ) -> Sequence[Tensor]:
        """Return the token count that each micro-batch of a step is divided by."""
        return average_counts(tokens)

    def cut_rollout(self, batch: Batch) -> Parts:
        """Shuffle a rollout and cut it into micro-batches without unnecessary padding."""
        tokens, count = self.count_tokens(batch), self.args.rollout_parts
        selected, rows = batch.get("selected"), None
        if selected is not None:
            batch = {key: values for key, values in batch.items() if key != "selected"}
            trained = self.gather(selected.sum()).sum().clamp(min=1)
            rows = trained.double() / (count * self.accelerator.num_processes)
        parts = split_rows(shuffle_rows(batch, self.rows_together), count)
        fixed = self.args.padding is not None
        micro_batches = parts if fixed else [trim(part) for part in parts]
        self.compare(micro_batches)
        return Parts(micro_batches, tokens, rows)

    def count_tokens(self, batch: Batch) -> Tensor:
        """Return the number of trained tokens of a batch, over all processes."""
        return self.gather(trained_mask(batch).sum()).sum()

    def training_step(
        self, model: nn.Module, inputs: Rows | Batch, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Train on one micro-batch, piece by piece; all time outside other phases is backward."""
        start = perf_counter()
        with self.phases("backward"):
            model.train()
            loss = self.learn(model, self._prepare_inputs(inputs), num_items_in_batch)
        self._step += 1
        self._step_time += perf_counter() - start
        if self.accelerator.sync_gradients:
            self.record({"step_time": self._step_time})
            self._step_time = 0.0
        return loss

    def learn(
        self, model: nn.Module, batch: Batch, num_items_in_batch: Tensor | int | None
    ) -> Tensor:
        """Run forward and backward on each piece; pieces without gradient only give metrics."""
        learned, watched = self.pieces(batch)
        batch = with_counts(batch)
        self._more = True
        for rows in watched:
            with torch.no_grad(), self.compute_loss_context_manager():
                self.compute_loss(model, take(batch, rows))
        losses: list[Tensor] = []
        for number, rows in enumerate(learned, start=1):
            self._more = number < len(learned)
            with self.accelerator.no_sync(model) if self._more else nullcontext():
                losses.append(super().training_step(model, take(batch, rows), num_items_in_batch))
        return torch.stack(losses).sum()

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Batch,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,  # noqa: ARG002 - ours is in `inputs`
    ) -> Tensor:
        """Return the loss of prepared inputs; after the last piece, record the metrics of all.

        Raises:
            ValueError: `return_outputs` is set.
        """
        if return_outputs:
            raise ValueError(f"The {type(self).__name__} does not support returning outputs")
        with self.phases("forward"):
            loss = self.loss(model, inputs)
        if not self._more:
            tokens = float(inputs["num_items_in_batch"]) if self.mode == "eval" else None
            self.record(loss_metrics(self.seen, self.logged, self.accelerator), weight=tokens)
            self.seen.clear()
        return loss

    def prediction_step(  # pyright: ignore[reportIncompatibleMethodOverride] - rows come in
        self,
        model: nn.Module,
        inputs: Rows,
        prediction_loss_only: bool,  # noqa: ARG002 - there is nothing else
        ignore_keys: list[str] | None = None,  # noqa: ARG002 - there are no outputs
    ) -> tuple[Tensor, None, None]:
        """Sample, score and evaluate the loss of one batch."""
        processes = self.accelerator.num_processes
        self.batch_weight = float(len(inputs) * processes)
        with torch.no_grad(), self.compute_loss_context_manager():
            batch = self._prepare_inputs(inputs)
            loss = self.compute_loss(model, batch).detach().mean().double()
        count = self.held_out_weight(batch) / processes
        self._held_out.append(self.gather(torch.stack([loss * count, count]).unsqueeze(0)))
        self.batch_weight = 1.0
        self.evaluated += len(inputs) * processes
        return loss, None, None

    def held_out_weight(self, batch: Batch) -> Tensor:
        """Return the weight of an evaluation batch over all processes: its completions."""
        rows = len(batch["completion_ids"]) * self.accelerator.num_processes
        return torch.tensor(float(rows), dtype=torch.float64, device=self.args.device)

    def evaluation_loop(
        self,
        dataloader: DataLoader,
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> EvalLoopOutput:
        """Evaluate as transformers does, and count the prompts of a dataset without a length."""
        self.evaluated = 0
        output = super().evaluation_loop(
            dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix
        )
        if output.num_samples:
            return output
        return output._replace(num_samples=self.evaluated // self.args.generations_eval)

    def own_state(self) -> ProcessState:
        """Return counters, and the micro-batches of a rollout that is not finished."""
        unfinished = self._step % self.args.rollout_uses
        parts = self._parts if unfinished else None
        return {
            **super().own_state(),
            "step": self._step,
            "rollouts": self._rollouts,
            "micro_batches": parts and parts.micro_batches,
            "tokens": parts and parts.tokens,
            "rows": parts and parts.rows,
        }

    def take_state(self, state: ProcessState) -> None:
        """Restore what `own_state` returned, in the middle of a rollout or at its end."""
        super().take_state(state)
        self._step, self._rollouts = state.get("step", 0), state.get("rollouts", 0)
        parts, tokens = state.get("micro_batches"), state.get("tokens")
        rows = state.get("rows")
        self._parts = None if parts is None or tokens is None else Parts(parts, tokens, rows)
