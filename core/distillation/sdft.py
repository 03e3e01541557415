"""Self-distillation fine-tuning: the student with a demonstration in its prompt is its teacher."""

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.collect.generation import Generated, tokenize_prompts
from core.configs.idle import ratio_is_one
from core.data.best_fit import Data
from core.distillation.distilling import OLD, DistillingTrainer
from core.distillation.hints import CONTEXT, check_contexts, prompt_with_context, teacher_prompts
from core.distillation.own_teacher import OwnTeacher
from core.distillation.own_teacher_config import self_measure, token_losses
from core.distillation.sdft_config import SDFTConfig
from core.distillation.teacher import TeacherSource
from core.forward.batches import Batch, trained_mask
from core.rewards.completions import Completion
from core.shapes import BT
from core.trainers.prompts import Rows
from core.trainers.publish import PAPERS

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra


class SDFTTrainer(DistillingTrainer):
    """Trainer of a student towards itself with a demonstration, with the interface of TRL's.

    arXiv 2601.19897. The student samples after `prompt`, and its teacher sees `privileged_context`
    too, a column of the data: a text, or messages. The loss of a token is a divergence of both.
    """

    args: SDFTConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings = SDFTConfig
    _name = "SDFT"
    _tag_names = ("sdft",)
    _paper = PAPERS["SDFT"]
    read_columns = ("prompt", CONTEXT)

    def __init__(
        self,
        model: str | PreTrainedModel,
        args: SDFTConfig | None = None,
        train_dataset: Data | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        peft_config: "PeftConfig | None" = None,
    ):
        check_contexts({"train_dataset": train_dataset, "eval_dataset": eval_dataset})
        super().__init__(
            model,
            args=args,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            callbacks=callbacks,
            optimizers=optimizers,
            peft_config=peft_config,
        )

    def teacher_source(
        self,
        teacher: str | PreTrainedModel | None,  # noqa: ARG002 - there is no other model
        student: str | PreTrainedModel,  # noqa: ARG002 - as above
        args: SDFTConfig,
        *,
        is_adapted: bool,
    ) -> TeacherSource:
        """Return the student's own teacher."""
        return OwnTeacher(args, is_adapted=is_adapted)

    def hinted(self, rows: Rows) -> list[Completion]:
        """Return the prompts of the teacher."""
        return [prompt_with_context(row, self.args.teacher_prompt_template) for row in rows]

    def sampled(self, rows: Rows) -> Generated:
        """Return completions of the student, after the teacher's prompts if it is asked for."""
        if not self.args.generate_from_teacher:
            return super().sampled(rows)
        prompts = [row["prompt"] for row in rows]
        whole = tokenize_prompts(self.tokenizer, prompts, self.args.template)
        own = [ids[-(self.args.longest_prompt or len(ids)) :] for ids in whole]
        return replace(self.generate(self.hinted(rows)), prompt_ids=own)

    def rollout(self, rows: Rows) -> Batch:
        """Collect the completion of each row, and the prompts of the teacher."""
        limit = ("max_prompt_length", self.args.max_prompt_length)
        hinted = teacher_prompts(self.hinted(rows), self.tokenizer, self.args, limit)
        return {**super().rollout(rows), **hinted}

    def tensors(self, generated: Generated) -> Batch:
        """Return the tensors of a rollout; skipped tokens are not trained."""
        batch, skipped = super().tensors(generated), self.args.num_loss_tokens_to_skip
        if skipped:
            batch["tool_mask"] = batch["completion_mask"].clone()
            batch["tool_mask"][:, :skipped] = 0
        return batch

    def compare(self, batches: list[Batch]) -> None:
        """Add the log-probabilities of the sampling student if a rollout is several updates."""
        if self.mode == "train" and self.args.has_ratio and not ratio_is_one(self.args):
            self.keep_old_logps(batches)

    def measure(self, logps: Tensor, teacher_logps: Tensor, tokens: Tensor) -> Tensor:
        """Return entropy, loss and log-probability of the student's token (N, 3)."""
        return self_measure(logps, teacher_logps, tokens, self.args)

    def token_losses(self, numbers: Tensor, inputs: Batch) -> BT:
        """Return the loss of each token, weighted by its ratio to the sampling student."""
        return token_losses(numbers, inputs.get(OLD), trained_mask(inputs), self.args)

    def loss_names(self, inputs: Batch) -> tuple[str, ...]:  # noqa: ARG002 - there is one source
        """Return the names under which the mean loss of a token is logged, those of TRL."""
        return "self_distillation/distillation_loss", "sdft/distillation_loss"
