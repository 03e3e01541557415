"""TRL's parser, script settings and names, with TRL's results on any words and files."""

import contextlib
import os
import subprocess
import sys
from dataclasses import MISSING, asdict, fields
from io import StringIO

import peft
import pytest
import trl
import yaml
from datasets import Dataset, load_dataset
from hypothesis import given
from hypothesis import strategies as st
from transformers import HfArgumentParser, TrainingArguments

import core
from core.configs.script import DatasetConfig
from eval.errors import BadValue, MissingFile

CLASSES = ["GRPOConfig", "SFTConfig", "ModelConfig", "ScriptArguments", "DatasetMixtureConfig"]
OURS_ONLY = {
    f.name
    for name in ("GRPOConfig", "SFTConfig")
    for f in fields(getattr(core, name))
    if f.name not in {theirs.name for theirs in fields(getattr(trl, name))}
}
WORDS = [
    [],
    ["1"],
    ["0.5"],
    ["none"],
    ["Null"],
    ["true"],
    ["a"],
    ["1", "2"],
    ["a", "b"],
    ['{"a": 1}'],
]


def parsed(parse, words):
    """What argparse makes of words, or that it refuses them."""
    with contextlib.redirect_stderr(StringIO()):
        try:
            return parse(words)
        except SystemExit:
            return "refused"


NEVER_NONE = {"num_generations", "max_completion_length"}  # TRL reads None, and fails on it later


def plain(namespace):
    """The values of a namespace, datasets as mappings, without settings that TRL lacks."""
    values = {key: value for key, value in vars(namespace).items() if key not in OURS_ONLY}
    parts = values.get("datasets")
    return values | ({"datasets": [vars(part) for part in parts]} if parts else {})


@pytest.mark.parametrize("name", CLASSES)
def test_every_option_is_read_as_by_trl(name):
    mine, other = (package.TrlParser(getattr(package, name)) for package in (core, trl))
    names = {f.name for f in fields(getattr(trl, name))} - {
        f.name for f in fields(TrainingArguments)
    }
    names |= {"logging_steps", "gradient_checkpointing", "bf16"} if name in CLASSES[:2] else set()
    tried = [(field, [f"--{field}", *words]) for field in sorted(names) for words in WORDS]
    tried += [(field, [f"--no_{field}"]) for field in sorted(names)]
    for field, words in tried:
        ours, theirs = (
            parsed(lambda words, p=parser: plain(p.parse_args(words)), words)
            for parser in (mine, other)
        )
        if theirs == "refused":  # by its choices, which settings here check when they are built
            continue
        if field in NEVER_NONE and theirs[field] is None:
            assert ours == "refused"
        else:
            assert ours == theirs, words
    assert "--help" in mine.format_help()


@pytest.mark.parametrize("parser", [HfArgumentParser, core.TrlParser, trl.TrlParser])
@pytest.mark.parametrize("config", [core.GRPOConfig, core.SFTConfig])
def test_every_parser_reads_the_settings(parser, config):
    words = ["--output_dir", "x", "--use_cpu", "--bf16", "false", "--learning_rate", "0.5"]
    (args,) = parser((config,)).parse_args_into_dataclasses(words)
    assert (args.output_dir, args.learning_rate, args.bf16) == ("x", 0.5, False)


@pytest.mark.parametrize(
    ("word", "scale"), [("none", "none"), ("false", "none"), ("batch", "batch"), ("group", "group")]
)
def test_the_scale_of_rewards_is_said_in_a_word(word, scale):
    words = ["--output_dir", "x", "--use_cpu", "--bf16", "false", "--scale_rewards", word]
    (args,) = HfArgumentParser((core.GRPOConfig,)).parse_args_into_dataclasses(words)
    assert args.scale_rewards == scale


def test_settings_of_scripts_have_trls_names_and_defaults():
    for name in CLASSES[2:]:
        mine, other = (
            {
                f.name: (f.type, f.default_factory() if f.default is MISSING else f.default)
                for f in fields(getattr(package, name))
                if f.name != "datasets"
            }
            for package in (core, trl)
        )
        assert mine == other


NAMES = [
    "model_revision",
    "lora_r",
    "dataset_name",
    "use_peft",
    "lora_target_modules",
    "nobody",
    "env",
]
VALUES = st.one_of(st.text("ab1", min_size=1, max_size=3), st.integers(0, 9), st.booleans())


@given(
    st.dictionaries(
        st.sampled_from(NAMES),
        VALUES,
    ),
    st.booleans(),
    st.booleans(),
)
def test_a_config_file_is_read_as_by_trl(tmp_path_factory, content, rest, apart):
    path = tmp_path_factory.mktemp("config") / "config.yaml"
    content = {k: v for k, v in content.items() if k != "env"} | {"env": {"REPRO_WORD": "said"}}
    path.write_text(yaml.safe_dump(content))
    words = ["--config", str(path), "--lora_alpha", "3", *(["--unheard", "of"] if rest else [])]
    results = []
    for package in (core, trl):
        os.environ.pop("REPRO_WORD", None)
        parser = package.TrlParser((package.ModelConfig, package.ScriptArguments))

        def read(given_words, parser=parser):
            try:
                found = parser.parse_args_and_config(
                    given_words, return_remaining_strings=rest, separate_remaining_strings=apart
                )
            except ValueError as error:
                return "unknown" if "nobody" in str(error) else error
            return [asdict(one) for one in found[:2]], found[2:]

        results.append(parsed(read, words))
        assert os.environ.pop("REPRO_WORD") == "said"
    assert results[0] == results[1]


@pytest.mark.parametrize("content", ["- a\n- b\n", "env: 3\n", "text"])
def test_a_config_file_that_is_no_mapping_is_refused(content, tmp_path):
    (tmp_path / "c.yaml").write_text(content)
    with pytest.raises(BadValue, match=r"c\.yaml: expected a mapping"):
        core.TrlParser(core.ModelConfig).parse_args_and_config(
            ["--config", str(tmp_path / "c.yaml")]
        )


@pytest.mark.parametrize("words", [["--config"], ["--config", "nowhere.yaml"]])
def test_a_config_file_that_is_not_there_is_named(words):
    with pytest.raises(MissingFile, match="expected the name of a YAML file"):
        core.TrlParser(core.ModelConfig).parse_args_and_config(words)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"use_peft": True},
        {"use_peft": True, "lora_target_modules": ["q_proj", "v_proj"], "use_dora": True},
        {"use_peft": True, "lora_target_modules": ["all-linear"], "use_rslora": True, "lora_r": 4},
        {"use_peft": True, "lora_modules_to_save": ["lm_head"], "lora_dropout": 0.5},
    ],
)
def test_adapters_are_those_of_trl(changes):
    mine, other = (p.get_peft_config(p.ModelConfig(**changes)) for p in (core, trl))
    assert isinstance(mine, peft.LoraConfig) == bool(changes)
    assert (mine and mine.to_dict()) == (other and other.to_dict())


def test_quantised_models_are_refused_by_the_word_that_asks_for_them():
    assert core.get_quantization_config(core.ModelConfig()) is None
    for name in ("load_in_4bit", "load_in_8bit"):
        with pytest.raises(BadValue, match=f"{name}=True: quantised models are not supported"):
            core.get_quantization_config(core.ModelConfig(**{name: True}))
    with pytest.raises(BadValue, match="are both set"):
        core.ModelConfig(load_in_4bit=True, load_in_8bit=True)


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Two small datasets in folders, and a cache beside them."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    for name, n in (("one", 10), ("two", 6)):
        (tmp_path / name).mkdir()
        table = {"text": [f"{name} {i}" for i in range(n)], "number": list(range(n))}
        Dataset.from_dict(table).to_json(tmp_path / name / "train.jsonl")
    return tmp_path


@pytest.mark.parametrize(
    ("first", "second", "rest"),
    [
        ({}, {}, {}),
        ({"columns": ["text"]}, {"columns": ["text"]}, {}),
        ({"fraction": 0.5}, {"fraction": 0.25}, {}),
        ({"fraction": 3.0}, {"fraction": 0.0}, {}),
        ({"split": "train[:5]"}, {}, {}),
    ],
)
def test_a_mixture_has_trls_rows(first, second, rest, rows):
    def mixed(package):
        parts = [{"path": str(rows / "one"), **first}, {"path": str(rows / "two"), **second}]
        return package.get_dataset(package.DatasetMixtureConfig(datasets=parts, **rest))

    mine, other = mixed(core), mixed(trl)
    assert mine.keys() == other.keys() == {"train"}
    assert mine["train"].to_list() == other["train"].to_list()


def test_a_mixture_is_split_streamed_and_refused(rows):
    def mixed(*parts, **rest):
        given_parts = [{"path": str(rows / name), **more} for name, more in parts]
        return core.get_dataset(core.DatasetMixtureConfig(datasets=given_parts, **rest))

    split = mixed(("one", {}), test_split_size=0.2)
    assert {name: len(part) for name, part in split.items()} == {"train": 8, "test": 2}
    streamed = mixed(("one", {}), ("two", {}), streaming=True)["train"]
    assert [row["text"] for row in streamed] == [
        row["text"] for name in ("one", "two") for row in load_dataset(str(rows / name))["train"]
    ]
    with pytest.raises(BadValue, match="datasets is empty"):
        mixed()
    with pytest.raises(BadValue, match="give every dataset of the mixture a share, or none"):
        mixed(("one", {"fraction": 0.5}), ("two", {}))
    with pytest.raises(BadValue, match="leave one out"):
        mixed(("one", {"fraction": 0.5}), streaming=True)
    assert core.DatasetMixtureConfig(datasets=[{"path": "x"}]).datasets == [DatasetConfig("x")]


def test_every_name_of_trl_is_here_or_says_what_to_do():
    names = {name for part in trl._import_structure.values() for name in part}
    elsewhere = (  # TRL's, experimental or removed
        *("A2PO", "BCO", "CPO", "NashMD", "ORPO", "OnlineDPO", "PPO", "PRM", "SSD", "TPO", "XPO"),
        *("GKD", "GOLD", "IWOPD", "MiniLLM", "SDFT", "SDPO"),
    )
    experimental = {f"{name}{kind}" for name in elsewhere for kind in ("Config", "Trainer")}
    unreleased = ("Verifier", "UniformDiffusion")
    ours = {f"{name}{kind}" for name in unreleased for kind in ("Config", "Trainer")}
    assert set(core._HOMES) == set(core.__all__) <= names | experimental | ours
    for name in sorted(names):
        if name in core._HOMES:
            assert getattr(core, name).__name__ == name
            continue
        with pytest.raises(ImportError, match=f"core has no {name} of TRL's: ") as error:
            exec(f"from core import {name}")
        assert "\n" not in str(error.value)
    assert not hasattr(core, "nothing_of_this_name")


def test_no_name_is_loaded_before_it_is_named():
    code = "import sys, core; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"torch", "transformers", "datasets", "trl", "yaml"} & set(done.stdout.split())
