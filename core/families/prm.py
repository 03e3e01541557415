"""Process reward models: for each step of a solution the probability that it is right."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from core.families.family import Training, training_figures
from core.families.offline import Offline
from core.families.reward import OF_ANSWERS, SIZES, RewardModels

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.prm import PRMConfig
    from core.scoring.prm import PRMTrainer


class SolutionScorers(Offline, Protocol):
    """Base of a family of models that score solutions, which start from a policy that solves.

    Held-out rows are problems that the starting policy solves, see `SolutionQuantities`.
    """

    gives_rewards = True
    unused = (
        *Offline.unused,
        *("heldout_every", "heldout_target"),
        *OF_ANSWERS,
    )
    solution_quantities = (
        "solutions/greedy",
        *(f"solutions/best_of_{n}" for n in SIZES),
        *(f"solutions/overrated_of_{n}" for n in SIZES),
        *(f"solutions/overrated_by_chance_of_{n}" for n in SIZES),
        "solutions/pass_at_64",
        "solutions/vote_of_16",
        "solutions/clear_vote_of_16",
        "solutions/weighted_vote_of_16",
        "solutions/vote_of_best_5_of_16",
        "solutions/trace_error",
        "solutions/trace_error_of_weighted_4",
        "solutions/ordered_pairs",
        "solutions/agreement_spread",
        "steps/differing_labels",
        "steps/as_steps",
        "steps/as_outcome",
    )
    profiles: Mapping[str, Mapping[str, object]] = {
        "cpu": {
            name: value
            for name, value in RewardModels.profiles["cpu"].items()
            if name not in ("heldout_every", "rate_factors")
        },
        "gpu": {
            **{
                name: value
                for name, value in RewardModels.profiles["gpu"].items()
                if name != "heldout_every"
            },
            "heldout_problems": 0,  # nobody judges the steps of their solutions
        },
        "paper": RewardModels.profiles["paper"],
    }

    @property
    def held_out_columns(self) -> tuple[str, ...]:
        """The prompt alone, as held-out problems have no solutions."""
        return ("prompt",)

    def model_of(self, training: Training) -> str:
        """Return the name of the model, to which the trainer adds a head if it has none."""
        return training.model


class ProcessRewardModels(SolutionScorers):
    """Family of `PRMTrainer`, on solutions whose steps are labelled."""

    name = "prm"
    columns = ("prompt", "completions", "labels")
    trained_by = "labels of steps"
    progress = (("loss", "loss", "{:.4f}"), ("accuracy", "right labels", "{:.3f}"))
    figures = training_figures(
        {
            "loss": "loss (nats/step)",
            "accuracy": "share of right labels of steps",
            "grad_norm": "norm of the gradient",
        }
    )[:1]

    def config_class(self) -> "type[PRMConfig]":
        """Import the config class."""
        from core.configs.prm import PRMConfig

        return PRMConfig

    def trainer_class(self) -> "type[PRMTrainer]":
        """Import the trainer class."""
        from core.scoring.prm import PRMTrainer

        return PRMTrainer
