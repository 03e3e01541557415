"""Process reward models, arXiv 2211.14275: whether each step of a solution is right."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from datasets import Dataset, IterableDataset
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.configs.prm import PRMConfig
from core.data.best_fit import Data
from core.data.labelled_steps import StepEncoder, with_both_kinds
from core.losses.scoring import step_labels
from core.models.scorers import STEP_HEAD
from core.scoring.token_scores import TokenScoringTrainer
from core.trainers.publish import PAPERS
from core.trainers.setup import refuse
from eval.errors import BadValue

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

PRM_METHODS: Mapping[str, str] = {"tokenize_row": "override prepared(dataset)"}


class PRMTrainer(TokenScoringTrainer):
    """Trainer of labels of steps, with the interface of `PRMTrainer` of TRL 1.13."""

    UNCALLED = PRM_METHODS
    args: PRMConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    _config = PRMConfig
    head = STEP_HEAD
    _name = "PRM"
    _tag_names = ("prm",)
    _paper = PAPERS["PRM"]

    def __init__(
        self,
        model: str | PreTrainedModel | None = None,
        args: PRMConfig | None = None,
        data_collator: Callable[..., dict[str, Tensor]] | None = None,
        train_dataset: Dataset | IterableDataset | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        model_init: Callable[[], PreTrainedModel] | None = None,
        compute_metrics: Callable[..., dict[str, float]] | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        preprocess_logits_for_metrics: Callable[..., Tensor] | None = None,
        peft_config: "PeftConfig | None" = None,
    ):
        refuse(
            type(self).__name__,
            model_init=model_init,
            compute_metrics=compute_metrics,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
        )
        if model is None:
            raise BadValue(f"{type(self).__name__}(model=None): give a model, or the name of one")
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
        )

    @classmethod
    def encoder(
        cls, args: PRMConfig, tokenizer: PreTrainedTokenizerBase, *, all_labels: bool = True
    ) -> StepEncoder:
        """Return the function that encodes rows, with labels of all steps or as the training."""
        return StepEncoder(
            tokenizer=tokenizer,
            separator=args.step_separator,
            max_completion_length=args.max_completion_length,
            max_length=args.max_length,
            last_only=args.train_on_last_step_only and not all_labels,
        )

    def prepared(self, dataset: Data) -> Data:
        """Return rows of token ids and labels for the training; both labels have to occur."""
        encoder = self.encoder(self.args, self.tokenizer, all_labels=False)
        return with_both_kinds(encoder.rows(dataset, self.args.dataset_num_proc))

    def prepared_for_evaluation(self, dataset: Data) -> Data:
        """Return rows of token ids with the labels of all steps."""
        return self.encoder(self.args, self.tokenizer).rows(dataset, self.args.dataset_num_proc)

    def token_losses(
        self, scores: Tensor, labels: Tensor, inputs: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy of each step, and whether its label is the likelier one."""
        del inputs
        return step_labels(scores, labels), scores.argmax(-1) == labels
