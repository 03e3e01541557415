"""Base class of trainers on the rows of a dataset: streams, evaluation sets, tokens, experts."""

from abc import abstractmethod
from typing import cast

from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers.trainer_utils import PredictionOutput

from core.configs.base import BaseConfig
from core.data.best_fit import Data
from core.data.streams import Passes, endless, is_stream
from core.trainers.base import BaseTrainer
from core.trainers.resume import ProcessState
from core.trainers.setup import check_dispatch


class OfflineTrainer(BaseTrainer):
    """Trainer on prepared rows; a dataset without a length is read in repeated passes."""

    passes: Passes | None = None  # over the dataset of the training that runs, if it has no length
    router_weight: float
    _tokens_seen = 0.0

    @abstractmethod
    def prepared(self, dataset: Data) -> Data:
        """Return rows of token ids from a dataset in any format that the trainer takes."""

    def prepared_for_evaluation(self, dataset: Data) -> Data:
        """Return rows of token ids from a dataset that is evaluated on."""
        return self.prepared(dataset)

    def evaluation_rows(self, datasets: Data | dict[str, Data] | None) -> Data | None:
        """Return the rows of one or several datasets; None and a name are returned unchanged."""
        if datasets is None or isinstance(datasets, str):
            return datasets
        if isinstance(datasets, dict):
            return {name: self.prepared_for_evaluation(data) for name, data in datasets.items()}
        return self.prepared_for_evaluation(datasets)

    def get_train_dataloader(self) -> DataLoader:
        """Return transformers' loader; a dataset without a length is read in repeated passes."""
        loader = super().get_train_dataloader()
        return endless(loader) if is_stream(self.train_dataset) else loader

    def _prepare_for_training(
        self, max_steps: int, train_dataloader: DataLoader, resume_from_checkpoint: str | None
    ) -> tuple[nn.Module, DataLoader]:
        dataset = train_dataloader.dataset
        self.passes = dataset if isinstance(dataset, Passes) else None
        return super()._prepare_for_training(max_steps, train_dataloader, resume_from_checkpoint)

    def evaluate(
        self,
        eval_dataset: Data | dict[str, Data] | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Evaluate as transformers does; a dataset given here is prepared like the trainer's."""
        if is_stream(eval_dataset):
            check_dispatch(cast(BaseConfig, self.args))
        if not isinstance(eval_dataset, dict):  # several come back here one by one
            eval_dataset = self.evaluation_rows(eval_dataset)
        return super().evaluate(eval_dataset, ignore_keys, metric_key_prefix)

    def predict(
        self,
        test_dataset: Data,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "test",
    ) -> PredictionOutput:
        """Predict as transformers does; the dataset is prepared, but not packed."""
        return super().predict(self.prepared(test_dataset), ignore_keys, metric_key_prefix)

    def weigh_balance(self, loss: Tensor, *, whole_step: bool) -> Tensor:
        """Return a load-balancing loss of experts weighted, divided by the micro-batches of a step.

        Its mean over the processes is recorded.

        Args:
            loss: The loss of a micro-batch.
            whole_step: Whether the micro-batch is one of an optimizer step.
        """
        mean_loss = cast(Tensor, self.accelerator.gather(loss.detach())).mean().item()
        self.record({"aux_loss": mean_loss})
        steps = self.current_gradient_accumulation_steps if whole_step else 1
        return self.router_weight * loss / steps

    def count_tokens(self, count: float) -> None:
        """Add tokens of a micro-batch to those seen in training, which are logged."""
        if self.mode == "train":
            self._tokens_seen += count
        self.record_total("num_tokens", self._tokens_seen)

    def own_state(self) -> ProcessState:
        """Return the tokens seen so far, and the position in a dataset without a length."""
        return {"tokens_seen": self._tokens_seen, "position": self.passes and self.passes.position}

    def take_state(self, state: ProcessState) -> None:
        """Restore the token count and the position in a dataset without a length."""
        self._tokens_seen = state.get("tokens_seen", 0.0)
        position = state.get("position")
        if self.passes is not None and position is not None and not self.args.ignore_data_skip:
            self.passes.position = position
            self.passes.passed_over = self.state.global_step * self.args.gradient_accumulation_steps
