"""Fine-tuning data in every form: which tokens there are, and which are trained on."""

from copy import deepcopy

import pytest
from datasets import Dataset, DatasetDict, IterableDataset
from tokenizers.processors import TemplateProcessing

from core.data.collate import DataCollatorForLanguageModeling
from core.data.preparation import tokenize_rows
from core.data.sft import IGNORED
from eval.errors import BadValue, ReproError

ROWS = [{"prompt": f"{a}+{b}=", "completion": f"{a + b} is it"} for a in range(4) for b in range(3)]
TURNS = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
SHARED = [{"conversations": [{"from": t["role"], "value": t["content"]} for t in TURNS]}] * 3


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
    with pytest.raises(BadValue, match="has a token to train on within max_length=2"):
        tokenize_rows(rows.select([0]), tiny_tokenizer, max_length=2)


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"text": ""}, "text"),
        ({"messages": []}, "messages"),
        ({"prompt": "1+1=", "completion": ""}, "completion"),
        ({"prompt": TURNS[:1], "completion": []}, "completion"),
    ],
)
def test_empty_rows_are_counted_and_refused_if_all_are(row, column, tiny_tokenizer, caplog):
    whole = {"text": "1+1", "messages": TURNS, "completion": "2", "prompt": "1+1="}
    filled = {name: whole[name] for name in row}
    if isinstance(row.get("prompt"), list):
        filled = {"prompt": TURNS[:1], "completion": TURNS[1:]}
    caplog.clear()
    (kept,) = tokenize_rows(Dataset.from_list([row, filled]), tiny_tokenizer)
    assert kept == tokenize_rows(Dataset.from_list([filled]), tiny_tokenizer)[0]
    assert f"1 of 2 rows are dropped: their {column} is empty" in caplog.text
    with pytest.raises(BadValue, match=f"no row of the dataset has anything in '{column}'"):
        tokenize_rows(Dataset.from_list([row]), tiny_tokenizer)


def test_rows_without_a_label_are_dropped_at_any_length(tiny_tokenizer, caplog):
    rows = [{"input_ids": [1, 2], "labels": [IGNORED, IGNORED]}, {"input_ids": [3], "labels": [3]}]
    caplog.clear()
    (left,) = tokenize_rows(Dataset.from_list(rows), tiny_tokenizer, max_length=None)
    assert left["input_ids"] == [3]
    assert "1 of 2 rows are dropped: they have no token to train on" in caplog.text


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


def test_what_is_no_text_no_pair_or_no_dataset_is_refused(tiny_tokenizer):
    with pytest.raises(BadValue, match="None in the dataset: expected a text, found NoneType"):
        tokenize_rows(Dataset.from_dict({"text": ["a", None]}), tiny_tokenizer)
    with pytest.raises(BadValue, match="expected two texts or two lists of messages"):
        tokenize_rows(Dataset.from_dict({"prompt": [TURNS], "completion": ["a"]}), tiny_tokenizer)
    for data in (DatasetDict({"train": Dataset.from_list(ROWS)}), ROWS):
        with pytest.raises(BadValue, match=r"the dataset is a .*: expected a datasets.Dataset or"):
            tokenize_rows(data, tiny_tokenizer)


@pytest.mark.parametrize("packing", [None, "bfd", "wrapped"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("rows", [ROWS, SHARED])
def test_a_streamed_dataset_gives_the_rows_of_a_whole_one(rows, known, packing, tiny_tokenizer):
    whole = Dataset.from_list(rows)
    streamed = whole.to_iterable_dataset() if known else IterableDataset.from_generator(rows.copy)
    settings = {"max_length": 9, "packing": packing}
    expected = tokenize_rows(whole, tiny_tokenizer, **settings)
    assert list(tokenize_rows(streamed, tiny_tokenizer, **settings)) == list(expected)


@pytest.mark.parametrize("packing", [None, "bfd"])
def test_rows_that_are_prepared_stay_as_they_are(packing, tiny_tokenizer):
    rows = Dataset.from_list([{"prompt": TURNS[:1], "completion": TURNS[1:]}] * 3)
    settings = {"max_length": 50, "assistant_only": True}
    once = tokenize_rows(rows, tiny_tokenizer, packing=packing, **settings)
    assert list(tokenize_rows(once, tiny_tokenizer, **settings)) == list(once)


def test_other_columns_are_kept_for_a_data_collator_of_the_users(tiny_tokenizer):
    rows = Dataset.from_list([{**row, "weight": i} for i, row in enumerate(ROWS)])
    assert tokenize_rows(rows, tiny_tokenizer)["weight"] == list(range(len(ROWS)))


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        ({"text": ["a"], "images": [[1]]}, {}, "the dataset has images: .* not supported"),
        ({"text": ["a"], "image": [1]}, {}, "the dataset has images: .* not supported"),
        ({"text": ["a"]}, {"completion_only": True}, "no column 'completion': leave it out"),
        ({"input_ids": [[5]]}, {"completion_only": True}, "no column 'completion': leave it out"),
        ({"text": ["a"]}, {"assistant_only": True}, "has no conversations: leave it out"),
        ({"input_ids": [[5]]}, {"assistant_only": True}, "has no conversations: leave it out"),
        (
            {"prompt": ["a"], "completion": ["b"]},
            {"assistant_only": True},
            "'a' is no conversation",
        ),
        (
            {"input_ids": [[5, 6, 0]], "attention_mask": [[1, 1, 0]]},
            {},
            "'attention_mask' with zeros: give rows of token ids without padding",
        ),
        ({"text": ["a"]}, {"packing": "bfd"}, "packing needs max_length"),
        ({"text": ["a"]}, {"packing": "best", "max_length": 4}, "no packing strategy 'best'"),
    ],
)
def test_what_could_not_act_is_refused_in_one_line(rows, settings, message, tiny_tokenizer):
    with pytest.raises(ReproError, match=message) as found:
        tokenize_rows(Dataset.from_dict(rows), tiny_tokenizer, **settings)
    assert "\n" not in str(found.value)


def test_rows_made_on_the_fly_are_refused_unless_they_are_left_as_they_are(tiny_tokenizer):
    """Preparing them would keep one draw of what is drawn anew each time."""
    rows = Dataset.from_list(ROWS).with_transform(lambda batch: batch)
    with pytest.raises(
        BadValue, match=r"by Dataset.with_transform\(\): write them with map\(\), or set"
    ):
        tokenize_rows(rows, tiny_tokenizer)


def test_padding_is_neither_read_nor_trained_on():
    rows = [{"input_ids": [5, 6, 7], "labels": [IGNORED, 6, 7]}, {"input_ids": [8], "labels": [8]}]
    batch = DataCollatorForLanguageModeling(pad_token_id=0, pad_to_multiple_of=4)(rows)
    assert batch["input_ids"].tolist() == [[5, 6, 7, 0], [8, 0, 0, 0]]
    assert batch["labels"].tolist() == [[IGNORED, 6, 7, IGNORED], [8] + [IGNORED] * 3]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0], [1, 0, 0, 0]]


def test_documents_of_one_row_begin_anew_and_their_first_token_is_no_target():
    rows = [
        {"input_ids": [5, 6, 7, 8], "labels": [5, IGNORED, 7, 8], "seq_lengths": [3, 1]},
        {"input_ids": [9, 4], "labels": [9, 4], "seq_lengths": [2]},
    ]
    for padding_free in (True, False):
        batch = DataCollatorForLanguageModeling(0, padding_free)(rows)
        assert batch["input_ids"].tolist() == [[5, 6, 7, 8, 9, 4]]
        assert batch["position_ids"].tolist() == [[0, 1, 2, 0, 0, 1]]
        assert batch["labels"].tolist() == [[IGNORED, IGNORED, 7, IGNORED, IGNORED, 4]]
        assert "attention_mask" not in batch
    rows[0]["seq_lengths"] = [3]
    with pytest.raises(BadValue, match=r"seq_lengths of a row sum to 3: expected .* 4"):
        DataCollatorForLanguageModeling(0)(rows)
