"""On-policy distillation: a divergence from a teacher on the student's own completions."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.data.best_fit import Data
from core.distillation.distillation_config import ESTIMATORS, DistillationConfig
from core.distillation.distilling import DistillingTrainer
from core.forward.two_heads import entropy_of
from core.trainers.publish import PAPERS
from core.trainers.setup import refuse

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra


class DistillationTrainer(DistillingTrainer):
    """Trainer of a student on its own completions, with the interface of TRL's.

    The loss of a token is D_beta of arXiv 2306.13649 eq. 1 over the vocabulary, or with
    `estimator="sampled"` the gradient of the reverse KL by the sampled token alone.
    """

    args: DistillationConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings = DistillationConfig
    _name = "Distillation"
    _tag_names = ("distillation",)
    _paper = PAPERS["GKD"]

    def __init__(
        self,
        model: str | PreTrainedModel,
        teacher_model: str | PreTrainedModel | None = None,
        args: DistillationConfig | None = None,
        train_dataset: Data | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        quantization_config: object = None,
        peft_config: "PeftConfig | None" = None,
        tools: object = None,
    ):
        refuse(type(self).__name__, quantization_config=quantization_config, tools=tools)
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
        )

    def measure(self, logps: Tensor, teacher_logps: Tensor, tokens: Tensor) -> Tensor:
        """Return entropy and loss of each token (N, 2), see `DistillingTrainer.measure`."""
        of = ESTIMATORS[self.args.estimator].of
        losses = of(logps, teacher_logps, tokens, self.args.beta)
        return torch.stack([entropy_of(logps), losses], dim=-1)
