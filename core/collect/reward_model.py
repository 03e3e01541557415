"""A sequence classifier as a reward function."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from core.bounded_templates import Tokenizer, apply_template
from core.forward.head_scores import end_scores
from core.rewards.completions import Completion, completion_text


@dataclass(frozen=True)
class RewardModel:
    """A sequence classifier with one label as a reward: its logit for prompt and completion."""

    model: nn.Module
    tokenizer: Tokenizer
    template: Mapping[str, object]
    time_limit_s: ClassVar[float] = math.inf  # that of a forward pass, whatever a text says

    @torch.inference_mode()
    def __call__(
        self, *, prompts: Sequence[Completion], completions: Sequence[Completion], **_: object
    ) -> Tensor:
        """Return the logit of each prompt and completion (N,)."""
        texts = [self.text(p, c) for p, c in zip(prompts, completions, strict=True)]
        inputs = self.tokenizer(
            text=texts,
            return_tensors="pt",
            padding=True,
            padding_side="right",
            add_special_tokens=False,
        ).to(next(self.model.parameters()).device)
        scores = end_scores(self.model, inputs["input_ids"], inputs["attention_mask"])
        return scores[:, 0].float().cpu()

    def text(self, prompt: Completion, completion: Completion) -> str:
        """Concatenate a prompt and its completion; messages go through the chat template."""
        if isinstance(prompt, str):
            return prompt + completion_text(completion)
        messages = [*prompt, *completion]
        return apply_template(self.tokenizer, messages, tokenize=False, **self.template)
