"""Checks that weights, config and tokenizer of a model belong together."""

import re
from collections.abc import Sequence
from math import isfinite
from typing import cast

from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from eval.errors import BadValue, DamagedFile


def check_fit(
    name: str, model: nn.Module, missing: Sequence[str], unexpected: Sequence[str]
) -> None:
    """Raise if loaded weights do not fit the architecture that the config describes.

    Raises:
        DamagedFile: weights are missing, which would be initialised at random, or belong to
            layers that the model does not have.
    """
    layers = {
        key: len(part) for key, part in model.named_modules() if isinstance(part, nn.ModuleList)
    }
    further = [
        key
        for key in unexpected
        for match in re.finditer(r"\.(\d+)(?=\.)", key)
        if int(match[1]) >= layers.get(key[: match.start()], float("inf"))
    ]
    for problem, keys in (("hold no", sorted(missing)), ("hold layers that it lacks:", further)):
        if keys:
            raise DamagedFile(
                f"{name}: its config.json does not fit its weights, which {problem} "
                f"{', '.join(keys[:3])}; get both again"
            )


def check_finite(name: str, model: nn.Module) -> None:
    """Raise if weights that a user gives are not finite; those of a training may have diverged.

    Raises:
        DamagedFile: a weight is NaN or infinite.
    """
    for key, weight in model.named_parameters():
        if not is_finite(weight):
            raise DamagedFile(f"{name}: its weights hold NaN or infinity in {key}; get it again")


def is_finite(weight: Tensor) -> bool:
    """Return whether all values of a tensor are finite; True without values or of 8 bits or less.

    The extremes of a tensor are NaN if one of its values is, and need no memory of its size.
    """
    has_values = weight.numel() > 0 and not weight.is_meta
    if not (has_values and weight.is_floating_point() and weight.itemsize > 1):
        return True
    return all(isfinite(extreme.item()) for extreme in weight.detach().aminmax())


def check_vocabulary(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> None:
    """Raise if a tokenizer gives ids for which a model has no embedding.

    Tokens that were added are left out, except for those of unknown texts and of ends: embeddings
    may lack a row for padding.

    Raises:
        BadValue: there is such an id.
    """
    read = tokenizer.unk_token, tokenizer.eos_token
    added = {token.content for token in tokenizer.added_tokens_decoder.values()}.difference(read)
    highest = max(
        (index for token, index in tokenizer.get_vocab().items() if token not in added), default=0
    )
    embeddings = cast(nn.Embedding, model.get_input_embeddings())
    rows = embeddings.weight.shape[0]  # 0 where a shard has none
    if 0 < rows <= highest:
        raise BadValue(
            f"the tokenizer {tokenizer.name_or_path} has a token of id {highest}, and the model "
            f"{model.config.name_or_path} has embeddings of {rows} tokens: give the tokenizer that "
            "belongs to the model"
        )
