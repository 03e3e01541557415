"""Contrastive preference optimisation, arXiv 2401.08417, with SimPO and AlphaPO beside it."""

from core.configs.cpo import CPOConfig
from core.preference.reference_free_trainer import ReferenceFreeTrainer
from core.trainers.publish import PAPERS


class CPOTrainer(ReferenceFreeTrainer):
    """Trainer of the losses of `CPO_LOSSES`, with the interface of TRL's `CPOTrainer`.

    `cpo_alpha` times the mean negative log-likelihood of a token of the chosen answers is added.
    """

    _config = CPOConfig
    _name = "CPO"
    _tag_names = ("cpo",)
    _paper = PAPERS["CPO"]
