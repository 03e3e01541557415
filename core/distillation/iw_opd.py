"""Importance-weighted on-policy distillation: sampled tokens are weighted by their place."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor
from transformers import PreTrainedModel

from core.collect.generation import Generated
from core.collect.metrics import LossSums
from core.configs.idle import ratio_is_one
from core.distillation.distilling import OLD, DistillingTrainer
from core.distillation.iw_opd_config import IWOPDConfig
from core.distillation.teacher import OtherModel
from core.distillation.weighted_tokens import (
    EXTREMES,
    advantages_and_weights,
    surrogate,
    weight_sums,
    within_part,
)
from core.forward.batches import Batch, trained_mask
from core.forward.two_heads import entropy_of
from core.losses.divergence import check_top_k, divergence, most_likely, on_support
from core.losses.loss_statistics import Statistic
from core.shapes import BT
from core.trainers.publish import PAPERS


class IWOPDTrainer(DistillingTrainer):
    """Trainer of a student on its own sampled tokens, with the interface of TRL's.

    arXiv 2606.22600. A token has the advantage A = log T - log S of its probabilities under both
    models, times the weight of `position_weights`; the loss is -A log S, or with `epsilon` the
    clipped surrogate. With `distillation_objective="jsd"` it is D_beta on the most likely tokens:
    the teacher's for the forward KL, the student's for the reverse KL, and both between these.
    """

    args: IWOPDConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings = IWOPDConfig
    _name = "IWOPD"
    _tag_names = ("iw_opd",)
    _paper = PAPERS["IWOPD"]

    def shared_tokens(self, source: OtherModel, policy: PreTrainedModel) -> int:
        """Return the number of tokens that a completion may have, see `DistillingTrainer`.

        Raises:
            BadValue: `loss_top_k` is more than that, see `check_top_k`.
        """
        shared, args = super().shared_tokens(source, policy), cast(IWOPDConfig, source.args)
        if args.loss_top_k and not args.is_weighted:
            check_top_k(args.loss_top_k, shared, has_tail=args.loss_add_tail)
        return shared

    @property
    def logged(self) -> Sequence[Statistic]:  # pyright: ignore[reportIncompatibleVariableOverride] - by the objective
        """The least and the greatest weight, if tokens have one."""
        return EXTREMES if self.args.is_weighted else ()

    def tensors(self, generated: Generated) -> Batch:
        """Return the tensors of a rollout; tokens outside of `loss_positions` are not trained."""
        batch = super().tensors(generated)
        if self.args.loss_positions is not None:
            mask = batch["completion_mask"]
            batch["tool_mask"] = within_part(mask, *self.args.trained_part).to(mask.dtype)
        return batch

    def compare(self, batches: list[Batch]) -> None:
        """Add the log-probabilities of the sampling student if a rollout is several updates."""
        if self.mode == "eval" or not self.args.is_weighted or ratio_is_one(self.args):
            return
        self.keep_old_logps(batches)

    def measure(self, logps: Tensor, teacher_logps: Tensor, tokens: Tensor) -> Tensor:
        """Return entropy, and both log-probabilities of the token or the divergence (N, K)."""
        own, other = (x.gather(-1, tokens[:, None])[:, 0] for x in (logps, teacher_logps))
        if self.args.is_weighted:
            return torch.stack([entropy_of(logps), own, other], dim=-1)
        apart = divergence(*self.on_chosen_tokens(logps, teacher_logps, tokens), self.args.beta)
        return torch.stack([entropy_of(logps), apart], dim=-1)

    def on_chosen_tokens(
        self, logps: Tensor, teacher_logps: Tensor, tokens: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return both models on `loss_top_k` tokens, see `on_support`; on all if it is 0."""
        args, k = self.args, self.args.loss_top_k
        if k == 0:
            return logps, teacher_logps
        by_sample = k == 1 and args.reverse_kl_top_1_mode == "sampled"
        own = (
            torch.zeros_like(logps, dtype=torch.bool).scatter(-1, tokens[:, None], True)
            if by_sample
            else most_likely(logps, k)
        )
        others = most_likely(teacher_logps, k)
        support = {0.0: others, 1.0: own}.get(args.beta, own | others)
        return on_support(logps, teacher_logps, support, has_tail=args.loss_add_tail)

    def token_losses(self, numbers: Tensor, inputs: Batch) -> BT:
        """Return the loss of each token from the numbers of `measure`."""
        if not self.args.is_weighted:
            return super().token_losses(numbers, inputs)
        _, logps, other = numbers.unbind(-1)
        advantages, weights = advantages_and_weights(logps, other, inputs, self.args)
        return -surrogate(logps, inputs.get(OLD), advantages * weights, self.args)

    def further_sums(self, numbers: Tensor, inputs: Batch) -> LossSums:
        """Return the logged sums of advantages and weights, if tokens have one."""
        if not self.args.is_weighted:
            return super().further_sums(numbers, inputs)
        _, logps, other = numbers.unbind(-1)
        pair = advantages_and_weights(logps, other, inputs, self.args)
        return weight_sums(*pair, trained_mask(inputs))
