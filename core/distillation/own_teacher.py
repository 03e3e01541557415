"""A student's own teacher: its starting weights, its present ones or their moving average."""

from typing import Any, cast

from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from core.distillation.own_teacher_config import OwnTeacherConfig
from core.distillation.teacher import Teacher, head_rows
from core.rollout.merged_adapters import is_linear, unwrap_peft
from core.shards.adapters import has_adapters
from core.shards.reference import frozen_copy, merged_copy
from core.trainers.base import BaseTrainer
from eval.errors import BadValue


class OwnTeacher:
    """Source of a teacher that is the student itself, with weights of a kind in `KINDS`.

    Args:
        args: The settings.
        is_adapted: Whether the student gets new adapters, which its start is without.
    """

    def __init__(self, args: OwnTeacherConfig, *, is_adapted: bool):
        self.args = args
        self.is_adapted = is_adapted

    def shared_tokens(self, tokenizer: PreTrainedTokenizerBase, student: PreTrainedModel) -> int:  # noqa: ARG002 - of `TeacherSource`
        """Return the number of tokens of the student's head.

        Raises:
            BadValue: see `OwnTeacherConfig.check_tokens`.
        """
        self.args.check_tokens(head_rows(student))
        return head_rows(student)

    def placed(self, trainer: BaseTrainer) -> Teacher:
        """Return the teacher; its weights become the reference of a trainer, or are the student's.

        Raises:
            BadValue: the weights of a live teacher are sharded, or adapters cannot be averaged.
        """
        kind, frame = self.args.teacher_model_kind, cast(PreTrainedModel | None, trainer.frame)
        if kind == "live":
            if trainer.frame is not None:
                raise BadValue(
                    "teacher_model_kind='live' with sharded weights: set teacher_model_kind='ema' "
                    "with teacher_update_rate=1.0, whose teacher has the same weights"
                )
            return Teacher(trainer.policy(), None)
        if kind == "base":
            trainer.keep_reference(adapters_off=self.is_adapted)
            return Teacher(trainer.reference(), frame)
        adapted = has_adapters(trainer.policy())
        if adapted:
            check_merging(trainer)
        trainer.keep_reference(adapters_off=False, copied=merged_copy if adapted else frozen_copy)
        trainer.move_reference(self.args.teacher_update_rate, self.args.teacher_sync_steps)
        return Teacher(trainer.reference(), frame)


def check_merging(trainer: BaseTrainer) -> None:
    """Refuse adapters whose sum with the weights below them is no weight of the same shape.

    Raises:
        BadValue: weights are sharded, or something but LoRA of linear layers is trained.
    """
    advice = "take teacher_model_kind='base' or 'live', or leave peft_config out"
    if trainer.frame is not None:
        raise BadValue(f"teacher_model_kind='ema' with adapters and sharded weights: {advice}")
    model: Any = unwrap_peft(trainer.policy())  # Any: layers of any class
    adapted = [layer for layer in model.modules() if hasattr(layer, "base_layer")]
    own = {id(weight) for layer in adapted for weight in layer.parameters()}
    others = [name for name, w in model.named_parameters() if w.requires_grad and id(w) not in own]
    if others or not all(merges(layer) for layer in adapted):
        raise BadValue(
            "teacher_model_kind='ema' averages whole weights, and these adapters are no LoRA of "
            f"linear layers alone: {advice}"
        )


def merges(layer: nn.Module) -> bool:
    """Return whether the adapters of a layer add up to a weight, see `linear_weight`."""
    base = cast(Any, layer).base_layer  # Any: a layer of peft
    return is_linear(layer) or (type(base) is nn.Linear and hasattr(layer, "lora_magnitude_vector"))
