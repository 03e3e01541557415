"""What is set for the preparation of data acts, whenever it is set, or is refused in one line."""

from copy import deepcopy
from inspect import signature

import pytest
import torch
from datasets import Dataset
from transformers import PreTrainedModel

from core import SFTConfig, SFTTrainer
from core.data.preparation import Preparation
from core.data.sft import IGNORED
from eval.errors import ReproError

ROWS = [{"prompt": f"{a}+{b}=", "completion": f"{a}" * (b + 1)} for a in range(4) for b in range(3)]
TURNS = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
IDS = [{"input_ids": [5, 6, 7], "labels": [IGNORED, 6, 7]}, {"input_ids": [8, 9], "labels": [8, 9]}]
SKIP = {"dataset_kwargs": {"skip_prepare_dataset": True}}


def config(**changes):
    quiet = {"use_cpu": True, "bf16": False, "report_to": "none", "max_steps": 1}
    quiet |= {"gradient_checkpointing": False, "disable_tqdm": True, "save_strategy": "no"}
    return SFTConfig(output_dir="unused", **quiet | changes)


@pytest.fixture
def make_sft(build_llama, tiny_tokenizer, tmp_path):
    """Build a trainer with given settings over a fresh tiny Llama."""

    def build(args, rows=ROWS, **rest):
        args.output_dir = str(tmp_path)
        data = Dataset.from_list(rows) if isinstance(rows, list) else rows
        return SFTTrainer(
            build_llama(),
            args,
            train_dataset=data,
            processing_class=deepcopy(tiny_tokenizer),
            **rest,
        )

    return build


@pytest.fixture
def prepare(tiny_tokenizer):
    """Rows of a dataset with settings: `prepare(rows, packing=True)`."""

    def rows(data, formatting_func=None, own_collator=False, packing=False, **changes):
        preparation = Preparation(
            args=config(**changes),
            tokenizer=tiny_tokenizer,
            formatting_func=formatting_func,
            own_collator=own_collator,
        )
        given = Dataset.from_list(data) if isinstance(data, list) else data
        return preparation.rows(given, packing=packing)

    return rows


@pytest.mark.parametrize(
    ("name", "value", "rows", "others"),
    [
        ("packing", True, ROWS, {}),
        ("eval_packing", True, ROWS, {}),
        ("packing_strategy", "wrapped", ROWS, {"packing": True, "max_length": 16}),
        ("padding_free", True, ROWS, {}),
        ("assistant_only_loss", True, [{"messages": TURNS}] * 4, {}),
        ("completion_only_loss", False, ROWS, {}),
        ("max_length", 5, ROWS, {}),
        ("dataset_text_field", "prompt", [{"prompt": "a", "text": "b"}], {}),
        ("dataset_kwargs", SKIP["dataset_kwargs"], IDS, {"max_length": 2}),
        ("eos_token", "?", ROWS, {}),
        ("pad_token", "*", ROWS, {}),
        ("shuffle_dataset", True, ROWS, {}),
    ],
)
def test_a_setting_acts_as_well_when_it_is_set_after_the_config_is_built(
    name, value, rows, others, make_sft
):
    def prepared(args):
        trainer = make_sft(args, rows, eval_dataset=Dataset.from_list(rows))
        batch = trainer.data_collator(list(trainer.train_dataset))
        sets = (trainer.train_dataset, trainer.eval_dataset)
        return [list(data) for data in sets], {key: part.tolist() for key, part in batch.items()}

    later = config(**others)
    setattr(later, name, value)
    expected = prepared(config(**others, **{name: value}))
    assert prepared(later) == expected
    assert prepared(config(**others)) != expected


def test_a_template_that_is_set_later_acts(make_sft, tmp_path):
    (tmp_path / "a.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    args = config()
    args.chat_template_path = str(tmp_path / "a.jinja")
    trainer = make_sft(args, [{"messages": TURNS}])
    assert trainer.processing_class.decode(trainer.train_dataset[0]["input_ids"]) == "hiho"


def test_a_dataset_that_is_not_prepared_is_left_as_it_is(make_sft, prepare):
    data = Dataset.from_list([{"input_ids": [5] * 30}] * 4)
    trainer = make_sft(config(max_length=8, **SKIP), data, eval_dataset=data)
    assert list(trainer.train_dataset) == list(trainer.eval_dataset) == list(data)
    trainer.train()
    assert trainer.evaluate(data)["eval_loss"] == trainer.evaluate()["eval_loss"]
    drawn = data.with_transform(lambda batch: {"input_ids": [[6, 7]] * len(batch["input_ids"])})
    assert next(iter(prepare(drawn, **SKIP))) == {"input_ids": [6, 7]}
    images = Dataset.from_list([{"images": [1], "text": "a"}])
    assert prepare(images, own_collator=True, **SKIP) is images


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        ([{"text": "a"}], {}, "no column 'input_ids': found 'text'; skip_prepare_dataset"),
        (
            [{"input_ids": [5], "assistant_masks": [1]}],
            {},
            "assistant_masks unread. Add a 'labels' column",
        ),
        (
            [{"input_ids": [5], "completion_mask": [1]}],
            {},
            "completion_mask unread. Add a 'labels' column",
        ),
        (IDS, {"assistant_only_loss": True}, "assistant_only_loss is set, but skip_prepare"),
        (IDS, {"completion_only_loss": True}, "completion_only_loss is set, but skip_prepare"),
        (IDS, {"packing": True}, "packing is set, but skip_prepare"),
        (IDS, {"formatting_func": str}, "formatting_func is set, but skip_prepare"),
    ],
)
def test_what_skipped_preparation_would_pass_over_is_refused(rows, settings, message, prepare):
    with pytest.raises(ReproError, match=message) as found:
        prepare(rows, **settings, **SKIP)
    assert "\n" not in str(found.value)


def test_other_keys_of_preparation_are_refused(prepare):
    with pytest.raises(
        ReproError, match="dataset_kwargs\\['skip'\\]: expected no key but 'skip_pre"
    ):
        prepare(IDS, dataset_kwargs={"skip": True})


def test_a_formatting_function_beside_token_ids_is_refused(prepare):
    with pytest.raises(ReproError, match="formatting_func is set, but the dataset holds token ids"):
        prepare(IDS, formatting_func=str)


def test_a_loss_type_beside_a_loss_function_is_refused(make_sft):
    for name, value in {"loss_type": "dft", "label_smoothing_factor": 0.1}.items():
        with pytest.raises(ReproError, match=f"{name}={value!r} is set beside a compute_loss_func"):
            make_sft(config(**{name: value}), compute_loss_func=lambda *_, **__: None)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("loss_type", "chunked_nll", "nll"), ("packing_strategy", "bfd-requeue", "bfd_split")],
)
def test_names_that_trl_has_given_up_are_those_of_today(name, old, new):
    assert getattr(config(**{name: old}), name) == new


def test_the_end_of_long_rows_is_kept_on_request(make_sft):
    rows = [{"input_ids": [5, 6, 7, 8]}, {"input_ids": [9, 10]}]
    trainer = make_sft(config(max_length=3, truncation_mode="keep_end"), rows, eval_dataset=None)
    assert trainer.train_dataset["input_ids"] == [[6, 7, 8], [9, 10]]
    assert trainer.train_dataset["labels"] == [[6, 7, 8], [9, 10]]


@pytest.mark.parametrize("given", [None, {"use_reentrant": False}])
def test_activations_are_offloaded_from_a_device(given, monkeypatch):
    settings = {"activation_offloading": True, "gradient_checkpointing_kwargs": given}
    on_cpu = SFTConfig(output_dir="unused", use_cpu=True, **settings)
    assert on_cpu.gradient_checkpointing_kwargs == given  # they are in host memory anyway
    monkeypatch.setattr(SFTConfig, "device", torch.device("cuda"))
    there = SFTConfig(output_dir="unused", use_cpu=True, **settings)
    assert there.activation_checkpointing_kwargs == {**(given or {}), "offload": True}
    assert there.gradient_checkpointing_kwargs == there.activation_checkpointing_kwargs
    assert "offload" in signature(PreTrainedModel.activation_checkpointing_enable).parameters
