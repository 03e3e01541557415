"""Rollouts whose completions a student's own teacher reads behind prompts with hints."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import torch
from accelerate.utils import gather_object
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.collect.draws import Draw
from core.collect.feedback import FeedbackFunction, call_feedback, checked_functions
from core.collect.reward_calls import Samples
from core.collect.reward_sources import RewardSource, Tokenizers
from core.data.best_fit import Data
from core.distillation.demonstrations import Hint, hinted_prompt, hints_of
from core.distillation.group_metrics import shares_of
from core.distillation.hints import CONTEXT, teacher_prompts
from core.distillation.own_teacher import OwnTeacher
from core.distillation.sdpo_config import SDPOConfig
from core.distillation.teacher import TeacherAttributes
from core.forward.batches import Batch
from core.losses.estimators import total_rewards
from core.rewards.completions import Completion, completion_text
from core.trainers.grpo import GRPOTrainer
from core.trainers.uncalled_methods import GRPO_METHODS, TEACHER_METHODS
from eval.errors import BadValue

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

HINTED = "hinted"  # 1 for each completion whose teacher is shown more than its student (B,)


class HintedRolloutTrainer(TeacherAttributes, GRPOTrainer):
    """Trainer of GRPO with a teacher that is shown more than the student.

    A hint is another completion of the group that succeeded, or feedback on the completion: the
    column `privileged_context`, or what `feedback_funcs` return for `prompts`, `completions` and
    the columns of the data.
    """

    args: SDPOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    read_columns = ("prompt", CONTEXT)
    UNCALLED: ClassVar[Mapping[str, str]] = {**GRPO_METHODS, **TEACHER_METHODS}

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
        feedback_funcs: FeedbackFunction | Sequence[FeedbackFunction] | None = None,
    ):
        self.feedback = checked_functions(feedback_funcs)
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
        return [(hinted_prompt(row["prompt"], hint, texts, self.args), hint) for row, hint in pairs]

    def feedback_on(self, draw: Draw) -> list[str | None]:
        """Return the feedback on each completion of this process."""
        if not self.feedback:
            given = (row.get(CONTEXT) for row in draw.rows)
            return [x if isinstance(x, str) and x.strip() else None for x in given]
        generated = draw.generated
        samples = Samples.of(draw.rows, generated.completions, generated.completion_ids)
        with self.phases("rewards"):
            return call_feedback(self.feedback, samples, {"trainer_state": self.state})
