"""Folders of models: where they lie, and what their files say without loading the weights."""

import json
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import cast

from safetensors import SafetensorError, safe_open

from core.models.builds import SHIPPED, untrained_seed
from core.models.packaged import PACKAGED, converted_folder, gguf_file
from eval.errors import DamagedFile, MissingFile, UnknownName
from eval.json_lines import JsonObject

ADAPTERS = "adapter_config.json"
CHECKPOINTS = Path(__file__).parent / "checkpoints"
CONFIG = "config.json"
MODEL = (CONFIG, ADAPTERS)  # one of these makes a folder one of a model
RESTORE = "in a checkout `make pocket` brings it back, else install repro-papers again"
WEIGHTS = "*.safetensors"
OTHER_WEIGHTS = "*.bin"  # of older releases of transformers and peft
HEAD = "lm_head.weight"


def locate(name: str, files: Sequence[str] = MODEL) -> str:
    """Return what `from_pretrained` takes: the folder of a shipped model, or the name itself.

    Args:
        name: shipped or packaged name, folder, or hub id `owner/name`.
        files: files of which a folder must hold at least one.

    Raises:
        MissingFile: a shipped model is not built, a packaged one is not installed, or a path is no
            folder with one of the files.
        UnknownName: the name is neither of a shipped or packaged model, nor a path, nor a hub id.
    """
    if untrained_seed(name) is not None:
        return name
    if name in SHIPPED:
        folder = CHECKPOINTS / name
        if not (folder / CONFIG).is_file():
            raise MissingFile(f"{folder} holds no model: {RESTORE}")
        return str(folder)
    if name in PACKAGED:
        return str(converted_folder(name))
    if name and Path(name).is_dir():
        check_folder(name, files)
        return name
    if name.startswith(("/", ".", "~")):
        raise MissingFile(f"no folder {name}: give a folder with {CONFIG}, or a hub id")
    if name.count("/") != 1:
        raise UnknownName("model", name, (*SHIPPED, *PACKAGED))
    return name


def check_folder(name: str, files: Sequence[str]) -> None:
    """Raise if a folder holds none of these files.

    Raises:
        MissingFile: it holds none; a subfolder that does is named.
    """
    if any((Path(name) / file).is_file() for file in files):
        return
    kind = "model" if files == MODEL else "tokenizer"
    inside = next((path.parent for file in files for path in Path(name).glob(f"*/{file}")), None)
    hint = f"; {inside} holds one" if inside else ""
    raise MissingFile(f"{name} holds no {kind}: expected {' or '.join(files)} in it{hint}")


def check_model(name: str) -> None:
    """Check that a model exists, and that the config and weights of a local one can be read.

    Raises:
        MissingFile, UnknownName: see `locate`; MissingFile too if a folder holds no weights.
        DamagedFile: its config is no JSON object, or a file of weights is not whole.
    """
    if name in PACKAGED:
        gguf_file(name)  # the first use converts it
        return
    folder = Path(locate(name))
    if not folder.is_dir():
        return
    read_config(folder)
    if not tensor_shapes(folder) and not any(folder.glob(OTHER_WEIGHTS)):
        raise MissingFile(f"{folder} holds no weights: expected {WEIGHTS} in it; get it again")


def read_config(folder: Path) -> JsonObject:
    """Return the config of a model's folder; empty for a folder of adapters.

    Raises:
        DamagedFile: the config is no JSON object.
    """
    path = folder / CONFIG
    if not path.is_file():
        return {}
    try:
        config: object = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{path}: not JSON ({error}); get it again") from error
    if not isinstance(config, dict):
        raise DamagedFile(f"{path}: a JSON object was expected; get it again")
    return cast(JsonObject, config)


def tensor_shapes(folder: Path) -> dict[str, list[int]]:
    """Return the shape of every tensor in a folder's safetensors files, read from their headers.

    Raises:
        DamagedFile: a file is not whole.
    """
    shapes: dict[str, list[int]] = {}
    for path in sorted(folder.glob(WEIGHTS)):
        try:
            with safe_open(path, framework="numpy") as file:
                shapes |= {name: file.get_slice(name).get_shape() for name in file.offset_keys()}
        except (SafetensorError, OSError) as error:
            raise DamagedFile(f"{path}: unreadable ({error}); get it again") from error
    return shapes


def count_parameters(folder: Path) -> int | None:
    """Return the number of parameters in a folder's safetensors files; None if it has none.

    Tied heads and embeddings count once, even if the files hold both.

    Raises:
        DamagedFile: see `read_config` and `tensor_shapes`.
    """
    shapes = tensor_shapes(folder)
    if read_config(folder).get("tie_word_embeddings", False):
        shapes.pop(HEAD, None)
    return sum(map(prod, shapes.values())) or None
