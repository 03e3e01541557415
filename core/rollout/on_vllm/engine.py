"""Rollout engine that runs vLLM and checks that vLLM has the policy's current weights."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeGuard, TypeVar

import torch
from accelerate import PartialState
from torch import Tensor, nn
from transformers import PreTrainedModel

from core.errors import EngineError
from core.rollout.engine import SampledCompletion, Sampling, Tokens
from core.rollout.merged_adapters import linear_weight
from eval.errors import BadValue

CHECKED = 32  # tokens whose log-probabilities are compared before a rollout
EXACT, COARSE = 1e-3, 0.05  # mean difference allowed with 32 bits on both sides, and with fewer
BASE_WEIGHT = ".base_layer.weight"  # of a layer with adapters

Member = TypeVar("Member")
Weights = Iterator[tuple[str, Tensor]]
Request = Mapping[str, object]  # the fields of vLLM's `SamplingParams`, which its server takes too


class Backend(Protocol):
    """A vLLM on a server or in this process.

    If it is `shared`, the main process alone sends it weights.
    """

    shared: bool
    dtype: str

    def complete(
        self, prompts: Sequence[Tokens], requests: Sequence[Request]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """Sample one completion per prompt; yield (prompt index, completion) as they finish."""
        ...

    def load(self, weights: Weights) -> None:
        """Load these weights."""
        ...

    def release_memory(self) -> bool:
        """Free memory until the next rollout if configured; return whether weights are lost."""
        ...


class VllmEngine:
    """Engine that samples with vLLM from the weights given to `serving`.

    Weights are sent before the first rollout of a version. Before every rollout the
    log-probabilities of a short completion are checked, since vLLM may have been restarted.

    Raises:
        EngineError: vLLM fails, or its log-probabilities are not those of the weights it was
            sent.
    """

    def __init__(self, backend: Backend):
        self.backend = backend
        self.target: tuple[PreTrainedModel, int] | None = None  # model and version to sample from
        self.served: tuple[PreTrainedModel, int] | None = None  # those that vLLM has

    def serving(self, model: PreTrainedModel, version: int) -> "VllmEngine":
        """Set the model to sample from and return self.

        Weights are sent again only if `version` changes.
        """
        self.target = (model, version)
        return self

    def sample(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """See `Engine.sample`.

        Raises:
            BadValue: the settings have a stop function, which cannot be sent to vLLM.
            EngineError: vLLM fails, or its completions are malformed or not those of the model.
        """
        if sampling.stop is not None:
            raise BadValue("the engine 'vllm' has no stop strings: use 'native' or 'hf'")
        if self.target is not None:
            self.synchronise(self.target)
            self.check(self.target[0], prompts[0], min(CHECKED, sampling.max_tokens))
        yield from self.checked_completions(prompts, sampling, seeds)
        if self.backend.release_memory():
            self.served = None

    def checked_completions(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, SampledCompletion]]:
        """Yield the backend's completions after checking them.

        Raises:
            EngineError: a completion is too long, or has a token outside of the model's
                vocabulary.
        """
        requests = [vllm_request(sampling, seed) for seed in seeds]
        config: Any = self.target[0].config.get_text_config() if self.target else None
        for number, sampled in self.backend.complete(prompts, requests):
            if len(sampled.tokens) > sampling.max_tokens:
                raise EngineError(
                    f"vLLM gave {len(sampled.tokens)} tokens: expected at most "
                    f"{sampling.max_tokens}"
                )
            if config is not None and max(sampled.tokens) >= config.vocab_size:
                raise EngineError(
                    f"vLLM gave the token {max(sampled.tokens)}: the model that is trained has "
                    f"{config.vocab_size}; start it with that model"
                )
            yield number, sampled

    def synchronise(self, target: tuple[PreTrainedModel, int]) -> None:
        """Send the weights unless this version has been sent already."""
        if self.served == target:
            return
        self.served, processes = None, PartialState()
        if processes.is_main_process or not self.backend.shared:
            self.backend.load(checkpoint_weights(target[0]))
        processes.wait_for_everyone()
        self.served = target

    @torch.no_grad()
    def check(self, model: PreTrainedModel, prompt: Tokens, tokens: int) -> None:
        """Compare vLLM's log-probabilities of one of its completions with the model's.

        Raises:
            EngineError: they differ by more than rounding on average.
        """
        ((_, sample),) = self.checked_completions(
            [prompt], Sampling(max_tokens=tokens, ends=frozenset()), [0]
        )
        ids = torch.tensor([[*prompt, *sample.tokens]], device=model.device)
        with torch.autocast(model.device.type, enabled=False):  # an evaluation may sample inside
            logits = model(ids).logits[0, len(prompt) - 1 : -1]
        logps = logits.float().log_softmax(-1).gather(-1, ids[0, len(prompt) :, None])
        reported = torch.tensor(sample.logps, device=model.device)
        difference = (logps.squeeze(-1) - reported).abs().mean().item()
        exact = model.dtype in (torch.float32, torch.float64) and "float32" in self.backend.dtype
        allowed = EXACT if exact else COARSE
        if not difference <= allowed:
            raise EngineError(
                "vLLM serves other weights than those it was sent: log-probabilities of "
                f"{len(sample.tokens)} tokens differ by {difference:.2g} on average, expected at "
                f"most {allowed:g}; start it with the model that is trained and continue"
            )


def vllm_request(sampling: Sampling, seed: int) -> Request:
    """Return these settings and a seed as fields of vLLM's `SamplingParams`.

    Only `ends` and the length end a completion; stop strings are not included.
    """
    return {
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p or 0.0,
        "repetition_penalty": sampling.repetition_penalty,
        "seed": seed,
        "logprobs": 0,  # those of the drawn tokens alone
        "ignore_eos": True,
        "stop_token_ids": sorted(sampling.ends),
        **dict(sampling.keywords),
    }


def checkpoint_weights(model: nn.Module) -> Weights:
    """Yield names and values of the parameters as in a checkpoint, tied parameters once.

    Active LoRA adapters are added to copies of the weights they adapt.
    """
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            continue
        value = parameter.detach()
        if name.endswith(BASE_WEIGHT):
            value = linear_weight(model.get_submodule(name.removesuffix(BASE_WEIGHT))).detach()
        yield name.removeprefix("base_model.model.").replace(".base_layer.", "."), value


def parse_completion(tokens: object, logps: object, finish: object) -> SampledCompletion:
    """Build a completion from the fields of vLLM's output; missing log-probabilities are NaN.

    Raises:
        EngineError: tokens or log-probabilities are malformed, or vLLM aborted the completion.
    """
    if not is_list(tokens, is_token) or not is_list(logps, is_logp) or len(tokens) != len(logps):
        raise EngineError(
            f"the engine gave the token ids {tokens!r:.80} with the log-probabilities "
            f"{logps!r:.80}: expected one for each; is it vLLM?"
        )
    if finish not in ("stop", "length"):
        raise EngineError(f"the engine broke a completion off ({finish!s:.80}): see its own log")
    known_logps = [float("nan") if logp is None else float(logp) for logp in logps]
    return SampledCompletion(
        tokens=list(tokens), logps=known_logps, finish="stop" if finish == "stop" else "length"
    )


def is_list(
    values: object, is_member: Callable[[object], TypeGuard[Member]]
) -> TypeGuard[list[Member]]:
    """Return whether a value is a non-empty list whose members all satisfy `is_member`."""
    return isinstance(values, list) and bool(values) and all(map(is_member, values))


def is_token(value: object) -> TypeGuard[int]:
    """Return whether a value is a token id."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_logp(value: object) -> TypeGuard[float | None]:
    """Return whether a value is a log-probability, or None for one that was left out."""
    if value is None or isinstance(value, bool):
        return value is None
    return isinstance(value, int | float) and abs(value) != math.inf
