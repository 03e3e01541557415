"""A policy that answers: it is loaded when its first sample is needed."""

import gc
from functools import cached_property
from typing import TYPE_CHECKING, Any

from core.stages.loading import Loading
from core.stages.sources import model_folder
from core.stages.stage import Policy

if TYPE_CHECKING:  # torch and transformers, see `core.stages.loading`
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from core.models.scorers import ScoringHead
    from core.samplers.policy import PolicySampler, TokenSampler


class Answering:
    """A policy as a sampler, loaded when its first sample is needed."""

    def __init__(self, policy: Policy, loading: Loading, threads: int | None):
        self.policy = policy
        self.loading = loading
        self.threads = threads

    @cached_property
    def sampler(self) -> "PolicySampler":
        """The policy in the native engine, with the loading of the run."""
        return self.load(self.loading)

    @cached_property
    def answerer(self) -> "TokenSampler[Any]":
        """The policy in the engine that answers benchmarks."""
        from core.stages.training import prepare_torch

        prepare_torch(self.threads)
        return self.loading.answerer(self.place)

    def release(self) -> None:
        """Release the engine that answers benchmarks, with its memory or its server."""
        if self.__dict__.pop("answerer", None) is not None:
            gc.collect()

    @property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """The tokenizer of the policy."""
        return self.loading.tokenizer(self.place)

    def scorer(self, head: "ScoringHead", seed: int | None) -> "PreTrainedModel":
        """Load the model with a head, see `Loading.scorer`."""
        from core.stages.training import prepare_torch

        prepare_torch(self.threads)
        return self.loading.scorer(self.place, head, seed)

    @property
    def denoiser(self) -> "PreTrainedModel":
        """The model that reads in both directions."""
        from core.stages.training import prepare_torch

        prepare_torch(self.threads)
        return self.loading.denoiser(self.place)

    def load(self, loading: Loading) -> "PolicySampler":
        """Load the policy again with other options, and return its sampler."""
        from core.stages.training import prepare_torch

        prepare_torch(self.threads)
        return loading.sampler(self.place)

    @property
    def place(self) -> str:
        """The folder of the policy, or its name on the hub."""
        return str(model_folder(self.policy.model) or self.policy.model)
