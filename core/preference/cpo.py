"""Contrastive preference optimisation, arXiv 2401.08417, with SimPO and AlphaPO beside it."""

from core.configs.cpo import CPOConfig
from core.preference.reference_free_trainer import ReferenceFreeTrainer


class CPOTrainer(ReferenceFreeTrainer):
    """Trainer of the losses of `CPO_LOSSES`, with the interface of TRL's `CPOTrainer`.

    `cpo_alpha` times the mean negative log-likelihood of a token of the chosen answers is added.
    """

    _config = CPOConfig
    _name = "CPO"
    _tag_names = ("cpo",)
    _paper = {  # noqa: RUF012 - a constant of the class
        "title": "Contrastive Preference Optimization: Pushing the Boundaries of LLM Performance "
        "in Machine Translation",
        "id": "2401.08417",
        "citation": """@inproceedings{xu2024contrastive,
  title = {{Contrastive Preference Optimization}: Pushing the Boundaries of {LLM} Performance in
           Machine Translation},
  author = {Haoran Xu and Amr Sharaf and Yunmo Chen and Weiting Tan and Lingfeng Shen and
            Benjamin Van Durme and Kenton Murray and Young Jin Kim},
  booktitle = {International Conference on Machine Learning},
  year = {2024},
}""",
    }
