"""Special tokens and the chat template of the settings, in tokenizer and model."""

from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tokenizers import AddedToken
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from core.configs.base import BaseConfig
from core.data.conversations import Tokenizer
from core.models.load import load_tokenizer
from core.shards.adapters import add_adapters, has_adapters
from core.trainers.setup import given_tokenizer, policy_model, policy_tokenizer
from eval.errors import BadValue, MissingFile

if TYPE_CHECKING:
    from peft import LoraConfig, PeftConfig  # of an extra

TEMPLATES = (".jinja", ".j2")
MULTIPLE = 64  # of the rows of embeddings


def policy_and_tokenizer(
    model: str | PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    peft_config: "PeftConfig | None",
    args: BaseConfig,
    *,
    virtual_tokens: bool = False,
    load: Callable[[str | PreTrainedModel, BaseConfig], PreTrainedModel] = policy_model,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model to train and its tokenizer, with the adapters and tokens of the settings.

    Args:
        model: The model, or its name.
        tokenizer: The tokenizer; None for that of the model.
        peft_config: The adapters, if there are any.
        args: The settings.
        virtual_tokens: Whether the trainer takes adapters that put tokens before a prompt.
        load: Returns the model, or loads the named one.
    """
    base = load(model, args)
    base_tokenizer = given_tokenizer(tokenizer, base, args, by_name=isinstance(model, str))
    added = set_vocabulary(base_tokenizer, base, args)
    config = trains_tokens(peft_config, base, added)
    policy = add_adapters(base, config, args, virtual_tokens=virtual_tokens)
    return policy, policy_tokenizer(base_tokenizer, policy, args)


def set_vocabulary(tokenizer: Tokenizer, model: PreTrainedModel, args: BaseConfig) -> list[int]:
    """Set chat template, end token and padding token; return the ids of tokens that are new.

    Not every trainer has settings of all three.

    Raises:
        BadValue: a token is not in the vocabulary, or embeddings with adapters would be resized.
        MissingFile: the template file does not exist.
    """
    path, end, padding = (
        getattr(args, name, None) for name in ("chat_template_path", "eos_token", "pad_token")
    )
    added = [] if path is None else set_template(path, tokenizer, model)
    for name, token in (("eos_token", end), ("pad_token", padding)):
        if token is not None and token not in tokenizer.get_vocab():
            raise BadValue(f"{name}={token!r}: expected a token of the tokenizer's vocabulary")
    if end is not None:
        tokenizer.eos_token = end
        set_end(tokenizer.eos_token_id, model)
    if padding is not None:
        tokenizer.pad_token = padding
    return added


def set_end(end: int, model: PreTrainedModel) -> None:
    """Add an end token to the model; generation still stops at its earlier ones."""
    model.config.get_text_config().eos_token_id = end
    settings = cast(GenerationConfig | None, getattr(model, "generation_config", None))
    if settings is not None:  # of a model that can generate
        ends_before = cast(int | list[int] | None, settings.eos_token_id)
        ends = [ends_before] if isinstance(ends_before, int) else list(ends_before or [])
        settings.eos_token_id = ends_before if end in ends else [end, *ends]


def set_template(path: str, tokenizer: Tokenizer, model: PreTrainedModel) -> list[int]:
    """Set the chat template from a file, or with its special tokens from another tokenizer.

    Return the ids of new tokens.

    Tokenizer and model are changed in place.

    Raises:
        MissingFile: the file does not exist.
        BadValue: the other tokenizer has no template or end token, or the model has adapters.
        BadValue, DamagedFile, MissingFile, UnknownName: see `load_tokenizer`.
    """
    if path.endswith(TEMPLATES):
        if not Path(path).is_file():
            raise MissingFile(f"chat_template_path={path!r}: no such file")
        tokenizer.chat_template = Path(path).read_text(encoding="utf-8")
        return []
    source: Tokenizer = load_tokenizer(path)
    if not source.chat_template or source.eos_token is None:
        raise BadValue(
            f"chat_template_path={path!r}: its tokenizer has no template or no eos_token"
        )
    if has_adapters(model):
        raise BadValue("chat_template_path resizes embeddings: merge the model's adapters first")
    return copy_template(source, tokenizer, model)


def copy_template(source: Tokenizer, tokenizer: Tokenizer, model: PreTrainedModel) -> list[int]:
    """Copy chat template, special tokens and end token of another tokenizer.

    Embeddings are resized to a row for every token, in a multiple of 64, as in TRL.

    Returns:
        The ids of new tokens, with those that fill the last rows.
    """
    tokens = source.added_tokens_decoder.values()
    new = [token for token in tokens if token.content not in tokenizer.get_vocab()]
    tokenizer.chat_template = source.get_chat_template()
    tokenizer.add_tokens(new)
    tokenizer.eos_token = source.eos_token
    model.config.get_text_config().eos_token_id = tokenizer.eos_token_id
    if getattr(model, "generation_config", None) is not None:
        model.generation_config.eos_token_id = tokenizer.eos_token_id
    rows = model.resize_token_embeddings(len(tokenizer.get_vocab()), MULTIPLE).num_embeddings
    number = 0
    while len(tokenizer.get_vocab()) < rows:
        filler = AddedToken(f"<extra_id_{number}>")
        new += [filler] * tokenizer.add_tokens(filler)
        number += 1
    return tokenizer.convert_tokens_to_ids([token.content for token in new])


def trains_tokens(
    peft_config: "PeftConfig | None", model: PreTrainedModel, added: list[int]
) -> "PeftConfig | None":
    """Return a config of adapters that also train the embeddings of new tokens, and the head.

    Raises:
        BadValue: adapters of this kind cannot train them.
    """
    if peft_config is None or not added:
        return peft_config
    if not hasattr(peft_config, "trainable_token_indices"):
        raise BadValue(
            f"chat_template_path adds tokens, which {type(peft_config).__name__} does not train: "
            "use LoraConfig, or a template without new tokens"
        )
    embeddings, head = model.get_input_embeddings(), model.get_output_embeddings()
    names = {module: name.split(".")[-1] for name, module in model.named_modules()}
    changed, name = cast("LoraConfig", copy(peft_config)), names[embeddings]
    token_indices = changed.trainable_token_indices or {}
    chosen = token_indices if isinstance(token_indices, dict) else {name: token_indices}
    changed.trainable_token_indices = {**chosen, name: [*chosen.get(name, []), *added]}
    if head is not None and not model.config.tie_word_embeddings:
        modules = changed.modules_to_save or []
        changed.modules_to_save = [*modules, *({names[head]} - set(modules))]
    return changed
