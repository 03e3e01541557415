"""Self-distillation policy optimisation: what succeeded, or feedback, makes the teacher."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch
from accelerate.utils import gather_object
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.collect.draws import Draw
from core.collect.feedback import FeedbackFunction, call_feedback
from core.collect.metrics import LossSums, Metrics, loss_sums, sum_and_count
from core.collect.reward_calls import Samples
from core.collect.reward_sources import RewardSource, Tokenizers
from core.data.best_fit import Data
from core.data.conversations import Row
from core.distillation.demonstrations import Hint, hints_of, prompt_with, shares_of
from core.distillation.distilling import OLD
from core.distillation.divergence_config import MEANS
from core.distillation.hints import CONTEXT, rewritten, teacher_prompts
from core.distillation.own_teacher import OwnTeacher
from core.distillation.own_teacher_config import self_measure, token_losses
from core.distillation.sdpo_config import SDPOConfig
from core.forward.batches import Batch, as_rollout, for_teacher, trained_mask
from core.forward.two_heads import token_numbers
from core.losses.estimators import Scored, total_rewards
from core.losses.token_weights import clipped_ratio
from core.rewards.completions import Completion, completion_text
from core.trainers.grpo import GRPOTrainer
from core.trainers.publish import PAPERS
from eval.errors import BadValue

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

LOSSES: tuple[str, ...] = ("self_distillation/distillation_loss", "sdpo/distillation_loss")
POLICY = "self_distillation/policy_loss"
FLAT = 1e-8  # greatest spread of rewards that counts as none
HINTED = "hinted"  # 1 for each completion whose teacher is shown more than its student (B,)


class SDPOTrainer(GRPOTrainer):
    """Trainer of a student towards itself with hints, with the interface of TRL's.

    arXiv 2601.20802. The teacher reads each completion behind a prompt with another one of the
    group that succeeded, or with feedback on the completion: the column `privileged_context`, or
    what `feedback_funcs` return for `prompts`, `completions` and the columns of the data.
    """

    args: SDPOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings = SDPOConfig
    _name = "SDPO"
    _tag_names = ("sdpo",)
    _paper = PAPERS["SDPO"]

    def __init__(
        self,
        model: str | PreTrainedModel,
        reward_funcs: RewardSource | list[RewardSource] | None = None,
        args: SDPOConfig | None = None,
        train_dataset: Data | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        reward_processing_classes: Tokenizers = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        peft_config: "PeftConfig | None" = None,
        feedback_funcs: FeedbackFunction | Sequence[FeedbackFunction] = (),
    ):
        self.feedback = [feedback_funcs] if callable(feedback_funcs) else list(feedback_funcs)
        super().__init__(
            model,
            reward_funcs,
            args,
            train_dataset,
            eval_dataset,
            processing_class,
            reward_processing_classes,
            callbacks,
            optimizers,
            peft_config=peft_config,
        )

    def prepare_rollouts(self, *, has_new_adapters: bool) -> None:
        """Prepare as GRPO does, and place the teacher.

        Raises:
            BadValue: see `GRPOTrainer` and `OwnTeacher`; or feedback functions are not read.
        """
        if self.feedback and not self.args.include_environment_feedback:
            raise BadValue(
                "feedback_funcs with include_environment_feedback=False: set it to True, or leave "
                "the functions out"
            )
        super().prepare_rollouts(has_new_adapters=has_new_adapters)
        source = OwnTeacher(self.args, is_adapted=has_new_adapters)
        source.shared_tokens(self.tokenizer, self.policy())
        self.teacher = source.placed(self)
        if self.args.distillation_weight == 1:
            self.logged = ()

    def further_tensors(self, draws: list[Draw], batch: Batch) -> Batch:
        """Return the teacher's prompts and which completions have a hint."""
        pairs = [pair for draw in draws for pair in self.hinted(draw)]
        limit = ("max_reprompt_len", self.args.max_reprompt_len)
        tensors = teacher_prompts([p for p, _ in pairs], self.tokenizer, self.args, limit)
        is_hinted = torch.tensor([hint.is_given for _, hint in pairs], device=self.args.device)
        tensors[HINTED] = is_hinted.to(batch["completion_mask"].dtype)
        if self.args.distillation_weight == 1:  # nothing else is trained
            tensors["tool_mask"] = tensors[HINTED].unsqueeze(1) * batch["completion_mask"]
        return tensors

    def hinted(self, draw: Draw) -> list[tuple[Completion, Hint]]:
        """Return the teacher's prompt of each completion of this process, and its hint."""
        own, scored = draw.generated.completions, draw.scored
        texts: list[str] = gather_object([completion_text(completion) for completion in own])
        feedback: list[str | None] = gather_object(self.feedback_on(draw))
        rewards = total_rewards(scored, self.advantage_settings).tolist()
        hints = hints_of(rewards, scored.group, feedback, self.args)
        self.record(shares_of(hints, rewards, scored.group, feedback, self.args))
        start = self.accelerator.process_index * len(own)
        pairs = zip(draw.rows, hints[start:], strict=False)
        return [(self.prompt_of(row, hint, texts), hint) for row, hint in pairs]

    def prompt_of(self, row: Row, hint: Hint, texts: Sequence[str]) -> Completion:
        """Return the teacher's prompt of a row; without a hint it is the student's."""
        write = partial(prompt_with, hint=hint, texts=texts, args=self.args)
        return rewritten(row["prompt"], write) if hint.is_given else row["prompt"]

    def feedback_on(self, draw: Draw) -> list[str | None]:
        """Return the feedback on each completion of this process."""
        if not self.feedback:
            given = (row.get(CONTEXT) for row in draw.rows)
            return [x if isinstance(x, str) and x.strip() else None for x in given]
        generated = draw.generated
        samples = Samples.of(draw.rows, generated.completions, generated.completion_ids)
        with self.phases("rewards"):
            return call_feedback(self.feedback, samples, {"trainer_state": self.state})

    def scores(self, scored: Scored) -> Metrics:
        """Return the metrics of rewards as of GRPO, and under TRL's names."""
        rewards = total_rewards(scored, self.advantage_settings).nan_to_num(nan=0.0)
        spread = rewards.view(-1, scored.group).std(1)
        means = scored.rewards.nanmean(0).tolist()
        found = {
            "reward_mean": rewards.mean().item(),
            "reward_std": rewards.std().item() if len(rewards) > 1 else 0.0,
            "reward_min": rewards.min().item(),
            "reward_max": rewards.max().item(),
            "group_reward_std_mean": spread.mean().item(),
            "flat_group_fraction": (spread <= FLAT).double().mean().item(),
            **{f"rewards/{f.name}": mean for f, mean in zip(self.rewards, means, strict=True)},
        }
        named = {f"self_distillation/{name}": value for name, value in found.items()}
        return {**super().scores(scored), **named}

    def learns(self, inputs: Batch) -> Tensor:
        """Return a mask (B,) of the completions with a gradient."""
        hinted = trained_mask(inputs).any(1) & inputs[HINTED].bool()
        weight = self.args.distillation_weight
        if weight == 1:
            return hinted
        return super().learns(inputs) | (hinted if weight else torch.zeros_like(hinted))

    def loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return the share of a piece in the loss of its micro-batch, and record its metrics."""
        args, weight = self.args, self.args.distillation_weight
        scale = self.scale(inputs)
        if weight == 0:
            loss = super().loss(model, inputs)
            self.seen[-1].totals[POLICY] = self.loss_of_piece(loss, scale)
            return loss
        with self.accelerator.autocast(), self.teacher.whole() as teacher:
            measure, temperature = partial(self_measure, args=args), args.temperature
            numbers = token_numbers(
                model, teacher, inputs, for_teacher(inputs), temperature, measure
            )
        entropy, apart, own = numbers.unbind(-1)
        mask = trained_mask(inputs) * inputs[HINTED].unsqueeze(1)
        ratio = clipped_ratio(own, inputs.get(OLD), args.distillation_is_clip)
        losses = token_losses(apart, own, mask, args) * ratio
        distilled = MEANS[args.normalize].mean(losses, mask, scale)
        total = sum_and_count(losses.detach().double(), mask)
        named = dict.fromkeys(LOSSES, total)
        if weight == 1:
            sums = {"entropy": sum_and_count(entropy.double(), mask)}
            self.seen.append(LossSums({**sums, **named}, {}))
            return distilled
        r = as_rollout(inputs, own, with_reference=False)
        result = self.objective(r, scale)
        sums = loss_sums(result, r, entropy.detach(), args, self.logged)
        named[POLICY] = self.loss_of_piece(result.loss, scale)
        self.seen.append(LossSums({**sums.totals, **named}, sums.by_row))
        return (1 - weight) * result.loss + weight * distilled

    def held_out_weight(self, batch: Batch) -> Tensor:
        """Return the weight of an evaluation batch, as the loss weighs its completions."""
        if self.args.distillation_weight == 1 and MEANS[self.args.normalize].weighs_tokens:
            return batch["num_items_in_batch"].double()
        return super().held_out_weight(batch)
