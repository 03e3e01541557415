"""Rollout engines by name."""

from collections.abc import Callable, Mapping

from transformers import PreTrainedModel

from core.rollout.adapters import inner
from core.rollout.engine import Engine
from core.rollout.native import NativeEngine
from core.rollout.reference import EqualEngine, HfEngine, PagedEngine

ENGINES: Mapping[str, Callable[[PreTrainedModel, int], Engine]] = {
    "native": lambda model, _: NativeEngine(model),
    "equal": EqualEngine,
    "hf": HfEngine,
    "hf-cb": PagedEngine,
}


def make_engine(name: str, model: PreTrainedModel, pad_token_id: int) -> Engine:
    """The engine of this name for a model in evaluation mode."""
    return ENGINES[name](inner(model), pad_token_id)
