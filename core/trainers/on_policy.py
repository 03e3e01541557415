"""Rollouts of a method: completions are sampled, scored, selected and compared."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import torch
from accelerate.utils import gather_object
from torch import Tensor
from torch.nn.functional import pad
from transformers import TrainerCallback

from core.collect.completion_log import RewardLogs
from core.collect.draws import (
    Draw,
    group_means,
    join_generated,
    join_scored,
    restore_order,
    row_indices,
)
from core.collect.event_loop import AsyncLoop
from core.collect.generation import (
    Generated,
    extend_rows,
    pad_token_id,
)
from core.collect.metrics import Metrics
from core.collect.outcomes import outcome_metrics, right_answers
from core.collect.reward_calls import (
    RewardFunction,
    Samples,
    call_rewards,
    reward_index,
    warn_of_unscored,
)
from core.collect.summary import (
    gather_rewards,
    gather_steps,
    length_summary,
    logged_columns,
    named_metrics,
)
from core.configs.rollout import RolloutConfig
from core.forward.batches import (
    Batch,
    pad_rows,
    padded_width,
    take_selected,
    trained_mask,
)
from core.losses.advantages import correct_coefficient
from core.losses.estimators import Scored
from core.losses.selection import SELECTIONS, Selected
from core.rollout.support import as_tensor
from core.trainers.prompts import Rows
from core.trainers.publish import TrainerArguments
from core.trainers.sampling import SamplingTrainer
from eval.errors import BadValue


class OnPolicyTrainer(SamplingTrainer):
    """Trainer whose rollouts are generated, scored, selected and compared, in this order.

    `generate` samples completions, `score` calls the rewards, `select` chooses the completions to
    train on, and `compare` adds the log-probabilities of other policies. Each is a method to
    override. `rollout` calls the first three; `compare` is called when the rollout is cut into
    micro-batches.
    """

    has_verdicts = True  # whether rewards say which completions are correct
    rewards: list[RewardFunction]
    reward_weights: Any  # Any: a property of TRL's attributes, which takes any numbers

    def __init__(
        self,
        *,
        args: RolloutConfig,
        callbacks: Sequence[TrainerCallback] | None,
        **rest: Unpack[TrainerArguments],
    ):
        if args.selection_reward is not None:
            reward_index(args.selection_reward, self.rewards)
        super().__init__(args=args, callbacks=callbacks, **rest)
        self.loop = AsyncLoop()
        self.reward_logs = RewardLogs()

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of what advantages read beside rewards, see `NEEDS`."""
        return ()

    @abstractmethod
    def advantages(self, scored: Scored) -> Tensor:
        """Return the advantages of the completions (N,), or of their tokens (N, length)."""

    def assess(self, batch: Batch) -> Batch:  # noqa: ARG002 - for those who override it
        """Return what models assign to the tokens (n, T) of this process, as fields of `Scored`."""
        return {}

    def columns(self, scored: Scored) -> Batch:
        """Return what a loss reads of completions or tokens: their advantages."""
        return {"advantages": self.advantages(scored)}

    @abstractmethod
    def scores(self, scored: Scored) -> Metrics:
        """Return the metrics of the rewards."""

    def score(self, rows: Rows, generated: Generated) -> Scored:
        """Call the reward functions, and return the rewards of the completions of all processes.

        Raises:
            RewardError: a value is missing, not finite or no number.
        """
        texts = None
        if any(f.reads_prompt_texts for f in self.rewards):
            texts = self.tokenizer.batch_decode([list(ids) for ids in generated.prompt_ids])
        samples = Samples.of(rows, generated.completions, generated.completion_ids, texts)
        self.reward_logs = RewardLogs()
        shared = {
            "trainer_state": self.state,
            "log_extra": self.reward_logs.log_extra,
            "log_metric": self.reward_logs.log_metric,
        }
        with self.phases("rewards"):
            values = call_rewards(self.rewards, samples, shared, self.loop)
        warn_of_unscored(values, samples)
        steps, ends = None, None
        if "steps" in self.needs:
            completion_ids, weights = generated.completion_ids, self.reward_weights.tolist()
            steps, ends = gather_steps(
                values, completion_ids, weights, self.tokenizer, self.accelerator
            )
        width = padded_width(generated.completion_ids, self.args.padding)
        return Scored(
            rewards=gather_rewards(values, self.accelerator),
            group=self.group,
            length=int(self.gather(torch.tensor(width, device=self.args.device)).max()),
            steps=steps,
            ends=ends,
            tokens=self.gather(torch.tensor(generated.lengths, device=self.args.device)),
        )

    def selection_rewards(self, scored: Scored) -> tuple[Scored, Tensor]:
        """Return the rewards that a selection uses and their weights: all, or one that is named."""
        name, weights = self.args.selection_reward, self.reward_weights.to(self.args.device)
        if name is None:
            return scored, weights
        return scored.only(reward_index(name, self.rewards)), torch.ones_like(weights[:1])

    def right(self, scored: Scored) -> Tensor:
        """Return 1 for correct completions, 0 for wrong and NaN for unscored ones (N,)."""
        if not self.has_verdicts:
            return torch.full_like(scored.rewards[:, 0], torch.nan)
        names, weights = [f.name for f in self.rewards], self.reward_weights.to(self.args.device)
        return right_answers(scored.rewards, weights, names, self.args.selection_reward)

    def select(self, scored: Scored) -> Selected | None:
        """Return the completions to train on; None selects all, as in evaluation."""
        if self.mode == "eval":
            return None
        choose = SELECTIONS[self.args.rollout_selection].choose
        return choose(*self.selection_rewards(scored), self.args.selection_kept or 0)

    def rollout(self, rows: Rows) -> Batch:
        """Collect, score and select one completion per row, and add their advantages.

        Some selections require a full rollout: more rows are then drawn until it is full.
        """
        draws, selected = self.fill_rollout(rows)
        generated, scored = join_generated(draws), join_scored(draws)
        batch, count = self.tensors(generated), len(scored.rewards)
        batch |= self.further_tensors(draws, batch)
        scored = replace(scored, **self.gather_tokens(draws, self.assess(batch), scored.length))
        chosen = scored if selected is None else scored.take(selected.rows, selected.group)
        columns = self.columns(chosen)
        if selected is not None:
            columns = {key: selected.scatter(count, values) for key, values in columns.items()}
        self.log_draws(draws, columns["advantages"])
        own_rows = row_indices(draws, self.accelerator.process_index)
        width = batch["completion_ids"].size(1)
        for key, values in columns.items():
            batch[key] = values[own_rows] if values.dim() == 1 else values[own_rows][:, :width]
        if self.args.counts_groups:
            tokens = self.gather(trained_mask(batch).sum(1))
            means = group_means(draws, tokens, self.accelerator.num_processes)
            batch["group_tokens"] = means[own_rows]
        if selected is None:
            return batch
        self.record({"completions/selected_fraction": len(selected.rows) / count})
        if SELECTIONS[self.args.rollout_selection].stays:
            return batch
        ones = torch.ones_like(selected.rows, dtype=torch.bool)
        return take_selected(
            batch, selected.scatter(count, ones)[own_rows], self.args.rollout_parts
        )

    def further_tensors(self, draws: list[Draw], batch: Batch) -> Batch:  # noqa: ARG002 - for those who override it
        """Return further tensors of this process's completions, in the order of the draws."""
        return {}

    def gather_tokens(self, draws: list[Draw], tensors: Batch, length: int) -> Batch:
        """Gather tensors of this process's tokens (n, T) from all processes, padded to `length`."""
        count = self.accelerator.num_processes
        wide = {key: pad(x, (0, length - x.size(1))) for key, x in tensors.items()}
        return {key: restore_order(draws, self.gather(x), count) for key, x in wide.items()}

    def fill_rollout(self, rows: Rows) -> tuple[list[Draw], Selected | None]:
        """Sample and score the draws of a rollout; return them and the selected completions."""
        draws = [self.sample_and_score(rows)]
        selected = self.select(draws[0].scored)
        size, limit = self.args.rollout_size, self.args.rollout_draws
        if selected is None or not SELECTIONS[self.args.rollout_selection].refills:
            return draws, selected
        while len(selected.rows) < size and len(draws) < limit:
            self._rollouts += 1  # so that a prompt that comes again is sampled otherwise
            draws.append(self.sample_and_score(self.draw()))
            selected = self.select(join_scored(draws)) or selected
        self.record({"completions/draws": len(draws)})
        return draws, self.fill_to_size(
            selected.first(size), sum(len(d.scored.rewards) for d in draws)
        )

    def fill_to_size(self, selected: Selected, count: int) -> Selected:
        """Add unselected completions until there are as many as a rollout has.

        Raises:
            BadValue: too few are selected, and `selection_fills_up` is False.
        """
        args, size = self.args, self.args.rollout_size
        missing = size - len(selected.rows)
        if missing and not args.selection_fills_up:
            raise BadValue(
                f"rollout_selection={args.rollout_selection!r}: {args.rollout_draws} draws of "
                f"{args.rollout_prompts} prompts gave {len(selected.rows)} completions to "
                f"train on, expected {size}: take prompts whose completions are neither all "
                "right nor all wrong, selection_fills_up=True or rollout_selection='varied'"
            )
        self.record({"completions/filler_fraction": missing / size})
        return selected.fill_up(size, count)

    def sample_and_score(self, rows: Rows) -> Draw:
        """Sample a completion for each row and score it; record lengths, rewards and counts."""
        generated = self.generate([row["prompt"] for row in rows])
        scored = self.score(extend_rows(rows, generated.columns), generated)
        ends = [*self.eos_token_ids, pad_token_id(self.tokenizer)]
        lengths, tokens = length_summary(generated, ends, self.group, self.accelerator)
        self.record(lengths)
        scores = self.scores(scored)
        self.count_seen(len(scored.rewards), tokens, scores.get("frac_reward_zero_std", 0.0))
        self.record(scores)
        self.record(outcome_metrics(self.right(scored), scored.token_counts, self.group))
        if self.args.prompt_retirement is not None and self.mode == "train":
            scored_by_selection, weights = self.selection_rewards(scored)
            self.retire(correct_coefficient(scored_by_selection.rewards, weights))
        self.record(named_metrics(self.reward_logs, self.accelerator))
        return Draw(rows=rows, generated=generated, scored=scored, logs=self.reward_logs)

    def log_draws(self, draws: list[Draw], advantages: Tensor) -> None:
        """Add the samples to the completion log, with the advantages of all draws."""
        by_draw = advantages.split([len(draw.scored.rewards) for draw in draws])
        for draw, values in zip(draws, by_draw, strict=True):
            columns = logged_columns(draw.logs, len(draw.rows))
            if self.args.log_completions:
                rewards = draw.scored.rewards
                self.completion_logs[self.mode].add(
                    gather_object([row["prompt"] for row in draw.rows]),
                    gather_object(draw.generated.completions),
                    {f.name: rewards[:, i].tolist() for i, f in enumerate(self.rewards)},
                    columns,
                    values.tolist(),
                )

    def tensors(self, generated: Generated) -> Batch:
        """Return token ids and masks of a rollout, on this process's device."""
        batch, device = super().tensors(generated), self.args.device
        if generated.trained is not None:
            trained, _ = pad_rows(generated.trained, 1, multiple=self.args.padding)
            batch["tool_mask"] = trained.to(device)
        if generated.support is not None:
            width = batch["completion_ids"].size(1)
            batch["support"] = as_tensor(generated.support, width).to(device)
        if self.args.mask_truncated_completions:
            ends = [*self.eos_token_ids, pad_token_id(self.tokenizer)]
            complete = ~torch.tensor(generated.are_truncated(ends), device=device)
            batch["completion_mask"] = batch["completion_mask"] * complete.unsqueeze(1)
        return batch
