"""Verifiers: at each token of a solution a value of whether its answer is right."""

from typing import TYPE_CHECKING

from core.families.family import training_figures
from core.families.prm import SolutionScorers

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.verifier import VerifierConfig
    from core.scoring.verifier import VerifierTrainer


class Verifiers(SolutionScorers):
    """Family of `VerifierTrainer`, on solutions with a label."""

    name = "verifier"
    columns = ("prompt", "completion", "label")
    trained_by = "labels of solutions"
    progress = (
        ("loss", "loss", "{:.4f}"),
        ("value_loss", "squared error", "{:.4f}"),
        ("accuracy", "right labels", "{:.3f}"),
    )
    figures = training_figures(
        {
            "loss": "loss of a token",
            "value_loss": "squared error of the values",
            "lm_loss": "loss of the language model (nats/token)",
            "accuracy": "share of tokens on the side of their label",
            "grad_norm": "norm of the gradient",
        }
    )[:1]

    def config_class(self) -> "type[VerifierConfig]":
        """Import the config class."""
        from core.configs.verifier import VerifierConfig

        return VerifierConfig

    def trainer_class(self) -> "type[VerifierTrainer]":
        """Import the trainer class."""
        from core.scoring.verifier import VerifierTrainer

        return VerifierTrainer
