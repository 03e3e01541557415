"""Loading of models with a head that scores texts or tokens, by shipped name, folder or hub id."""

import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedModel,
)

from core.models.builds import untrained_seed
from core.models.fit import check_fit
from core.models.folders import ADAPTERS
from core.models.load import (
    adapter_base,
    load_policy,
    merge_adapters,
    reach,
    reading,
)
from eval.errors import BadValue

HEADS = ("score.", "classifier.")  # names of the head's weights begin so, as in peft


class ScoringHead(NamedTuple):
    """A kind of head of transformers.

    Attributes:
        loader: Auto class of models with it.
        labels: Number of labels.
        task: Task type of peft, whose adapters train the head and are saved with it.
        scores: What it scores, for messages.
    """

    loader: Any  # Any: an auto class, which shares no typed base
    labels: int
    task: str
    scores: str


REWARD_HEAD = ScoringHead(AutoModelForSequenceClassification, 1, "SEQ_CLS", "texts")
STEP_HEAD = ScoringHead(AutoModelForTokenClassification, 2, "TOKEN_CLS", "steps")
VALUE_HEAD = ScoringHead(AutoModelForTokenClassification, 1, "TOKEN_CLS", "tokens")


class Loaded(NamedTuple):
    """A model with a head, and the names of the weights of the head if they are new and random."""

    model: PreTrainedModel
    new_weights: Sequence[str] = ()


def load_scorer(name: str, head: ScoringHead, **keywords: object) -> Loaded:
    """Load a model with a head; a language model gets a new one, drawn from torch's generator.

    Adapters are merged into their base model.

    Args:
        name: shipped or packaged name, folder, or hub id; `nano-SEED` has random weights.
        head: the kind of head.
        keywords: of `from_pretrained`.

    Raises:
        BadValue: adapters need a head that their folder does not hold, or see `load_policy`.
        DamagedFile, MissingFile, UnknownName: see `load_policy`.
    """
    if untrained_seed(name) is not None:
        return with_new_head(load_policy(name), head)
    place = reach(name)
    if (Path(place) / ADAPTERS).is_file():
        return Loaded(load_adapted(Path(place), head, **keywords))
    options = {"trust_remote_code": False, **keywords}  # None would ask on the terminal
    with reading(name, place):
        model, info = head.loader.from_pretrained(
            place, num_labels=head.labels, output_loading_info=True, **options
        )
    new = sorted(key for key in info["missing_keys"] if key.startswith(HEADS))
    check_fit(name, model, [*{*info["missing_keys"]}.difference(new)], info["unexpected_keys"])
    return Loaded(model, new)


def load_trained_scorer(name: str, head: ScoringHead, **keywords: object) -> PreTrainedModel:
    """Load a model with its head as `load_scorer` does.

    Raises:
        BadValue: its files lack the head, or see `load_scorer`.
        DamagedFile, MissingFile, UnknownName: see `load_scorer`.
    """
    model, new_weights = load_scorer(name, head, **keywords)
    if new_weights:
        raise BadValue(f"{name}: its files lack {', '.join(new_weights)}: train it first")
    return model


def load_drawn_scorer(
    name: str, head: ScoringHead, seed: int, **keywords: object
) -> PreTrainedModel:
    """Load a model as `load_scorer` does, with a new head drawn from this seed if it has none.

    The state of torch's generator stays the same.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return load_scorer(name, head, **keywords).model


def with_new_head(model: PreTrainedModel, head: ScoringHead) -> Loaded:
    """Return the body of a language model with a new head, drawn from torch's generator."""
    config = deepcopy(model.config)
    config.num_labels = head.labels
    scorer = head.loader.from_config(config)
    scorer.base_model.load_state_dict(model.base_model.state_dict())
    return Loaded(scorer, [name for name in scorer.state_dict() if name.startswith(HEADS)])


def load_adapted(folder: Path, head: ScoringHead, **keywords: object) -> PreTrainedModel:
    """Load adapters and the head beside them into their base model, and merge both.

    Raises:
        BadValue: there is no trained head, or peft is not installed.
    """
    base = load_scorer(adapter_base(folder), head, **keywords)
    saved = json.loads((folder / ADAPTERS).read_text(encoding="utf-8")).get("modules_to_save") or ()
    if base.new_weights and not any(f"{module}." in HEADS for module in saved):
        raise BadValue(
            f"{folder}: its adapters were saved without the head that scores {head.scores}, which "
            f"would be random: train them with task_type={head.task!r}"
        )
    return merge_adapters(base.model, folder)
