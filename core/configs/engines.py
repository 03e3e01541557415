"""Engines that sample completions, places where vLLM runs, and policies that sample."""

from dataclasses import dataclass


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
