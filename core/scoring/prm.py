"""Process reward models, arXiv 2211.14275: whether each step of a solution is right."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

import torch
from datasets import Dataset, IterableDataset
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.data.best_fit import Data
from core.data.labelled_steps import ENCODED, with_both_kinds
from core.data.sft import IGNORED
from core.forward.head_scores import token_scores
from core.losses.scoring import step_labels
from core.models.scorers import STEP_HEAD
from core.preference.answer_trainer import Term
from core.preference.collate import LABELS
from core.scoring.collate import StepCollator
from core.scoring.config import PRMConfig
from core.scoring.trainer import ScoringTrainer
from core.trainers.setup import refuse
from eval.errors import BadValue

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

PRM_METHODS: Mapping[str, str] = {"tokenize_row": "override prepared(dataset)"}


class PRMTrainer(ScoringTrainer):
    """Trainer of labels of steps, with the interface of `PRMTrainer` of TRL 1.13.

    The loss is a mean over the labelled steps of the whole optimizer step, on all processes.
    """

    UNCALLED = PRM_METHODS
    args: PRMConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    _config = PRMConfig
    _head = STEP_HEAD
    _name = "PRM"
    _tag_names = ("prm",)
    _paper = {  # noqa: RUF012 - a constant of the class
        "title": "Solving math word problems with process- and outcome-based feedback",
        "id": "2211.14275",
        "citation": """@misc{uesato2022solving,
  title = {Solving math word problems with process- and outcome-based feedback},
  author = {Jonathan Uesato and Nate Kushman and Ramana Kumar and Francis Song and others},
  year = {2022},
  eprint = {arXiv:2211.14275},
}""",
    }

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

    def collator(self) -> StepCollator:
        """Return the collator of rows that `prepared` returns."""
        return StepCollator(cast(int, self.tokenizer.pad_token_id))

    def prepared(self, dataset: Data) -> Data:
        """Return rows of token ids and labels for the training; both labels have to occur."""
        c = self.args
        encoder = c.encoder(self.tokenizer, last_only=c.train_on_last_step_only)
        return with_both_kinds(encoder.rows(dataset, c.dataset_num_proc))

    def prepared_for_evaluation(self, dataset: Data) -> Data:
        """Return rows of token ids with the labels of all steps."""
        encoder = self.args.encoder(self.tokenizer, last_only=False)
        return encoder.rows(dataset, self.args.dataset_num_proc)

    def scores(self, model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the logits (M, 2) of a wrong and a right step at the ends of M steps."""
        labels, mask = inputs[LABELS], inputs["attention_mask"]
        logits = token_scores(model, inputs["input_ids"], mask)
        return logits[labels[mask.bool()] != IGNORED]

    def score_rows(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the row of each labelled step."""
        return (inputs[LABELS] != IGNORED).nonzero()[:, 0]

    def loss_terms(self, scores: Tensor, inputs: Mapping[str, Tensor]) -> list[Term]:
        """Return the losses of the steps, summed in each row, and record their accuracy."""
        labels, is_step = inputs[LABELS], inputs[LABELS] != IGNORED
        losses = step_labels(scores, labels[is_step])
        hits = (scores.argmax(-1) == labels[is_step]).to(losses.dtype)
        sums = losses.new_zeros(2, len(labels))
        of_rows, right = sums.index_add(1, self.score_rows(inputs), torch.stack([losses, hits]))
        counts = is_step.sum(1)
        found, steps = self.gathered([right, counts]).sum(0).tolist()
        self.record({"accuracy": found / max(steps, 1.0)}, weight=steps)
        return [Term(of_rows, counts)]

    def _set_signature_columns_if_needed(self) -> None:
        self._signature_columns = [*ENCODED]
