"""Odds ratio preference optimisation, arXiv 2403.07691."""

from typing import cast

from torch import Tensor

from core.configs.orpo import ORPOConfig
from core.losses.divergence_scores import log_sigmoid
from core.losses.reference_free import ReferenceFreeLosses
from core.preference.collate import PairCollator, WholeChosenCollator
from core.preference.reference_free_trainer import ReferenceFreeTrainer
from core.trainers.publish import PAPERS


class ORPOTrainer(ReferenceFreeTrainer):
    """Trainer of `ORPO_LOSS`, with the interface of TRL's `ORPOTrainer`.

    The mean negative log-likelihood of a token of the chosen texts is added. As in TRL and in the
    authors' code it includes the prompts, from their second token on.
    """

    _config = ORPOConfig
    _name = "ORPO"
    _tag_names = ("orpo",)
    _paper = PAPERS["ORPO"]

    def collator(self) -> PairCollator:
        """Return the collator of batches in which chosen prompts are completions, too."""
        return WholeChosenCollator(cast(int, self.tokenizer.pad_token_id), self.args.padding)

    def metrics_of(self, result: ReferenceFreeLosses) -> dict[str, Tensor]:
        """Return metrics (B,) of pairs, the log odds ratio and its log-sigmoid among them."""
        odds = {"log_odds_ratio": log_sigmoid(result.gap), "log_odds_chosen": result.gap}
        return {**super().metrics_of(result), **odds}
