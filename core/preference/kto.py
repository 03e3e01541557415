"""Kahneman-Tversky optimisation, arXiv 2402.01306: labelled answers against a common baseline."""

from collections.abc import Mapping

import torch
from datasets import Dataset
from torch import Tensor
from transformers.utils import logging

from core.configs.kto import KTOConfig
from core.data.best_fit import Data
from core.losses.unpaired import baseline
from core.preference.unpaired_collate import LABEL
from core.preference.unpaired_trainer import UnpairedTrainer
from core.trainers.publish import PAPERS

HIGHEST = 4 / 3  # recommended weight of desirable answers over that of undesirable ones
logger = logging.get_logger(__name__)


class KTOTrainer(UnpairedTrainer):
    """Trainer of labelled answers, with the interface of TRL's `KTOTrainer`.

    The shift of rewards is beta z0, see `core.losses.unpaired.baseline`.
    """

    args: KTOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    _config = KTOConfig
    _shift_metric = "kl"
    _baseline = 0.0  # of the running step or evaluation
    _name = "KTO"
    _tag_names = ("kto",)
    _paper = PAPERS["KTO"]

    @property
    def statistic(self) -> float:
        """The baseline z0, in nats."""
        return self._baseline

    @property
    def shift(self) -> float:
        """The reward beta z0 that counts as neither gain nor loss."""
        return self.args.beta * self.statistic

    def take_sum(self, total: float, count: float) -> None:
        """Set z0 from the sum of log-ratios of `count` mismatched answers."""
        self._baseline = baseline(total, count)

    def weights(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the factors (B,) of the losses of a micro-batch."""
        c, labels = self.args, inputs[LABEL]
        factors = labels.new_tensor([c.undesirable_weight, c.desirable_weight], dtype=torch.double)
        return factors[labels.long()]

    def prepared(self, dataset: Data) -> Data:
        """Return rows of token ids for the training; warn if the labels' weights are unequal."""
        rows = super().prepared(dataset)
        if isinstance(rows, Dataset):
            self.warn_of_weights(rows)
        return rows

    def prepared_for_evaluation(self, dataset: Data) -> Data:
        """Return rows of token ids for an evaluation."""
        return super().prepared(dataset)

    def warn_of_weights(self, rows: Dataset) -> None:
        """Log a warning if one label is missing, or undesirable answers weigh much more or less."""
        desirable = sum(rows[LABEL])
        undesirable = len(rows) - desirable
        if not desirable or not undesirable:
            logger.warning(f"all {len(rows)} answers of train_dataset have one label")
            return
        lower = self.args.undesirable_weight * undesirable / desirable
        if not lower <= self.args.desirable_weight <= HIGHEST * lower:
            logger.warning(
                f"{desirable} desirable answers of weight {self.args.desirable_weight:g} and "
                f"{undesirable} undesirable ones of weight {self.args.undesirable_weight:g}: set "
                f"desirable_weight to a value from {lower:.3g} to {HIGHEST * lower:.3g}"
            )
