"""The frozen reference policy, and the callback that moves it towards the trained one."""

from copy import deepcopy

import torch
from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from core.shards.adapters import has_adapters
from core.shards.sharding import gather_weights, shard_like


def frozen_copy(model: nn.Module) -> nn.Module:
    """Copy the starting policy without gradients; frozen weights below adapters stay shared."""
    frozen = [weight for weight in model.parameters() if not weight.requires_grad]
    shared = {id(weight): weight for weight in frozen} if has_adapters(model) else {}
    return deepcopy(model, shared).eval().requires_grad_(False)


@torch.no_grad()
def mix_into(reference: nn.Module, policy: nn.Module, alpha: float) -> None:
    """Set ref = (1 - alpha) ref + alpha pi in place; alpha = 1 resets it to the policy."""
    for weight, new in zip(reference.parameters(), policy.parameters(), strict=True):
        weight.mul_(1.0 - alpha).add_(shard_like(new.detach(), weight), alpha=alpha)


class SyncReferenceCallback(TrainerCallback):
    """Callback that moves the reference after every `ref_model_sync_steps` optimizer steps.

    With `ref_model_mixup_alpha=1` each move starts an iteration of iterative GRPO, arXiv 2402.03300
    algorithm 1 line 3.
    """

    def __init__(self, reference: nn.Module, frame: nn.Module | None):
        self.reference = reference
        self.frame = frame

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        *,
        model: nn.Module,
        **_: object,  # the caller's: tokenizer, optimizer
    ) -> None:
        """Move the reference if this step is a multiple of `ref_model_sync_steps`."""
        if state.global_step % args.ref_model_sync_steps == 0:  # type: ignore[attr-defined] - GRPOConfig's
            with gather_weights(model, self.frame) as policy:
                mix_into(self.reference, policy, args.ref_model_mixup_alpha)  # type: ignore[attr-defined]
