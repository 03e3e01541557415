"""Triple preference optimisation, arXiv 2405.16681."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from datasets import Dataset, IterableDataset
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.configs.tpo import TPOConfig
from core.data.best_fit import Data
from core.data.pairs import ANSWERS, GOLD, TRIPLE
from core.preference.reference_free_trainer import ReferenceFreeTrainer
from core.trainers.publish import PAPERS

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra


class TPOTrainer(ReferenceFreeTrainer):
    """Trainer of the losses of `TPO_LOSSES`, with the interface of TRL's `TPOTrainer`.

    `tpo_alpha` times the mean negative log-likelihood of a token of the gold answers is added. They
    are the column `reference`, which is not read if `tpo_alpha` is 0.
    """

    _config = TPOConfig
    _likely = GOLD
    _name = "TPO"
    _tag_names = ("tpo",)
    _paper = PAPERS["TPO"]

    def __init__(
        self,
        model: str | PreTrainedModel,
        args: TPOConfig | None = None,
        data_collator: Callable[..., dict[str, Tensor]] | None = None,
        train_dataset: Dataset | IterableDataset | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        compute_metrics: Callable[..., dict[str, float]] | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        peft_config: "PeftConfig | None" = None,
    ):
        super().__init__(
            model,
            args,
            data_collator=data_collator,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            callbacks=callbacks,
            optimizers=optimizers,
            peft_config=peft_config,
            compute_metrics=compute_metrics,
        )

    @property
    def answers(self) -> Sequence[str]:
        """Columns of the answers that are read: the pair, and the gold answer if it weighs."""
        return TRIPLE if self.args.likelihood_weight else ANSWERS
