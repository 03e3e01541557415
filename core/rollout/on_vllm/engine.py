"""vLLM as a rollout engine: its weights follow the policy's, and it has to show that they do."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch
from accelerate import PartialState
from torch import Tensor, nn
from transformers import PreTrainedModel

from core.errors import EngineError
from core.rollout.engine import Sampled, Sampling, Tokens
from core.rollout.merged_adapters import linear_weight
from eval.errors import BadValue

CHECKED = 32  # tokens whose log-probabilities are compared before a rollout
EXACT, COARSE = 1e-3, 0.05  # mean difference allowed with 32 bits on both sides, and with fewer
BASE_WEIGHT = ".base_layer.weight"  # of a layer with adapters

Weights = Iterator[tuple[str, Tensor]]
Request = Mapping[str, Any]  # the fields of vLLM's `SamplingParams`, which its server takes too


class Backend(Protocol):
    """Where vLLM runs. A `shared` one gets its weights from the main process alone."""

    shared: bool
    dtype: str

    def complete(
        self, prompts: Sequence[Tokens], requests: Sequence[Request]
    ) -> Iterator[tuple[int, Sampled]]:
        """The number of a prompt and its completion, as they are finished."""
        ...

    def load(self, weights: Weights) -> None:
        """Take over the weights."""
        ...

    def rest(self) -> bool:
        """Free memory until the next rollout, if asked to; whether the weights are lost by it."""
        ...


class VllmEngine:
    """Samples with vLLM from the weights of the last `serving`, sent before the first rollout.

    Before every rollout vLLM has to show that it has them, for it may have been started again.

    Raises:
        EngineError: vLLM fails, or other weights than those sent show in its log-probabilities.
    """

    def __init__(self, backend: Backend):
        self.backend = backend
        self.wanted: tuple[PreTrainedModel, int] | None = None
        self.served: tuple[PreTrainedModel, int] | None = None

    def serving(self, model: PreTrainedModel, version: int) -> "VllmEngine":
        """Serve the weights of a model from now on; they change only when `version` does."""
        self.wanted = (model, version)
        return self

    def sample(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, Sampled]]:
        """See `Engine.sample`.

        Raises:
            BadValue: a stop function is asked for, which cannot be sent.
        """
        if sampling.stop is not None:
            raise BadValue("the engine 'vllm' has no stop strings: use 'native' or 'hf'")
        if self.wanted is not None:
            self.synchronise(self.wanted)
            self.check(self.wanted[0], prompts[0], min(CHECKED, sampling.max_tokens))
        yield from self.completed(prompts, sampling, seeds)
        if self.backend.rest():
            self.served = None

    def completed(
        self, prompts: Sequence[Tokens], sampling: Sampling, seeds: Sequence[int]
    ) -> Iterator[tuple[int, Sampled]]:
        """Yield the engine's completions.

        Raises:
            EngineError: a completion is too long, or has a token that the model does not have.
        """
        asked = [request(sampling, seed) for seed in seeds]
        config: Any = self.wanted[0].config.get_text_config() if self.wanted else None
        for number, found in self.backend.complete(prompts, asked):
            if len(found.tokens) > sampling.max_tokens:
                raise EngineError(
                    f"vLLM gave {len(found.tokens)} tokens: expected at most {sampling.max_tokens}"
                )
            if config is not None and max(found.tokens) >= config.vocab_size:
                raise EngineError(
                    f"vLLM gave the token {max(found.tokens)}: the model that is trained has "
                    f"{config.vocab_size}; start it with that model"
                )
            yield number, found

    def synchronise(self, wanted: tuple[PreTrainedModel, int]) -> None:
        """Send the weights, unless they were sent before and have not changed."""
        if self.served == wanted:
            return
        self.served, processes = None, PartialState()
        if processes.is_main_process or not self.backend.shared:
            self.backend.load(checkpoint_weights(wanted[0]))
        processes.wait_for_everyone()
        self.served = wanted

    @torch.no_grad()
    def check(self, model: PreTrainedModel, prompt: Tokens, tokens: int) -> None:
        """Compare the engine's log-probabilities of a completion of its own with the model's."""
        ((_, found),) = self.completed([prompt], Sampling(max_tokens=tokens, ends=frozenset()), [0])
        ids = torch.tensor([[*prompt, *found.tokens]], device=model.device)
        with torch.autocast(model.device.type, enabled=False):  # an evaluation may sample inside
            logits = model(ids).logits[0, len(prompt) - 1 : -1]
        logps = logits.float().log_softmax(-1).gather(-1, ids[0, len(prompt) :, None])
        reported = torch.tensor(found.logps, device=model.device)
        difference = (logps.squeeze(-1) - reported).abs().mean().item()
        exact = model.dtype in (torch.float32, torch.float64) and "float32" in self.backend.dtype
        allowed = EXACT if exact else COARSE
        if not difference <= allowed:
            raise EngineError(
                "vLLM serves other weights than those it was sent: log-probabilities of "
                f"{len(found.tokens)} tokens differ by {difference:.2g} on average, expected at "
                f"most {allowed:g}; start it with the model that is trained and continue"
            )


def request(sampling: Sampling, seed: int) -> Request:
    """The same settings in vLLM's names; only `ends` and the length end a completion."""
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
    """Names and values of the parameters as a checkpoint has them; tied ones once.

    LoRA adapters that are on are added to the weights they adapt, which stay as they are.
    """
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            continue
        value = parameter.detach()
        if name.endswith(BASE_WEIGHT):
            value = linear_weight(model.get_submodule(name.removesuffix(BASE_WEIGHT))).detach()
        yield name.removeprefix("base_model.model.").replace(".base_layer.", "."), value


def completion(tokens: Any, logps: Any, finish: object) -> Sampled:
    """What vLLM gave for one prompt; a log-probability that it left out is NaN.

    Raises:
        EngineError: tokens or their log-probabilities are missing, or it was broken off.
    """
    if not is_list(tokens, is_token) or not is_list(logps, is_logp) or len(tokens) != len(logps):
        raise EngineError(
            f"the engine gave the token ids {tokens!r:.80} with the log-probabilities "
            f"{logps!r:.80}: expected one for each; is it vLLM?"
        )
    if finish not in ("stop", "length"):
        raise EngineError(f"the engine broke a completion off ({finish!s:.80}): see its own log")
    known = [float("nan") if logp is None else float(logp) for logp in logps]
    return Sampled(
        tokens=list(tokens), logps=known, finish="stop" if finish == "stop" else "length"
    )


def is_list(values: object, is_member: Callable[[Any], bool]) -> bool:
    """Return whether a value is a list of at least one member, all of one kind."""
    return isinstance(values, list) and bool(values) and all(map(is_member, values))


def is_token(value: object) -> bool:
    """Return whether a value is a token id."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_logp(value: object) -> bool:
    """Return whether a value is a log-probability, or None for one that is left out."""
    if value is None or isinstance(value, bool):
        return value is None
    return isinstance(value, int | float) and abs(value) != math.inf
