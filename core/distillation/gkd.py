"""Generalised knowledge distillation: completions of the student or the data, and any D_beta."""

from typing import TYPE_CHECKING

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.data.best_fit import Data
from core.distillation.distilling import DistillingTrainer
from core.distillation.gkd_config import GKDConfig
from core.trainers.publish import PAPERS
from core.trainers.setup import refuse

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra


class GKDTrainer(DistillingTrainer):
    """Trainer of a student on its own and on other completions, with the interface of TRL's.

    arXiv 2306.13649 algorithm 1. A row has `messages`, or `prompt` and `completion`. With
    `seq_kd` the teacher samples in place of the data.
    """

    args: GKDConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings = GKDConfig
    _name = "GKD"
    _tag_names = ("gkd",)
    _paper = PAPERS["GKD"]

    def __init__(
        self,
        model: str | PreTrainedModel,
        teacher_model: str | PreTrainedModel | None = None,
        args: GKDConfig | None = None,
        data_collator: object = None,
        train_dataset: Data | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        compute_metrics: object = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        preprocess_logits_for_metrics: object = None,
        peft_config: "PeftConfig | None" = None,
        formatting_func: object = None,
    ):
        refuse(type(self).__name__, formatting_func=formatting_func)
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
