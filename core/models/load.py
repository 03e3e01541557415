"""Loading of policies and tokenizers by shipped name, folder or hub id."""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from warnings import catch_warnings, filterwarnings

import torch
from huggingface_hub import hf_hub_download
from huggingface_hub.constants import HF_HUB_OFFLINE
from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from core.configs.base import BaseConfig
from core.models.builds import SHIPPED, has_pairs, is_encoder, untrained_seed
from core.models.chat_templates import template_text
from core.models.fit import check_fit
from core.models.folders import ADAPTERS, MODEL, RESTORE, locate
from core.models.nano import nano_model, untrained_tokenizer
from core.models.packaged import PACKAGED
from eval.errors import BadValue, DamagedFile, MissingFile, ReproError
from eval.sets.loading import quiet_hub

TOKENIZER = (*MODEL, "tokenizer_config.json", "tokenizer.json")
OWN_KEYWORDS = ("dtype", "trust_remote_code")  # which settings here give
QUOTED_CHARS = 300  # of a library's error message


def reach(name: str, files: Sequence[str] = MODEL) -> str:
    """Return `locate(name, files)` after checking that a hub id is in the cache or on the hub.

    The check fails early and once, instead of at each file. It is skipped offline.

    Raises:
        MissingFile, UnknownName: see `locate`; MissingFile too if the hub id cannot be
            downloaded.
    """
    place = locate(name, files)
    if not (Path(place).is_dir() or HF_HUB_OFFLINE):
        with reading(name, place):
            try:
                hf_hub_download(place, files[0])
            except LocalEntryNotFoundError:
                raise
            except EntryNotFoundError:
                pass  # a folder of adapters, which has another file
    return place


@contextmanager
def reading(name: str, place: str) -> Generator[None]:
    """Turn errors of reading a model's files into one-line errors.

    Raises:
        BadValue, DamagedFile, MissingFile: see `unreadable`.
    """
    try:
        with quiet_hub():
            yield
    except (ReproError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # each library fails on foreign files in its own way
        raise unreadable(name, place, error) from error


def load_policy(
    name: str, dtype: torch.dtype | str = torch.float32, *, trust_code: bool = False
) -> PreTrainedModel:
    """Load a causal language model for training or evaluation; adapters are merged into it.

    Args:
        name: shipped or packaged name, folder, or hub id; `nano-SEED` has random weights.
        dtype: dtype of the weights, or its name; "auto" takes that of the files.
        trust_code: whether Python code that the model brings may be run.

    Raises:
        BadValue: the model has adapters and peft is not installed, is no causal language model,
            or brings code that is not trusted.
        DamagedFile: its weights or config cannot be read, or do not fit each other.
        MissingFile: it is not in the cache and the hub cannot be reached.
        UnknownName: it is no shipped or packaged name, folder or hub id.
    """
    if (seed := untrained_seed(name)) is not None:
        if is_encoder(name):
            raise BadValue(f"{name}: an encoder is no causal language model, which is expected")
        return nano_model(seed, pairs=has_pairs(name))
    place = reach(name)
    if (Path(place) / ADAPTERS).is_file():
        return load_adapters(Path(place), dtype)
    return load_causal(name, place, dtype=dtype, trust_remote_code=trust_code)


def load_causal(name: str, place: str, **keywords: object) -> PreTrainedModel:
    """Load the model at a place with keyword arguments of `from_pretrained`; see `load_policy`."""
    options = {"trust_remote_code": False, **keywords}  # None would ask on the terminal
    try:
        with reading(name, place):
            loaded: Any = AutoModelForCausalLM.from_pretrained(  # Any: a pair, with this keyword
                place, output_loading_info=True, **options
            )
    except DamagedFile as error:
        chosen = {key: value for key, value in keywords.items() if key not in OWN_KEYWORDS}
        if isinstance(dtype := keywords.get("dtype"), str):
            chosen["dtype"] = dtype
        if not chosen:
            raise
        raise BadValue(
            f"the keywords {chosen!r:.{QUOTED_CHARS}} may not fit: {error.args[0]} if they do"
        ) from error
    model, loading_info = loaded
    check_fit(name, model, loading_info["missing_keys"], loading_info["unexpected_keys"])
    return model


def load_adapters(folder: Path, dtype: torch.dtype | str) -> PreTrainedModel:
    """Load the base model of a peft folder and merge the adapters into its weights.

    Raises:
        BadValue: peft is not installed.
    """
    return merge_adapters(load_policy(adapter_base(folder), dtype), folder)


def adapter_base(folder: Path) -> str:
    """Return the name of the model that the adapters of a peft folder are for.

    Raises:
        BadValue: peft is not installed.
    """
    if find_spec("peft") is None:
        raise BadValue(
            f"{folder} holds adapters, and peft is not installed: pip install 'repro-papers[peft]'"
        )
    with reading(str(folder), str(folder)):
        config = json.loads((folder / ADAPTERS).read_text(encoding="utf-8"))
        return str(config["base_model_name_or_path"])


def merge_adapters(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Return a model with the adapters of a peft folder merged into its weights."""
    from peft import PeftModel

    with reading(str(folder), str(folder)), catch_warnings():
        # transformers has renamed an attribute that peft looks at
        filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        wrapped: Any = PeftModel.from_pretrained(model, str(folder))
    return wrapped.merge_and_unload()


def load_tokenizer(
    name: str, chat_template: str | None = None, *, trust_code: bool = False
) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a model, with padding on the left.

    Args:
        name: shipped or packaged name, folder, or hub id.
        chat_template: "plain" or a file that replaces the tokenizer's own template.
        trust_code: whether Python code that the tokenizer brings may be run.

    Raises:
        BadValue: it brings code that is not trusted.
        DamagedFile: its files cannot be read.
        MissingFile: it is not in the cache and the hub cannot be reached, or the template does
            not exist.
        UnknownName: it is no shipped or packaged name, folder or hub id.
    """
    if untrained_seed(name) is not None:
        tokenizer: Any = untrained_tokenizer(name)
    else:
        place = reach(name, TOKENIZER)
        with reading(name, place):
            tokenizer = AutoTokenizer.from_pretrained(
                place, padding_side="left", trust_remote_code=trust_code
            )
            tokenizer("?")  # so that wrong types in its files are noticed here
    if chat_template is not None:
        tokenizer.chat_template = template_text(chat_template)
    return tokenizer


def unreadable(name: str, place: str, error: Exception) -> ReproError:
    """Return the error for a model that cannot be read, with advice."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:QUOTED_CHARS]
    if "ignore_mismatched_sizes" in reason:
        reason = "its config.json does not fit the shapes of its weights"
    if "trust_remote_code" in str(error):
        return BadValue(
            f"{name} contains custom code, which is run only where trust_remote_code=true "
            "is set: read it first"
        )
    if (kind := other_kind(place)) is not None:
        return BadValue(
            f"{name}: a {kind} is no causal language model, which is expected; one that reads text "
            "beside images can be loaded by its own class and passed as an object"
        )
    if not Path(place).is_dir():
        return MissingFile(f"{name}: cannot be had from the hub ({reason}); give a folder instead")
    cure = RESTORE if name in SHIPPED else "delete it" if name in PACKAGED else "get it again"
    return DamagedFile(f"{place}: unreadable ({reason}); {cure}")


def other_kind(place: str) -> str | None:
    """Return the class name of a model that is no causal language model; else None.

    It is None, too, if the config cannot be read or brings code of its own.
    """
    try:
        with quiet_hub():
            # Local files only, as loading has tried the hub; Any: its fields depend on its class.
            config: Any = AutoConfig.from_pretrained(
                place, local_files_only=True, trust_remote_code=False
            )
    except Exception:  # as in `reading`
        return None
    if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING or hasattr(config, "auto_map"):
        return None
    return (config.architectures or [type(config).__name__])[0]


def load_keywords(args: BaseConfig) -> dict[str, object]:
    """Return the keywords of `from_pretrained` for models given by name."""
    keywords = args.model_init_kwargs  # parsed from its string, if it was one
    return dict(keywords) if isinstance(keywords, Mapping) else {}


def own_tokenizer(
    name: str, args: BaseConfig, *, by_name: bool, **options: object
) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a model; of the settings' revision if the model was given by name."""
    revision = load_keywords(args).get("revision") if by_name else None
    code = args.trust_remote_code
    with reading(name, name):
        return AutoTokenizer.from_pretrained(
            name, revision=revision, trust_remote_code=code, **options
        )
