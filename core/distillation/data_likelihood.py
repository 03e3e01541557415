"""Cross-entropy of the data's completions beside the loss of a rollout."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from core.collect.draws import Draw
from core.collect.generation import pad_token_id
from core.collect.metrics import sum_and_count
from core.distillation.completed import given_completions
from core.distillation.minillm_config import MiniLLMConfig
from core.forward.batches import TOKEN_KEYS, Batch, token_batch, trained_mask
from core.forward.logps import token_logps
from core.losses.aggregate import global_token_mean
from core.trainers.grpo import GRPOTrainer
from core.trainers.prompts import Rows

DATA = "data_{}"  # name of a column of the data's completions
DATA_TOKENS = "data_tokens"  # number of tokens of the data's completions in the rollout (B,)


class DataLikelihoodTrainer(GRPOTrainer):
    """Trainer of GRPO's loss, plus `lm_coef` times the cross-entropy of the data's completions.

    It is the mean over the tokens of the completions of all rows that a rollout has selected.
    """

    args: MiniLLMConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower

    def further_tensors(self, draws: list[Draw], batch: Batch) -> Batch:
        """Return the data's completions of the rows of a rollout (B, 1, W), if they are trained on.

        The second dimension keeps them whole where the tokens of a rollout are cut to their width.
        """
        if not self.args.lm_coef:
            return super().further_tensors(draws, batch)
        rows = [row for draw in draws for row in draw.rows]
        data = given_completions(
            rows, self.tokenizer, template=self.args.template, advice="lm_coef=0"
        )
        pad, multiple = pad_token_id(self.tokenizer), self.args.padding
        columns = token_batch(data.prompt_ids, data.completion_ids, pad, multiple)
        device = self.args.device
        return {DATA.format(key): x.unsqueeze(1).to(device) for key, x in columns.items()}

    def rollout(self, rows: Rows) -> Batch:
        """Collect a rollout and count the tokens of the data's completions of its selected rows."""
        batch = super().rollout(rows)
        if not self.args.lm_coef:
            return batch
        selected = batch.get("selected", torch.ones_like(batch["completion_mask"][:, 0]))
        mask = DATA.format("completion_mask")
        batch |= {mask: batch[mask] * selected.view(-1, 1, 1)}
        count = self.count_tokens(data_batch(batch))
        return {**batch, DATA_TOKENS: count.expand(len(selected))}

    def learns(self, inputs: Batch) -> Tensor:
        """Return a mask (B,) of the completions with a gradient: of trained tokens or the data."""
        return trained_mask(inputs).any(1) | (self.args.lm_coef > 0)

    def data_loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return lm_coef times the mean cross-entropy of the data's completions of the rollout."""
        data = data_batch(inputs)
        losses, mask = -token_logps(model, data, 1.0).logps, trained_mask(data)
        self.seen[-1].totals["lm_loss"] = sum_and_count(losses.detach(), mask)
        scale = replace(self.scale(inputs), rollout_tokens=inputs[DATA_TOKENS][0])
        return self.args.lm_coef * global_token_mean(losses, mask, scale)

    def loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return the share of a piece in the loss of its micro-batch, and record its metrics."""
        loss = super().loss(model, inputs)
        return loss + self.data_loss(model, inputs) if self.args.lm_coef else loss


def data_batch(inputs: Batch) -> Batch:
    """Return the prompts and completions of the data in a batch, (B, W) each."""
    return {key: inputs[DATA.format(key)][:, 0] for key in TOKEN_KEYS}
