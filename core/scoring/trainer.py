"""Base class of trainers of models with a head that scores texts or their tokens."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from core.configs.base import BaseConfig
from core.configs.reward import ScoringConfig
from core.forward.router import has_experts
from core.models.load import load_keywords
from core.models.scorers import ScoringHead, load_scorer
from core.preference.answer_trainer import AnswerTrainer, Term, not_finite
from core.shards.adapters import has_adapters
from core.trainers.vocabulary import policy_and_tokenizer
from eval.errors import BadValue

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

KINDS = ("ForSequenceClassification", "ForTokenClassification")  # end names of classes
logger = logging.get_logger(__name__)


class ScoringTrainer(AnswerTrainer):
    """Trainer of a head of transformers and the model below it.

    A subclass says what is scored (`scores`), and what the terms of the loss are (`loss_terms`).
    """

    args: ScoringConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    head: ClassVar[ScoringHead]

    @abstractmethod
    def scores(self, model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the scores of a micro-batch, with gradient."""

    @abstractmethod
    def loss_terms(self, scores: Tensor, inputs: Mapping[str, Tensor]) -> list[Term]:
        """Return the terms of the loss of a micro-batch, and record their metrics."""

    def score_rows(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the row of `input_ids` that each score belongs to; here each row has one."""
        return torch.arange(len(inputs["input_ids"]))

    def load(
        self,
        model: str | PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None,
        peft_config: "PeftConfig | None",
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """Return the model with its head, and the tokenizer; adapters train the head too.

        Raises:
            BadValue: the model has no such head, or one of another number of labels.
        """
        adapters = with_head(peft_config, self.head)
        load = partial(scoring_model, head=self.head)
        scorer, own = policy_and_tokenizer(model, tokenizer, adapters, self.args, load=load)
        if has_experts(scorer.config.get_text_config()):
            logger.warning(
                f"{type(scorer).__name__} is a mixture of experts, which is trained without its "
                "load-balancing loss: classifiers of transformers return none"
            )
        return scorer, own

    def batch_terms(
        self, model: nn.Module, inputs: dict[str, Tensor]
    ) -> tuple[list[Term], Tensor | None]:
        """Return the terms of the loss of a micro-batch, see `AnswerTrainer`."""
        with self.phases("forward"):
            scores = self.scores(model, inputs)
        self.check_scores(scores, inputs)
        terms = self.loss_terms(scores, inputs)
        seen = self.accelerator.reduce(inputs["attention_mask"].sum(), reduction="sum")
        self.count_tokens(cast(Tensor, seen).item())
        return terms, None

    def check_scores(self, scores: Tensor, inputs: Mapping[str, Tensor]) -> None:
        """Raise `BadValue` with the text of the first score that is not finite."""
        finite = scores.isfinite().flatten(1).all(1) if scores.dim() > 1 else scores.isfinite()
        if finite.all():
            return
        place = int(finite.int().argmin())
        row = int(self.score_rows(inputs)[place])
        text = self.tokenizer.decode(inputs["input_ids"][row][inputs["attention_mask"][row] > 0])
        raise not_finite(f"score of {text!r}", scores[place].tolist())

    @torch.no_grad()
    def gathered(self, columns: Sequence[Tensor]) -> Tensor:
        """Return columns (B,) of the rows of all processes as (rows, columns), in 64 bits."""
        return self.gather_rows(torch.stack([*columns], 1).double())


def with_head(peft_config: "PeftConfig | None", head: ScoringHead) -> "PeftConfig | None":
    """Return a config of adapters of the task of a head, so that the head is trained and saved.

    Without this task peft leaves a new head at its random weights, which differ at each loading.
    """
    if peft_config is None or not hasattr(peft_config, "task_type"):
        return peft_config
    changed: Any = copy(peft_config)  # Any: of a class that peft chooses
    changed.task_type = head.task
    if getattr(changed, "modules_to_save", None) is not None:
        changed.modules_to_save = [*changed.modules_to_save]  # which peft extends in place
    return changed


def scoring_model(
    model: str | PreTrainedModel, args: BaseConfig, head: ScoringHead
) -> PreTrainedModel:
    """Return the model after checking its head, or load the named one with a head, in 32 bits.

    Raises:
        BadValue: the model has no such head, or one of another number of labels.
    """
    if isinstance(model, str):
        keywords = {"dtype": torch.float32, "trust_remote_code": args.trust_remote_code}
        return load_scorer(model, head, **{**keywords, **load_keywords(args)}).model
    if args.model_init_kwargs:
        logger.warning("model_init_kwargs are for a model given by name: this one stays as it is")
    base: Any = model  # Any: peft's wrapper, or a model
    if has_adapters(model) and hasattr(model, "get_base_model"):
        base = base.get_base_model()
    loader = head.loader.__name__
    kind = loader.removeprefix("AutoModel")
    if base.config.num_labels != head.labels:
        raise BadValue(
            f"the model has num_labels={base.config.num_labels}, expected {head.labels}: load it "
            f"by {loader} with num_labels={head.labels}, or pass its name"
        )
    is_other = type(base).__name__.endswith(KINDS) and not type(base).__name__.endswith(kind)
    if base.get_output_embeddings() is not None or is_other:
        raise BadValue(
            f"the model is a {type(base).__name__}, which has no head that scores {head.scores}: "
            f"load it by {loader}, or pass its name"
        )
    return model
