"""Self-distillation policy optimisation: what succeeded, or feedback, makes the teacher."""

from collections.abc import Mapping
from functools import partial

from torch import Tensor, nn

from core.collect.metrics import LossSums, Metrics, sum_and_count
from core.distillation.distilling import ENTROPY, OLD
from core.distillation.divergence_config import MEANS
from core.distillation.group_metrics import reward_statistics
from core.distillation.hinted_rollouts import HINTED, HintedRolloutTrainer
from core.distillation.own_teacher_config import self_measure, token_losses
from core.distillation.sdpo_config import SDPOConfig
from core.distillation.teacher import NUMBERS
from core.forward.batches import Batch, trained_mask
from core.forward.logps import TokenLogps
from core.losses.estimators import Scored, total_rewards
from core.trainers.publish import PAPERS

LOSSES: tuple[str, ...] = ("self_distillation/distillation_loss", "sdpo/distillation_loss")
POLICY = "self_distillation/policy_loss"


class SDPOTrainer(HintedRolloutTrainer):
    """Trainer of a student towards itself with hints, with the interface of TRL's.

    arXiv 2601.20802. The teacher reads each completion behind a prompt with hints, see
    `HintedRolloutTrainer`. The loss is a divergence from it, the policy loss of GRPO, or both.
    """

    args: SDPOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings = SDPOConfig
    _name = "SDPO"
    _tag_names = ("sdpo",)
    _paper = PAPERS["SDPO"]

    def set_up(self) -> None:
        """Log no statistics of the policy loss if it is not trained."""
        if self.args.distillation_weight == 1:
            self.logged = ()

    def scores(self, scored: Scored) -> Metrics:
        """Return the metrics of rewards as of GRPO, and under TRL's names."""
        rewards = total_rewards(scored, self.advantage_settings).nan_to_num(nan=0.0)
        names = [f.name for f in self.rewards]
        return {**super().scores(scored), **reward_statistics(rewards, scored, names)}

    def learns(self, inputs: Batch) -> Tensor:
        """Return a mask (B,) of the completions with a gradient, of either loss."""
        hinted = trained_mask(inputs).any(1) & inputs[HINTED].bool()
        weight = self.args.distillation_weight
        return (hinted & (weight > 0)) | (super().learns(inputs) & (weight < 1))

    def loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return the share of a piece in the loss of its micro-batch, and record its metrics."""
        args, weight = self.args, self.args.distillation_weight
        if weight == 0:
            return self.recorded_policy_loss(model, inputs, {})
        with self.accelerator.autocast():
            measure = partial(self_measure, args=args)
            numbers = self.teacher.numbers(model, inputs, args.temperature, measure)
        mask = trained_mask(inputs) * inputs[HINTED].unsqueeze(1)
        losses = token_losses(numbers, inputs.get(OLD), mask, args)
        distilled = MEANS[args.normalize].mean(losses, mask, self.scale(inputs))
        sums = dict.fromkeys(LOSSES, sum_and_count(losses.detach().double(), mask))
        if weight == 1:
            entropy = sum_and_count(numbers[..., ENTROPY].double(), mask)
            self.seen.append(LossSums({"entropy": entropy, **sums}, {}))
            return distilled
        loss = self.recorded_policy_loss(model, {**inputs, NUMBERS: numbers}, sums)
        return (1 - weight) * loss + weight * distilled

    def recorded_policy_loss(
        self, model: nn.Module, inputs: Batch, sums: Mapping[str, Tensor]
    ) -> Tensor:
        """Return GRPO's loss of a piece, and record its mean and further sums."""
        loss = super().loss(model, inputs)
        policy = self.loss_of_piece(loss, self.scale(inputs))
        self.seen[-1].totals.update({**sums, POLICY: policy})
        return loss

    def token_logps(self, model: nn.Module, inputs: Batch) -> TokenLogps:
        """Return the log-probabilities and entropies of a piece's tokens, if `loss` has them."""
        if NUMBERS not in inputs:
            return super().token_logps(model, inputs)
        entropy, _, logps = inputs[NUMBERS].unbind(-1)
        return TokenLogps(logps, entropy.detach())

    def held_out_weight(self, batch: Batch) -> Tensor:
        """Return the weight of an evaluation batch, as the loss weighs its completions."""
        if self.args.distillation_weight == 1 and MEANS[self.args.normalize].weighs_tokens:
            return batch["num_items_in_batch"].double()
        return super().held_out_weight(batch)
