"""Binary classifier optimisation, arXiv 2404.04656: labelled answers against their mean reward."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from datasets import Dataset, IterableDataset
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.configs.bco import BCOConfig
from core.data.best_fit import Data
from core.models.load import load_policy
from core.preference.matched_prompts import PromptMatching
from core.preference.unpaired_trainer import UnpairedTrainer
from core.trainers.publish import PAPERS
from core.trainers.resume import ProcessState
from core.trainers.setup import refuse

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra


class BCOTrainer(UnpairedTrainer):
    """Trainer of labelled answers, with the interface of `BCOTrainer` of TRL 1.13.

    The shift of rewards is delta, the mean of all rewards seen in training. With `embedding_func`
    undesirable answers are weighed by the density ratio of the prompts of both labels at their
    prompt (underlying distribution matching).
    """

    args: BCOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    _config = BCOConfig
    _shift_metric = "delta"
    _observes_evaluations = False
    _name = "BCO"
    _tag_names = ("bco",)
    _paper = PAPERS["BCO"]
    _rewards_seen = (0.0, 0.0)  # their sum and number

    def __init__(
        self,
        model: str | PreTrainedModel,
        ref_model: PreTrainedModel | str | None = None,
        args: BCOConfig | None = None,
        train_dataset: Dataset | IterableDataset | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        data_collator: Callable[..., dict[str, Tensor]] | None = None,
        model_init: Callable[[], PreTrainedModel] | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        preprocess_logits_for_metrics: Callable[..., Tensor] | None = None,
        peft_config: "PeftConfig | None" = None,
        compute_metrics: Callable[..., dict[str, float]] | None = None,
        model_adapter_name: str | None = None,
        ref_adapter_name: str | None = None,
        embedding_func: Callable[..., Tensor] | None = None,
        embedding_tokenizer: PreTrainedTokenizerBase | None = None,
    ):
        refuse(
            type(self).__name__,
            model_init=model_init,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
            model_adapter_name=model_adapter_name,
            ref_adapter_name=ref_adapter_name,
        )
        self.embedding_func, self.embedding_tokenizer = embedding_func, embedding_tokenizer
        self.matching = PromptMatching(embedding_func, embedding_tokenizer)
        super().__init__(
            model=model,
            ref_model=load_policy(ref_model) if isinstance(ref_model, str) else ref_model,
            args=args,
            data_collator=data_collator,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            compute_metrics=compute_metrics,
            callbacks=callbacks,
            optimizers=optimizers,
            peft_config=peft_config,
        )

    @property
    def statistic(self) -> float:
        """The mean delta of the rewards seen; 0 if there are none."""
        total, count = self._rewards_seen
        return total / count if count else 0.0

    def take_sum(self, total: float, count: float) -> None:
        """Add the rewards of a training step or micro-batch to those seen."""
        before, number = self._rewards_seen
        self._rewards_seen = before + total, number + count

    @property
    def keeps_text(self) -> bool:
        """True if prompts are embedded, for which prepared rows keep their text."""
        return self.embedding_func is not None

    def prepared(self, dataset: Data) -> Data:
        """Return rows of token ids; with embeddings, those of undesirable answers are weighed.

        Raises:
            BadValue: settings of the weights are set without embeddings, or see `PromptMatching`.
        """
        self.args.check_matching(has_embeddings=self.keeps_text)
        return self.matching.weigh(super().prepared(dataset), self.args)

    def own_state(self) -> ProcessState:
        """Return the state of a trainer of rows, and the rewards seen."""
        return {**super().own_state(), "rewards_seen": self._rewards_seen}

    def take_state(self, state: ProcessState) -> None:
        """Restore the state of a trainer of rows, and the rewards seen."""
        super().take_state(state)
        self._rewards_seen = state.get("rewards_seen", (0.0, 0.0))
