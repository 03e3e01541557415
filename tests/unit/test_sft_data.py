"""Fine-tuning data in every form: which tokens there are, and which are trained on."""

from copy import deepcopy

import pytest
from datasets import Dataset
from tokenizers.processors import TemplateProcessing

from core.data.sft import IGNORED, PadRight, tokenize_rows
from eval.errors import BadValue

ROWS = [{"prompt": f"{a}+{b}=", "completion": f"{a + b} is it"} for a in range(4) for b in range(3)]
TURNS = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]


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
