"""Fine-tuning data becomes the token ids and labels that it becomes in TRL, for any tokenizer."""

import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_kinds import KINDS, their_rows, tokenizer_of
from transformers.utils import logging

from core.configs.sft import TRUNCATIONS
from core.data.preparation import tokenize_rows
from core.data.sft import IGNORED

NO_SPACE = ("byte-level BPE", "SentencePiece, no space")  # nothing is added where a text begins
TEXTS = st.text(st.sampled_from(list(" \nabcdt3+1=4:.'é中")), max_size=12)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), min_size=30, max_size=30)
FORMS = {
    "text": lambda a, b: {"text": a + b},
    "standard": lambda a, b: {"prompt": a, "completion": b},
    "conversational": lambda a, b: {
        "prompt": [turn("user", a)],
        "completion": [turn("assistant", b)],
    },
    "messages": lambda a, b: {"messages": [turn("user", a), turn("assistant", b)]},
}


def turn(role, content):
    return {"role": role, "content": content}


def our_rows(dataset, tokenizer, **settings):
    return [
        (row["input_ids"], row["labels"]) for row in tokenize_rows(dataset, tokenizer, **settings)
    ]


def spelled(tokenizer, ids):
    return tokenizer.decode(ids, clean_up_tokenization_spaces=False)


def prompt_ids(tokenizer, row):
    if isinstance(row["prompt"], str):
        return tokenizer(row["prompt"])["input_ids"]
    return tokenizer.apply_chat_template(
        row["prompt"], add_generation_prompt=True, return_dict=False
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_completion_is_read_as_it_continues_its_prompt(kind):
    """`What is 3+1=` and `4` were trained on as `What is 3+1= 4`."""
    tokenizer = tokenizer_of(kind)
    row = {"prompt": "What is 3+1=", "completion": "4"}
    ((ids, labels),) = our_rows(Dataset.from_list([row]), tokenizer)
    ((text_ids, _),) = our_rows(Dataset.from_list([{"text": "What is 3+1=4"}]), tokenizer)
    assert spelled(tokenizer, ids) == spelled(tokenizer, text_ids)
    trained = [label for label in labels if label != IGNORED]
    assert spelled(tokenizer, trained).replace("</s>", "").strip("#= <pad>") == "4"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=2)
@given(pairs=PAIRS)
def test_rows_are_trls(kind, form, pairs):
    """Equal but where a token spans prompt and completion; then the prompt is as it is alone."""
    tokenizer = tokenizer_of(kind)
    dataset = Dataset.from_list([FORMS[form](f"a{a}", f"{b}c") for a, b in pairs])
    ours, theirs = our_rows(dataset, tokenizer), their_rows(dataset, tokenizer)
    for row, mine, other in zip(dataset, ours, theirs, strict=True):
        start = prompt_ids(tokenizer, row) if "prompt" in row else []
        if kind in NO_SPACE:
            assert mine[0][: len(start)] == start
        if mine == other:
            continue
        assert other[0][: len(start)] != start
        assert mine[0][: len(start)] == start
        assert mine[1] == [IGNORED] * len(start) + mine[0][len(start) :]
        assert spelled(tokenizer, mine[0]) == spelled(tokenizer, other[0])


@pytest.mark.parametrize("form", ["text", "standard", "messages"])
@pytest.mark.parametrize("mode", TRUNCATIONS)
@pytest.mark.filterwarnings("ignore:The `'keep_end'` truncation mode is deprecated:FutureWarning")
def test_long_rows_are_cut_as_in_trl(mode, form):
    tokenizer = tokenizer_of("byte-level BPE")
    dataset = Dataset.from_list([FORMS[form]("3+1=", "4: " * n) for n in range(1, 6)])
    whole = our_rows(dataset, tokenizer)[-1][0]
    width = len(whole) - 2
    ours = our_rows(dataset, tokenizer, max_length=width, truncation=mode)
    assert ours == their_rows(dataset, tokenizer, max_length=width, truncation_mode=mode)
    assert ours[-1][0] == (whole[:width] if mode == "keep_start" else whole[2:])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "space always" in kind])
@settings(max_examples=2)
@given(pairs=PAIRS)
def test_rows_are_trls_wherever_a_completion_alone_would_begin_with_a_space(kind, pairs):
    tokenizer = tokenizer_of(kind)
    dataset = Dataset.from_list([FORMS["standard"](f"a{a}", f"b{b}") for a, b in pairs])
    assert our_rows(dataset, tokenizer) == their_rows(dataset, tokenizer)


@pytest.mark.parametrize(
    ("kind", "changes"), [("WordPiece", True), ("SentencePiece, no space", False)]
)
def test_prompts_that_generation_does_not_read_are_warned_of_once(
    kind, changes, caplog, monkeypatch
):
    """WordPiece ends a prompt with a token of its own; the other reads `a` and `b` apart."""
    monkeypatch.setattr(logging.get_logger("core.data.sft"), "propagate", True)
    logging.get_logger("core").warning_once.cache_clear()
    rows = [FORMS["standard"](f"{at} a", "b") for at in range(3)]
    our_rows(Dataset.from_list(rows), tokenizer_of(kind))
    assert caplog.text.count("tokens of prompts change") == changes
