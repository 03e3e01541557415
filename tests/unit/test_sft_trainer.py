"""Supervised fine-tuning: the same run as TRL's, any split of the batch, data in every form."""

from copy import deepcopy

import pytest
import torch
from datasets import Dataset
from tokenizers.processors import TemplateProcessing

from core import SFTConfig, SFTTrainer
from core.data.sft import IGNORED, PadRight, tokenize_rows
from core.errors import MissingColumn
from core.losses.supervised import dft, nll
from eval.errors import BadValue

ROWS = [{"prompt": f"{a}+{b}=", "completion": f"{a + b} is it"} for a in range(4) for b in range(3)]
TURNS = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]


def config(folder, **changes):
    settings = {
        "output_dir": str(folder),
        "max_steps": 4,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "constant",
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "per_device_train_batch_size": 6,
    }
    return {**settings, **changes}


def train(trainer):
    trainer.train()
    logs = [row for row in trainer.state.log_history if "loss" in row]
    return logs, {k: v.clone() for k, v in trainer.model.state_dict().items()}


def test_a_resumed_run_is_the_same_run_with_its_token_count(build_llama, tiny_tokenizer, tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 3, "logging_steps": 2, "max_steps": 5}
    runs = []
    for start in (None, str(tmp_path / "checkpoint-3")):
        trainer = SFTTrainer(
            model=build_llama(seed=1),
            args=SFTConfig(**config(tmp_path, **settings)),
            train_dataset=Dataset.from_list(ROWS),
            processing_class=tiny_tokenizer,
        )
        trainer.train(resume_from_checkpoint=start)
        weights = torch.cat([p.detach().flatten() for p in trainer.model.parameters()])
        names = ("step", "loss", "train_loss", "num_tokens", "entropy", "grad_norm")
        rows = [[row.get(name) for name in names] for row in trainer.state.log_history]
        runs.append((rows, weights.tolist()))
    assert runs[1] == runs[0]
    assert runs[0][0][1][3] > runs[0][0][0][3] > 0


@pytest.mark.parametrize("loss_type", ["nll", "dft"])
@pytest.mark.filterwarnings("ignore")  # TRL's own
def test_the_run_is_trls(loss_type, build_llama, tiny_tokenizer, tmp_path):
    from trl import SFTConfig as TheirConfig
    from trl import SFTTrainer as TheirTrainer

    pairs = ((SFTTrainer, SFTConfig, "ours"), (TheirTrainer, TheirConfig, "theirs"))
    (logs, weights), (their_logs, their_weights) = (
        train(
            cls(
                model=build_llama(seed=1),
                args=cfg(**config(tmp_path / name, loss_type=loss_type)),
                train_dataset=Dataset.from_list(ROWS),
                processing_class=tiny_tokenizer,
            )
        )
        for cls, cfg, name in pairs
    )
    for ours, theirs in zip(logs, their_logs, strict=True):
        for name in ("loss", "grad_norm", "entropy", "mean_token_accuracy", "num_tokens"):
            assert float(ours[name]) == pytest.approx(float(theirs[name]), rel=1e-4), name
    for name, value in weights.items():
        torch.testing.assert_close(value, their_weights[name], rtol=1e-4, atol=1e-5)


def test_any_split_of_the_batch_gives_the_same_weights(build_llama, tiny_tokenizer, tmp_path):
    results = []
    for size in (12, 4, 3, 1):
        args = config(tmp_path, per_device_train_batch_size=size, max_steps=3)
        trainer = SFTTrainer(
            model=build_llama(seed=1),
            args=SFTConfig(**args, gradient_accumulation_steps=12 // size),
            train_dataset=Dataset.from_list(ROWS),
            processing_class=tiny_tokenizer,
        )
        results.append(train(trainer))
    (logs, weights), *others = results
    for other_logs, other_weights in others:
        assert [float(r["loss"]) for r in other_logs] == pytest.approx(
            [float(r["loss"]) for r in logs], rel=1e-4
        )
        for name, value in weights.items():
            torch.testing.assert_close(value, other_weights[name], rtol=1e-3, atol=1e-5)


def test_prompts_are_not_trained_on_unless_asked(tiny_tokenizer):
    rows = Dataset.from_list(ROWS[:1])
    (only,) = tokenize_rows(rows, tiny_tokenizer)
    start = len(tiny_tokenizer("0+0=")["input_ids"])
    assert only["labels"][:start] == [IGNORED] * start
    assert only["labels"][start:] == only["input_ids"][start:]
    assert only["input_ids"][-1] == tiny_tokenizer.eos_token_id
    (both,) = tokenize_rows(rows, tiny_tokenizer, completion_only=False)
    assert both["labels"] == both["input_ids"]


def test_conversations_and_texts_say_the_same(tiny_tokenizer):
    text = tiny_tokenizer.apply_chat_template(TURNS, tokenize=False)
    forms = (
        {"messages": TURNS},
        {"prompt": TURNS[:1], "completion": TURNS[1:]},
        {"text": text},
    )
    ids = [tokenize_rows(Dataset.from_list([row]), tiny_tokenizer)[0]["input_ids"] for row in forms]
    assert ids[0] == ids[1] == ids[2]


def test_long_rows_keep_their_start_and_go_where_nothing_trained_is_left(tiny_tokenizer):
    rows = Dataset.from_list([*ROWS[:1], {"prompt": "1", "completion": "2"}])
    whole = tokenize_rows(rows, tiny_tokenizer, completion_only=False)
    cut = tokenize_rows(rows, tiny_tokenizer, completion_only=False, max_length=3)
    assert cut["input_ids"] == [ids[:3] for ids in whole["input_ids"]]
    assert all(len(row["input_ids"]) == len(row["labels"]) for row in cut)
    width = len(tiny_tokenizer("0+0=")["input_ids"])
    (left,) = tokenize_rows(rows, tiny_tokenizer, max_length=width)
    assert left["input_ids"] == whole["input_ids"][1][:width]
    with pytest.raises(BadValue, match="1 rows have no token to train on within max_length=2"):
        tokenize_rows(rows.select([0]), tiny_tokenizer, max_length=2)


def test_an_end_token_that_is_there_is_not_added_again(tiny_tokenizer):
    end = tiny_tokenizer.eos_token
    for row, field in ((ROWS[0], "completion"), ({"text": "1+1"}, "text")):
        plain, closed = (
            tokenize_rows(Dataset.from_list([one]), tiny_tokenizer)[0]["input_ids"]
            for one in (row, {**row, field: row[field] + end})
        )
        assert closed == plain


@pytest.mark.parametrize("form", ["text", "pair", "messages"])
def test_only_plain_text_gets_the_tokenizers_own_start_token(form, tiny_tokenizer):
    """A chat template writes its own; generation reads plain prompts with it too."""
    tokenizer = deepcopy(tiny_tokenizer)
    start = tokenizer.convert_ids_to_tokens(7)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{start} $A", special_tokens=[(start, 7)]
    )
    rows = {"text": {"text": "1+1"}, "pair": ROWS[0], "messages": {"messages": TURNS}}
    row = Dataset.from_list([rows[form]])
    (plain,) = tokenize_rows(row, tiny_tokenizer, completion_only=False)
    (begun,) = tokenize_rows(row, tokenizer, completion_only=False)
    extra = [] if form == "messages" else [7]
    assert begun["input_ids"] == begun["labels"] == extra + plain["input_ids"]


def test_a_prompt_that_the_template_ends_otherwise_alone_is_not_read_twice(tiny_tokenizer):
    tokenizer = deepcopy(tiny_tokenizer)
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}?!{% endif %}"
    )
    row = {"prompt": TURNS[:1], "completion": TURNS[1:]}
    (found,) = tokenize_rows(Dataset.from_list([row]), tokenizer)
    assert found["input_ids"] == tokenizer("hiho")["input_ids"]
    assert found["labels"] == [IGNORED] * 2 + found["input_ids"][2:]


def test_rows_of_token_ids_get_labels_and_are_cut(tiny_tokenizer):
    def labels(completion_only=None, **columns):
        rows = Dataset.from_list([{"input_ids": [5, 6, 7, 8], **columns}])
        (row,) = tokenize_rows(rows, tiny_tokenizer, completion_only=completion_only, max_length=3)
        assert row["input_ids"] == [5, 6, 7]
        return row["labels"]

    assert labels() == labels(completion_mask=[0, 0, 1, 1]) == [5, 6, 7]
    assert labels(labels=[IGNORED, 6, 7, 8]) == [IGNORED, 6, 7]
    assert labels(completion_only=True, completion_mask=[0, 0, 1, 1]) == [IGNORED, IGNORED, 7]
    assert labels(assistant_masks=[0, 1, 0, 1]) == [IGNORED, 6, IGNORED]


def test_tools_and_template_keywords_of_a_row_reach_the_template(tiny_tokenizer):
    tokenizer = deepcopy(tiny_tokenizer)
    tokenizer.chat_template = "{{ tools[0].name }}{{ word }}"
    row = {"messages": TURNS, "tools": '[{"name": "ab"}]', "chat_template_kwargs": {"word": "c"}}
    (found,) = tokenize_rows(Dataset.from_list([row]), tokenizer)
    assert found["input_ids"] == tokenizer("abc")["input_ids"]


def test_what_is_no_text_and_what_streams_is_refused(tiny_tokenizer):
    with pytest.raises(BadValue, match="None in the dataset: expected a text, found NoneType"):
        tokenize_rows(Dataset.from_dict({"text": ["a", None]}), tiny_tokenizer)
    with pytest.raises(BadValue, match="is a IterableDataset: expected"):
        tokenize_rows(Dataset.from_list(ROWS).to_iterable_dataset(), tiny_tokenizer)


def test_padding_is_neither_read_nor_trained_on():
    rows = [{"input_ids": [5, 6, 7], "labels": [IGNORED, 6, 7]}, {"input_ids": [8], "labels": [8]}]
    batch = PadRight(pad_token_id=0, multiple=4)(rows)
    assert batch["input_ids"].tolist() == [[5, 6, 7, 0], [8, 0, 0, 0]]
    assert batch["labels"].tolist() == [[IGNORED, 6, 7, IGNORED], [8] + [IGNORED] * 3]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0], [1, 0, 0, 0]]


def test_dft_weighs_the_gradient_of_nll_by_the_probability():
    logps = torch.tensor([[-0.1, -2.0, -5.0]], dtype=torch.float64, requires_grad=True)
    (plain,) = torch.autograd.grad(nll(logps).sum(), logps)
    (weighted,) = torch.autograd.grad(dft(logps).sum(), logps)
    torch.testing.assert_close(weighted, plain * logps.detach().exp())


def test_data_without_a_known_column_is_refused(build_llama, tiny_tokenizer, tmp_path):
    with pytest.raises(MissingColumn, match="found 'question'"):
        SFTTrainer(
            model=build_llama(),
            args=SFTConfig(**config(tmp_path)),
            train_dataset=Dataset.from_list([{"question": "1"}]),
            processing_class=tiny_tokenizer,
        )
    with pytest.raises(BadValue, match="needs a train_dataset"):
        SFTTrainer(model=build_llama(), args=SFTConfig(**config(tmp_path)))


def test_any_dataset_is_evaluated_in_the_form_of_the_trainers(
    build_llama, tiny_tokenizer, tmp_path
):
    rows = Dataset.from_list(ROWS)
    trainer = SFTTrainer(
        model=build_llama(),
        args=SFTConfig(**config(tmp_path)),
        train_dataset=rows,
        eval_dataset=rows,
        processing_class=tiny_tokenizer,
    )
    expected = trainer.evaluate()["eval_loss"]
    assert trainer.evaluate(rows)["eval_loss"] == expected
    assert trainer.evaluate({"other": rows})["eval_other_loss"] == expected
    assert trainer.predict(rows).metrics["test_loss"] == expected


def test_a_formatting_function_is_never_passed_over(build_llama, tiny_tokenizer, tmp_path):
    def trainer(**changes):
        return SFTTrainer(
            model=build_llama(),
            args=SFTConfig(**config(tmp_path, **changes)),
            train_dataset=Dataset.from_list(ROWS),
            processing_class=tiny_tokenizer,
            formatting_func=lambda row: row["prompt"],
        )

    for completion_only in (None, True):
        with pytest.raises(BadValue, match="formatting_func makes one text"):
            trainer(completion_only_loss=completion_only)
    expected = tiny_tokenizer("0+0=" + tiny_tokenizer.eos_token)["input_ids"]
    assert trainer(completion_only_loss=False).train_dataset[0]["input_ids"] == expected


def test_label_smoothing_is_refused(tmp_path):
    with pytest.raises(BadValue, match=r"label_smoothing_factor=0\.1 is not supported"):
        SFTConfig(**config(tmp_path, label_smoothing_factor=0.1))
