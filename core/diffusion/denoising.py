"""Discrete diffusion with uniform noise, arXiv 2605.22765: tokens are predicted from noisy ones."""

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from core.configs.uniform_diffusion import UniformDiffusionConfig
from core.data.best_fit import COLUMNS, Data
from core.data.preparation import tokenize_rows
from core.data.sft import IGNORED
from core.diffusion.noise import INDEX, CanvasCollator, symbol_count, uniform_noise
from core.losses.diffusion import denoising_loss
from core.models.denoisers import denoising_model
from core.preference.answer_trainer import AnswerTrainer, Term, not_finite
from core.trainers.publish import PAPERS
from core.trainers.vocabulary import policy_and_tokenizer

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra


class UniformDiffusionTrainer(AnswerTrainer):
    """Trainer of a model that reads a text in both directions and predicts its clean tokens.

    Noise replaces tokens of a text, or of the completion where a row has a prompt. The loss is the
    mean cross-entropy over all of these tokens in the optimizer step, noisy or not.
    """

    args: UniformDiffusionConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    _config = UniformDiffusionConfig
    _name = "UniformDiffusion"
    _tag_names = ("uniform-diffusion",)
    _paper = PAPERS["UniformDiffusion"]

    def load(
        self,
        model: str | PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None,
        peft_config: "PeftConfig | None",
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """Return the model, which must read in both directions, and its tokenizer.

        Raises:
            BadValue: the model is causal.
        """
        adapters = copy(peft_config)
        if adapters is not None:
            cast(Any, adapters).task_type = None  # as none of peft's tasks denoises
        return policy_and_tokenizer(model, tokenizer, adapters, self.args, load=denoising_model)

    def prepared(self, dataset: Data) -> Data:
        """Return rows of token ids and labels with their places, as fine-tuning prepares rows."""
        rows = tokenize_rows(
            dataset,
            self.tokenizer,
            text_field=self.args.dataset_text_field,
            max_length=self.args.max_length,
            workers=self.args.dataset_num_proc,
        )
        return rows.map(lambda _, index: {INDEX: index}, with_indices=True)

    def collator(self) -> CanvasCollator:
        """Return the collator of rows that `prepared` returns."""
        return CanvasCollator(cast(int, self.tokenizer.pad_token_id))

    def batch_terms(
        self, model: nn.Module, inputs: dict[str, Tensor]
    ) -> tuple[list[Term], Tensor | None]:
        """Return the terms of the loss of a micro-batch, see `AnswerTrainer`."""
        is_labelled = inputs["labels"] != IGNORED
        with self.phases("forward"):
            losses = self.token_losses(model, inputs, is_labelled)
        rows = is_labelled.nonzero()[:, 0]
        of_rows = losses.new_zeros(len(is_labelled)).index_add(0, rows, losses)
        self.check_losses(of_rows, inputs)
        seen = self.accelerator.reduce(inputs["attention_mask"].sum(), reduction="sum")
        self.count_tokens(cast(Tensor, seen).item())
        return [Term(of_rows, is_labelled.sum(1))], None

    def token_losses(
        self, model: nn.Module, inputs: Mapping[str, Tensor], is_labelled: Tensor
    ) -> Tensor:
        """Return the loss (M,) of each labelled token.

        The noise of an evaluation is that of step 0, always the same.
        """
        labels = inputs["labels"]
        noise = uniform_noise(
            labels,
            inputs[INDEX].tolist(),
            symbol_count(self.policy()),
            seed=self.args.seed,
            step=self.state.global_step + 1 if self.mode == "train" else 0,
        )
        noisy = inputs["input_ids"].masked_scatter(is_labelled, noise.tokens)
        output = model(input_ids=noisy, attention_mask=inputs["attention_mask"])
        logits = output.logits[is_labelled]
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        prediction, clean = self.args.model_prediction, labels[is_labelled]
        return denoising_loss(prediction, wide, noise.tokens, noise.kept.to(wide), clean)

    def check_losses(self, losses: Tensor, inputs: Mapping[str, Tensor]) -> None:
        """Raise `BadValue` with the first text whose loss is not finite."""
        for row in (~losses.isfinite()).nonzero()[:1, 0].tolist():
            ids = inputs["input_ids"][row][inputs["attention_mask"][row] > 0]
            raise not_finite(f"loss of {self.tokenizer.decode(ids)!r}", losses[row].item())

    def _set_signature_columns_if_needed(self) -> None:
        self._signature_columns = [*COLUMNS, INDEX]
