"""Sizes of decoders that determine their memory, of local models and of a few on the hub."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.models.folders import CONFIG, read_config
from eval.errors import DamagedFile
from eval.json_lines import JsonObject

GATED = ("llama", "mistral", "qwen2", "qwen3")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes of a decoder with gated feed-forward blocks, one of `GATED`."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head: int
    vocabulary: int
    tied: bool = False
    qkv_bias: bool = False

    @property
    def parameters(self) -> int:
        """Number of parameters: embeddings, attention, feed-forward, norms and head."""
        q, kv = self.heads * self.head, self.kv_heads * self.head
        attention = 2 * self.hidden * (q + kv) + self.qkv_bias * (q + 2 * kv)
        layer = attention + 3 * self.hidden * self.intermediate + 2 * self.hidden
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return embeddings + self.layers * layer + self.hidden

    @property
    def multiplying_parameters(self) -> int:
        """Number of parameters that multiply every token: all but an untied embedding."""
        return self.parameters - (0 if self.tied else self.vocabulary * self.hidden)


# As their config.json on the hub have it.
KNOWN: Mapping[str, Shape] = {
    "deepseek-ai/deepseek-math-7b-instruct": Shape(
        layers=30,
        hidden=4096,
        intermediate=11008,
        heads=32,
        kv_heads=32,
        head=128,
        vocabulary=102_400,
    ),
    "Qwen/Qwen2.5-0.5B-Instruct": Shape(
        layers=24,
        hidden=896,
        intermediate=4864,
        heads=14,
        kv_heads=2,
        head=64,
        vocabulary=151_936,
        tied=True,
        qkv_bias=True,
    ),
    "Qwen/Qwen2.5-7B-Instruct": Shape(
        layers=28,
        hidden=3584,
        intermediate=18944,
        heads=28,
        kv_heads=4,
        head=128,
        vocabulary=152_064,
        qkv_bias=True,
    ),
}


def find_shape(name: str, folder: Path | None) -> Shape | None:
    """Return the shape of a known model or of the one in `folder`; None for other architectures.

    Raises:
        DamagedFile: the config of the folder is no JSON object, or lacks a size.
    """
    if folder is None:
        return KNOWN.get(name)
    config = read_config(folder)
    if config.get("model_type") not in GATED:
        return None
    try:
        return shape_of(config)
    except (KeyError, TypeError) as error:
        raise DamagedFile(
            f"{folder / CONFIG}: expected every size of a {config['model_type']}, one is missing "
            f"or no number ({error}); get it again"
        ) from error


def shape_of(config: JsonObject) -> Shape:
    """Return the shape that the config of a decoder describes.

    Raises:
        KeyError, TypeError: a size is missing or of another type.
    """
    heads = config["num_attention_heads"]
    return Shape(
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        intermediate=config["intermediate_size"],
        heads=heads,
        kv_heads=config.get("num_key_value_heads", heads),
        head=config.get("head_dim") or config["hidden_size"] // heads,
        vocabulary=config["vocab_size"],
        tied=config.get("tie_word_embeddings", False),
        qkv_bias=config.get("model_type") == "qwen2",
    )
