"""Direct preference optimisation, arXiv 2305.18290, and the losses that TRL trains beside it."""

from core.losses.preference import Pairs, PreferenceLosses, preference_losses
from core.preference.referenced import ReferencedTrainer


class DPOTrainer(ReferencedTrainer):
    """Trainer of the losses of `PREFERENCES`, with the interface of TRL's `DPOTrainer`."""

    _name = "DPO"
    _tag_names = ("dpo",)
    _paper = {  # noqa: RUF012 - a constant of the class
        "title": "Direct Preference Optimization: Your Language Model is Secretly a Reward Model",
        "id": "2305.18290",
        "citation": """@inproceedings{rafailov2023direct,
  title = {{Direct Preference Optimization}: Your Language Model is Secretly a Reward Model},
  author = {Rafael Rafailov and Archit Sharma and Eric Mitchell and Christopher D. Manning and
            Stefano Ermon and Chelsea Finn},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2023},
}""",
    }

    def pair_losses(self, pairs: Pairs) -> PreferenceLosses:
        """Return the losses that `loss_type` names; a method to override."""
        return preference_losses(pairs, self.args)
