"""The frozen reference policy, and the callback that moves it towards the trained one."""

from copy import deepcopy
from typing import Any

import torch
from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from core.rollout.merged_adapters import merged_weight
from core.shards.adapters import has_adapters
from core.shards.sharding import gather_weights, shard_like


def frozen_copy(model: nn.Module) -> nn.Module:
    """Copy the starting policy without gradients; frozen weights below adapters stay shared."""
    frozen = [weight for weight in model.parameters() if not weight.requires_grad]
    shared = {id(weight): weight for weight in frozen} if has_adapters(model) else {}
    return deepcopy(model, shared).eval().requires_grad_(False)


def merged_copy(model: nn.Module) -> nn.Module:
    """Copy the starting policy without gradients, its adapters added to the weights below them."""
    copied: Any = deepcopy(model)  # Any: a model of peft
    return copied.merge_and_unload().eval().requires_grad_(False)


@torch.no_grad()
def mix_into(reference: nn.Module, policy: nn.Module, alpha: float) -> None:
    """Set ref = (1 - alpha) ref + alpha pi in place; alpha = 1 resets it to the policy.

    A reference without adapters gets the weights that those of the policy add up to.
    """
    merges = has_adapters(policy) and not has_adapters(reference)
    names = (name for name, _ in reference.named_parameters())
    weights = (merged_weight(policy, n) for n in names) if merges else policy.parameters()
    for weight, new in zip(reference.parameters(), weights, strict=True):
        weight.mul_(1.0 - alpha).add_(shard_like(new.detach(), weight), alpha=alpha)


class SyncReferenceCallback(TrainerCallback):
    """Callback that moves the reference towards the policy by a share, after every `steps` steps.

    With a share of 1 each move starts an iteration of iterative GRPO, arXiv 2402.03300 algorithm 1
    line 3.
    """

    def __init__(self, reference: nn.Module, frame: nn.Module | None, share: float, steps: int):
        self.reference = reference
        self.frame = frame
        self.share = share
        self.steps = steps

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        *,
        model: nn.Module,
        **_: object,  # the caller's: tokenizer, optimizer
    ) -> None:
        """Move the reference if this step is a multiple of `steps`."""
        if state.global_step % self.steps == 0:
            with gather_weights(model, self.frame) as policy:
                mix_into(self.reference, policy, self.share)
