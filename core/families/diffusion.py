"""Discrete diffusion with uniform noise: all tokens of a text are predicted from noisy ones."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.families.family import Training, training_figures
from core.families.offline import Offline
from core.families.profiles import CPU_TRAINING, GPU_TRAINING, PAPER_TRAINING
from core.families.reward import OF_ANSWERS, SAMPLED
from core.models.builds import ENCODER

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.uniform_diffusion import UniformDiffusionConfig
    from core.diffusion.denoising import UniformDiffusionTrainer

UNWATCHED = ("heldout_every", "heldout_target", *OF_ANSWERS, *SAMPLED)  # of held-out answers


class UniformDiffusion(Offline):
    """Family of `UniformDiffusionTrainer`, on texts, listed with fine-tuning."""

    name = "diffusion"
    listed_with = "sft"
    columns = ("text",)
    trained_by = "denoising"
    gives_texts = True
    text_quantities = ("bigrams/distance",)
    unused = (*Offline.unused, *UNWATCHED)
    profiles: Mapping[str, Mapping[str, object]] = {
        "cpu": {
            **{
                name: value
                for name, value in CPU_TRAINING.items()
                if name not in ("twins", "rate_factors", *UNWATCHED)
            },
            "model": ENCODER,
            "data": "nano-canvas",
            "learning_rate": 2e-3,
            "lr_scheduler_type": "constant",
            "per_device_train_batch_size": 64,
            "gradient_accumulation_steps": 1,
            "max_steps": 72,
            "save_steps": 24,
        },
        "gpu": {
            **{name: value for name, value in GPU_TRAINING.items() if name != "heldout_every"},
            "learning_rate": 1.5e-4,
            "per_device_train_batch_size": 8,
            "gradient_accumulation_steps": 8,
            "max_steps": 200,
            "save_steps": 50,
        },
        "paper": PAPER_TRAINING,
    }
    progress = (("loss", "loss", "{:.4f}"),)
    figures = training_figures({"loss": "loss (nats/token)", "grad_norm": "norm of the gradient"})[
        :1
    ]

    def config_class(self) -> "type[UniformDiffusionConfig]":
        """Import the config class."""
        from core.configs.uniform_diffusion import UniformDiffusionConfig

        return UniformDiffusionConfig

    def trainer_class(self) -> "type[UniformDiffusionTrainer]":
        """Import the trainer class."""
        from core.diffusion.denoising import UniformDiffusionTrainer

        return UniformDiffusionTrainer

    def model_of(self, training: Training) -> str:
        """Return the name of the model, which the trainer loads."""
        return training.model
