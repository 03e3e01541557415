"""Engines that sample completions, places where vLLM runs, and policies that sample."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from eval.errors import BadValue


@dataclass(frozen=True)
class RolloutEngine:
    """A row of `ENGINES`, the engines that `core.rollout.engines` builds.

    `keywords` are those of `generation_kwargs` that the engine takes beside the settings of
    sampling.
    """

    doc: str
    is_vllm: bool = False
    keeps_support: bool = True  # reports the tokens that truncation left
    stops_at_strings: bool = True
    keywords: tuple[str, ...] = ()


PROCESSORS = (
    "min_new_tokens",
    "no_repeat_ngram_size",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
    "sequence_bias",
    "typical_p",
    "epsilon_cutoff",
    "eta_cutoff",
    "exponential_decay_length_penalty",
    "renormalize_logits",
    "remove_invalid_values",
)
VLLM_KEYWORDS = (
    "min_tokens",
    "presence_penalty",
    "frequency_penalty",
    "bad_words",
    "allowed_token_ids",
    "logit_bias",
)
ENGINES = {
    "native": RolloutEngine("a loop of this project"),
    "equal": RolloutEngine("a loop that draws exactly the tokens of transformers"),
    "hf": RolloutEngine("transformers' `generate`", keywords=PROCESSORS),
    "hf-cb": RolloutEngine(
        "transformers' continuous batching", keeps_support=False, stops_at_strings=False
    ),
    "vllm": RolloutEngine(
        "vLLM, see `vllm_mode`",
        is_vllm=True,
        keeps_support=False,
        stops_at_strings=False,
        keywords=VLLM_KEYWORDS,
    ),
}
# Flags of TRL's that choose an engine.
ENGINE_FLAGS = {"use_vllm": "vllm", "use_transformers_continuous_batching": "hf-cb"}


@dataclass(frozen=True)
class VllmMode:
    """A row of `VLLM_MODES`: whether vLLM is a server, or runs in the training's own process."""

    doc: str
    is_server: bool


VLLM_MODES = {
    "colocate": VllmMode("in the processes that train", is_server=False),
    "server": VllmMode("in a server with an address", is_server=True),
}


@dataclass(frozen=True)
class RolloutPolicy:
    """A row of `ROLLOUT_POLICIES`: whether training moves the policy that samples."""

    doc: str
    moves: bool


ROLLOUT_POLICIES = {
    "policy": RolloutPolicy("the one that is trained", moves=True),
    "reference": RolloutPolicy("the frozen reference", moves=False),
}


class EngineSettings(Protocol):
    """A config with the settings of an engine."""

    rollout_engine: str
    use_vllm: bool
    use_transformers_continuous_batching: bool
    vllm_mode: str
    vllm_tensor_parallel_size: int

    @property
    def batching_keywords(self) -> Mapping[str, object]:
        """Settings of continuous batching."""
        ...

    def is_set(self, name: str) -> bool:
        """Return whether a field has another value than its default."""
        ...


def resolve_engine(c: EngineSettings) -> None:
    """Let `rollout_engine` and the flags of `ENGINE_FLAGS` name the same engine.

    Raises:
        BadValue: they name different engines, or another than the settings given for one.
    """
    engines = {f"{flag}=True": name for flag, name in ENGINE_FLAGS.items() if getattr(c, flag)}
    if c.is_set("rollout_engine"):
        engines[f"rollout_engine={c.rollout_engine!r}"] = c.rollout_engine
    if len(set(engines.values())) > 1:
        raise BadValue(f"{' and '.join(engines)}: leave one of them out")
    c.rollout_engine = next(iter(engines.values()), c.rollout_engine)
    for flag, name in ENGINE_FLAGS.items():
        setattr(c, flag, c.rollout_engine == name)
    if c.batching_keywords and not c.use_transformers_continuous_batching:
        raise BadValue(
            "transformers_continuous_batching_config acts with "
            "use_transformers_continuous_batching=True: set this, or leave it out"
        )


def check_vllm(c: EngineSettings) -> None:
    """Refuse what vLLM is not started with here.

    Raises:
        BadValue: vLLM in this process would be tensor parallel.
    """
    is_colocated = not VLLM_MODES[c.vllm_mode].is_server
    if c.use_vllm and is_colocated and c.vllm_tensor_parallel_size > 1:
        raise BadValue(
            f"vllm_tensor_parallel_size={c.vllm_tensor_parallel_size} with "
            f"vllm_mode={c.vllm_mode!r} is not supported: a server takes "
            "--tensor-parallel-size"
        )
