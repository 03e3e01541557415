"""The stage of quantities of texts that a model draws by denoising, beside held-out texts."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from core.stages.data import read_rows, split_rows
from core.stages.quantities import QuantityStage
from eval.terminal import say

if TYPE_CHECKING:  # transformers, which the plan of a run must not wait for
    from core.configs.base import BaseConfig
    from core.configs.uniform_diffusion import UniformDiffusionConfig

STEPS = 32  # of the reverse process


@dataclass(frozen=True, kw_only=True)
class DrawnTexts(QuantityStage):
    """Quantities of as many drawn texts as there are held-out rows, of the length of the longest.

    Attributes:
        config: The settings of the training.
        seed: Seed of the draws.
    """

    name = "drawn-texts"
    config: "BaseConfig"
    seed: int

    @property
    def settings(self) -> "UniformDiffusionConfig":
        """The settings of the training, which say how logits and rows are read."""
        return cast("UniformDiffusionConfig", self.config)

    @property
    def inputs(self) -> Mapping[str, object]:
        """The inputs of all such stages, and how texts are drawn."""
        own = {"prediction": self.settings.model_prediction, "steps": STEPS, "seed": self.seed}
        return {**super().inputs, **own}

    def work(self, folder: Path) -> Mapping[str, object]:  # noqa: ARG002 - it leaves no files
        """Draw the texts, and return every quantity by its name."""
        import torch
        from datasets import Dataset  # pyright: ignore[reportMissingTypeStubs] - it ships none

        from core.data.preparation import tokenize_rows
        from core.diffusion.bigrams import bigram_distance
        from core.diffusion.noise import symbol_count
        from core.diffusion.reverse_steps import draw_texts

        _, rows = split_rows(read_rows(self.data.folder), self.rows)
        dataset: Any = Dataset  # Any: its methods are half typed
        encoded = tokenize_rows(
            dataset.from_list(rows),
            self.answering.tokenizer,
            text_field=self.settings.dataset_text_field,
            max_length=self.settings.max_length,
        )
        held_out = [torch.tensor(row["input_ids"]) for row in encoded]
        model = self.answering.denoiser
        drawn = draw_texts(
            model,
            self.settings.model_prediction,
            count=len(held_out),
            length=max(map(len, held_out)),
            steps=STEPS,
            seed=self.seed,
        )
        say(f"{self.name}: {self.subject} of {len(drawn)} texts")
        distance = bigram_distance([*drawn.cpu()], held_out, symbol_count(model))
        return {name: asdict(distance) for name in self.quantities}
