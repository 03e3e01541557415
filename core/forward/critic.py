"""The value model beside the policy, with its optimizer, gradient reduction and checkpoint."""

from pathlib import Path
from typing import cast

import torch
from accelerate import Accelerator
from torch import Tensor
from torch.nn.utils import clip_grad_norm_, parameters_to_vector, vector_to_parameters
from transformers import PreTrainedModel

from core.configs.base import SELECTIVE
from core.configs.ppo import PPOConfig
from core.forward.checkpoints import keep_attention
from core.forward.values import value_model
from eval.errors import DamagedFile

STATE = "value_model.pt"


class Critic:
    """Value model with its own optimizer, replicated on every process."""

    def __init__(self, policy: PreTrainedModel, args: PPOConfig):
        self.args = args
        self.model = value_model(policy).to(args.device)  # pyright: ignore[reportArgumentType] - transformers types `to` by its decorator
        self.model.train()
        if SELECTIVE in args.checkpoint_keywords:
            keep_attention(self.model)
        if args.gradient_checkpointing:
            self.model.gradient_checkpointing_enable(args.gradient_checkpointing_kwargs)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=self.rate,
            betas=(args.adam_beta1, args.adam_beta2),
            eps=args.adam_epsilon,
            weight_decay=args.weight_decay,
        )

    @property
    def rate(self) -> float:
        """The learning rate without a schedule."""
        value_rate = self.args.value_learning_rate
        return self.args.learning_rate if value_rate is None else value_rate

    def step(self, accelerator: Accelerator, share: float) -> None:
        """Update with the mean gradient of all processes, at `share` of the learning rate."""
        weights = [p for p in self.model.parameters() if p.grad is not None]
        gradients = [cast(Tensor, p.grad) for p in weights]
        mean = accelerator.reduce(parameters_to_vector(gradients), reduction="mean")
        vector_to_parameters(cast(Tensor, mean), gradients)
        if self.args.max_grad_norm > 0:
            clip_grad_norm_(weights, self.args.max_grad_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * share
        self.optimizer.step()
        self.optimizer.zero_grad()

    def save(self, folder: Path) -> None:
        """Write weights and optimizer state into a checkpoint."""
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state, folder / STATE)

    def load(self, folder: Path) -> None:
        """Restore weights and optimizer state from a checkpoint.

        Raises:
            DamagedFile: the file is missing, truncated or altered.
        """
        path = folder / STATE
        try:
            state: dict[str, dict[str, object]] = torch.load(
                path, weights_only=True, map_location=self.args.device
            )
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
        except Exception as error:  # torch raises many kinds on a damaged file
            raise DamagedFile(
                f"{path}: not the state of a value model ({error}); continue from an earlier "
                "checkpoint"
            ) from error
