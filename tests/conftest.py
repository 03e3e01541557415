"""Tiny real models and tokenizers, built in milliseconds, and a machine without a hub."""

import gc
import os
import sys
from functools import cache
from pathlib import Path
from string import ascii_lowercase, digits
from zlib import crc32

os.environ["HF_HUB_OFFLINE"] = "1"  # before the libraries that read it
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch
from accelerate.utils import imports
from hypothesis import settings
from tokenizers import Regex, Tokenizer
from tokenizers.decoders import Fuse
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from eval.registered import group_entry_points
from eval.samples import parquet

LONGEST = (  # half a minute of processor time or more, the long tests included
    "test_all_papers.py",
    "test_printed_commands.py",
    "test_two_processes.py",
    "test_killed.py",
    "test_real_checkpoint.py",
    "test_wheel.py",
    "test_transformers_range.py",
    "test_demo_elsewhere.py",
    "test_launch.py",
    "test_sandbox_hostile.py",
    "test_kernels.py",
    "test_started_server.py",
    "test_plugin.py",
    "test_device_apart.py",
    "test_damages.py",
)


def pytest_addoption(parser):
    parser.addoption("--long-share", metavar="K/N", help="run the K-th of N shares of long tests")


def pytest_collection_modifyitems(config, items):
    """Keep the asked share of the long tests, and put the longest files first, so that no worker
    is alone with one of them in the end."""
    if share := config.getoption("--long-share"):
        number, shares = (int(part) for part in share.split("/"))
        is_asked = [not is_long(item) or place_of(item, shares) == number for item in items]
        left = [item for item, asked in zip(items, is_asked, strict=True) if not asked]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item, asked in zip(items, is_asked, strict=True) if asked]
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


def is_long(item):
    return item.get_closest_marker("long") is not None


def place_of(item, shares):
    """The share that a test belongs to, from its name alone: it is the same on every machine."""
    return crc32(item.nodeid.encode()) % shares + 1


ROOT = Path(__file__).parents[1]
PUBLISHED = ("results", "reports", "papers")


@pytest.fixture(scope="session", autouse=True)
def checkout(tmp_path_factory):
    """A folder with what this checkout publishes and an empty runs/: what was run here is not
    read. Commands work in it where a test gives them no folder of their own."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in PUBLISHED:
        (folder / name).symlink_to(ROOT / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_ROOT", str(folder))
        patch.setattr(parquet, "LEVEL", 1)  # a file of samples takes 0.5 s to compress at 11
        yield folder


@pytest.fixture(autouse=True)
def environment():
    """Restore the environment variables after each test. Some libraries set one when they are
    imported, and `can_fork` then refuses to fork later commands."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True)
def arithmetic():
    """A test leaves torch's arithmetic as it was: the tests after it compare bits."""
    before = torch_arithmetic()
    yield
    assert torch_arithmetic() == before


def torch_arithmetic():
    return {
        "dtype": torch.get_default_dtype(),
        "precision of products": torch.get_float32_matmul_precision(),
        "precision": torch.backends.fp32_precision,
        "precision of CPU products": torch.backends.mkldnn.matmul.fp32_precision,
        "threads": torch.get_num_threads(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "type of autocast": torch.get_autocast_dtype("cpu"),
        "gradients": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


@pytest.fixture(scope="module", autouse=True)
def kept():
    """Leave what is there before a file out of garbage collections: each training ends with a full
    one, and the data that other files have read is a million objects."""
    gc.collect()
    gc.freeze()


settings.register_profile("repro", deadline=None)  # a busy machine is slow, not wrong
settings.load_profile("repro")
# What accelerate asks of each model and optimizer: it reads the metadata of DeepSpeed each time.
imports._is_package_available = cache(imports._is_package_available)
gc.set_threshold(20_000)  # trainings make many objects that stay until they end

SPECIAL = ["<pad>", "<eos>", "<unk>", "<user>", "<assistant>"]
SYMBOLS = [*digits, *ascii_lowercase, *" \n+-*/=.,:;?!()[]{}\\<>$"]
CHAT = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}"
    "{% if m['role'] == 'assistant' %}<eos>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="session")
def tiny_tokenizer():
    """One token per character, 64 in all, with padding, an end token and a chat template."""
    vocabulary = [*SPECIAL, *SYMBOLS]
    tokenizer = Tokenizer(WordLevel({t: i for i, t in enumerate(vocabulary)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        additional_special_tokens=["<user>", "<assistant>"],
        chat_template=CHAT,
        padding_side="left",
    )


@pytest.fixture(scope="session")
def build_llama(tiny_tokenizer):
    """Make random two-layer Llamas over the tiny tokenizer: `build_llama(seed=0)`."""

    def build(seed=0, **changes):
        settings = {
            "vocab_size": len(tiny_tokenizer),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 256,
            "initializer_range": 0.3,  # far from uniform, so that mistakes show
            "pad_token_id": tiny_tokenizer.pad_token_id,
            "eos_token_id": tiny_tokenizer.eos_token_id,
            "bos_token_id": None,
            "tie_word_embeddings": True,
        }
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return LlamaForCausalLM(LlamaConfig(**settings | changes))

    return build


@pytest.fixture
def tiny_llama(build_llama):
    """A fresh random Llama of about 20 thousand parameters."""
    return build_llama()


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a distribution on the path: `install("name", {"slug": "module"}, {"module": text})`.

    `group` is that of its entry points: papers, unless another one is given.
    """
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(distribution, points, modules, group="repro.papers"):
        info = tmp_path / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        lines = [f"{slug} = {module}" for slug, module in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
        for name, text in modules.items():
            path = tmp_path / f"{name.replace('.', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            monkeypatch.delitem(sys.modules, name, raising=False)
        group_entry_points.cache_clear()

    yield put
    group_entry_points.cache_clear()
