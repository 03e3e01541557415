"""Importance-weighted on-policy distillation: sampled tokens are weighted by their place."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.collect.generation import Generated
from core.collect.metrics import LossSums, sum_and_count
from core.configs.idle import ratio_is_one
from core.data.best_fit import Data
from core.distillation.distilling import OLD, DistillingTrainer
from core.distillation.iw_opd_config import IWOPDConfig
from core.distillation.sampled_tokens import check_possible
from core.forward.batches import Batch, trained_mask
from core.forward.two_heads import entropy_of
from core.losses.divergence import (
    check_top_k,
    divergence,
    most_likely,
    on_support,
)
from core.losses.loss_statistics import Statistic
from core.losses.token_weights import position_weights
from core.shapes import BT, Mask
from core.trainers.publish import PAPERS

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

MIN, MAX = "iw_opd/min_weight", "iw_opd/max_weight"
EXTREMES = (
    Statistic(name=MIN, values=lambda _, weights, __: weights, extreme=torch.min),
    Statistic(name=MAX, values=lambda _, weights, __: weights, extreme=torch.max),
)


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

    def __init__(
        self,
        model: str | PreTrainedModel,
        teacher_model: str | PreTrainedModel | None = None,
        args: IWOPDConfig | None = None,
        data_collator: object = None,
        train_dataset: Data | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        compute_metrics: object = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        preprocess_logits_for_metrics: object = None,
        peft_config: "PeftConfig | None" = None,
    ):
        super().__init__(
            model,
            teacher_model,
            args,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            callbacks=callbacks,
            optimizers=optimizers,
            peft_config=peft_config,
            data_collator=data_collator,
            compute_metrics=compute_metrics,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
        )
        if self.args.loss_top_k and not self.args.is_weighted:
            check_top_k(self.args.loss_top_k, self.shared, has_tail=self.args.loss_add_tail)

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
        logps = numbers[..., 1]
        advantages = self.advantages(numbers, inputs) * self.weights(numbers, inputs)
        return -surrogate(logps, inputs.get(OLD), advantages, self.args)

    def advantages(self, numbers: Tensor, inputs: Batch) -> BT:
        """Return log T - log S of each token under the student that sampled, without gradient.

        Raises:
            BadValue: a sampled token is impossible for the teacher.
        """
        own, other = numbers[..., 1].detach(), numbers[..., 2].detach()
        check_possible(other, inputs["completion_ids"], "distillation_objective='jsd'")
        return other - inputs.get(OLD, own)

    def weights(self, numbers: Tensor, inputs: Batch) -> BT:
        """Return the weights of `position_weights`."""
        args = self.args
        return position_weights(
            self.advantages(numbers, inputs),
            trained_mask(inputs),
            args.iw_opd_gamma,
            args.iw_opd_total,
            epsilon=args.iw_opd_epsilon,
            signed=args.iw_opd_signed,
        )

    def further_sums(self, numbers: Tensor, inputs: Batch) -> LossSums:
        """Return the logged sums of advantages and weights, under TRL's names."""
        if not self.args.is_weighted:
            return super().further_sums(numbers, inputs)
        weights, mask = self.weights(numbers, inputs), trained_mask(inputs).bool()
        advantages = self.advantages(numbers, inputs)
        values = {
            "mean_advantage": advantages * weights,
            "mean_abs_advantage": advantages.abs(),
            "mean_weight": weights,
        }
        rows = mask.any(1)
        least, greatest = (weights.masked_fill(~mask, end)[rows] for end in (torch.inf, -torch.inf))
        return LossSums(
            {f"iw_opd/{name}": sum_and_count(x.double(), mask) for name, x in values.items()},
            {MIN: least.amin(1), MAX: greatest.amax(1)},
        )


def within_part(mask: Mask, first: float, last: float) -> Tensor:
    """Return whether each token lies between two shares of its completion (B, T).

    Parts of the same share have the same number of tokens, up to rounding.
    """
    lengths = mask.sum(1, keepdim=True).double()
    places = torch.arange(mask.size(1), device=mask.device)
    return (places >= (first * lengths).round()) & (places < (last * lengths).round())


def surrogate(logps: BT, old_logps: BT | None, advantages: BT, args: IWOPDConfig) -> BT:
    """Return A log S, or with `epsilon` the clipped surrogate of each token, to be maximised.

    With `dual_clip` a negative advantage is multiplied by that ratio at most; arXiv 1912.09729.
    """
    if args.epsilon is None:
        return advantages * logps
    ratio = (logps - (logps.detach() if old_logps is None else old_logps)).exp()
    clipped = ratio.clamp(1 - args.epsilon, 1 + args.epsilon)
    least = torch.min(ratio * advantages, clipped * advantages)
    if args.dual_clip is None:
        return least
    return torch.where(advantages < 0, torch.max(least, args.dual_clip * advantages), least)
