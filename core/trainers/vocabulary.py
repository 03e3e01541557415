"""Special tokens and the chat template that a run sets, in the tokenizer and in the model."""

from copy import copy
from pathlib import Path
from typing import Any

from tokenizers import AddedToken
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from core.configs.sft import SFTConfig
from core.data.conversations import Tokenizer
from core.models.load import load_tokenizer
from core.shards.adapters import add_adapters, has_adapters
from core.trainers.setup import given_tokenizer, policy_model, policy_tokenizer
from eval.errors import BadValue, MissingFile

TEMPLATES = (".jinja", ".j2")
MULTIPLE = 64  # of the rows of embeddings


def policy_and_tokenizer(
    model: str | PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    peft_config: Any,
    args: SFTConfig,
) -> tuple[Any, PreTrainedTokenizerBase]:  # Any: peft is optional
    """The model that is trained, with its adapters, and its tokenizer, with what a run sets."""
    base = policy_model(model, args)
    own = given_tokenizer(tokenizer, base, args, named=isinstance(model, str))
    added = set_vocabulary(own, base, args)
    config = trains_tokens(peft_config, base, added)
    policy = add_adapters(base, config, args, virtual_tokens=True)
    return policy, policy_tokenizer(own, policy, args)


def set_vocabulary(tokenizer: Tokenizer, model: PreTrainedModel, args: SFTConfig) -> list[int]:
    """Chat template, end token and padding token as the settings say; ids of tokens that are new.

    Raises:
        BadValue: a token is not in the vocabulary, or adapters are on embeddings that would grow.
        MissingFile: there is no such template.
    """
    path = args.chat_template_path
    added = [] if path is None else set_template(path, tokenizer, model)
    for name in ("eos_token", "pad_token"):
        token = getattr(args, name)
        if token is not None and token not in tokenizer.get_vocab():
            raise BadValue(f"{name}={token!r}: expected a token of the tokenizer's vocabulary")
    if args.eos_token is not None:
        tokenizer.eos_token = args.eos_token
        set_end(tokenizer.eos_token_id, model)
    if args.pad_token is not None:
        tokenizer.pad_token = args.pad_token
    return added


def set_end(end: int, model: PreTrainedModel) -> None:
    """Let the model end with a token too; generation stops at those that it knew as well."""
    model.config.get_text_config().eos_token_id = end
    settings: Any = model.generation_config  # Any: None for models that cannot generate
    if settings is not None:
        known: Any = settings.eos_token_id
        ends = [known] if isinstance(known, int) else list(known or [])
        settings.eos_token_id = known if end in ends else [end, *ends]


def set_template(path: str, tokenizer: Tokenizer, model: PreTrainedModel) -> list[int]:
    """Take a chat template from a file, or with its special tokens from another tokenizer.

    Embeddings then have a row for every token, in a multiple of 64, as in TRL.
    """
    if path.endswith(TEMPLATES):
        if not Path(path).is_file():
            raise MissingFile(f"chat_template_path={path!r}: no such file")
        tokenizer.chat_template = Path(path).read_text(encoding="utf-8")
        return []
    source: Any = load_tokenizer(path)
    if not source.chat_template or source.eos_token is None:
        raise BadValue(
            f"chat_template_path={path!r}: its tokenizer has no template or no eos_token"
        )
    tokens = source.added_tokens_decoder.values()
    new = [token for token in tokens if token.content not in tokenizer.get_vocab()]
    if has_adapters(model):
        raise BadValue("chat_template_path resizes embeddings: merge the model's adapters first")
    tokenizer.chat_template = source.get_chat_template()
    tokenizer.add_tokens(new)
    tokenizer.eos_token = source.eos_token
    model.config.get_text_config().eos_token_id = tokenizer.eos_token_id
    if model.generation_config is not None:
        model.generation_config.eos_token_id = tokenizer.eos_token_id
    rows = model.resize_token_embeddings(len(tokenizer.get_vocab()), MULTIPLE).num_embeddings
    number = 0
    while len(tokenizer.get_vocab()) < rows:
        filler = AddedToken(f"<extra_id_{number}>")
        new += [filler] * tokenizer.add_tokens(filler)
        number += 1
    return tokenizer.convert_tokens_to_ids([token.content for token in new])


def trains_tokens(
    peft_config: Any, model: PreTrainedModel, added: list[int]
) -> Any:  # Any: of peft
    """The config of adapters that also train the embeddings of new tokens, and the head.

    Raises:
        BadValue: adapters of this kind cannot.
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
    changed, name = copy(peft_config), names[embeddings]
    listed = peft_config.trainable_token_indices or {}
    chosen = listed if isinstance(listed, dict) else {name: listed}
    changed.trainable_token_indices = {**chosen, name: [*chosen.get(name, []), *added]}
    if not model.config.tie_word_embeddings:
        modules = peft_config.modules_to_save or []
        changed.modules_to_save = [*modules, *({names[head]} - set(modules))]
    return changed
