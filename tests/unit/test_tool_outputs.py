"""Labels of texts in which programs print: what they print is not trained on."""

import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from torch import tensor
from transformers import PreTrainedTokenizerFast

from core.data.preparation import tokenize_rows
from core.data.sft import IGNORED, row_encoder
from core.losses.supervised import SUPERVISED
from core.models.load import load_tokenizer
from eval.errors import BadValue
from eval.pocket.suites import drafts
from eval.samples.transcripts import STOP

QUESTION = {"role": "user", "content": "How many?"}
WRITTEN = st.text("ab 1\n+=", min_size=1, max_size=12)
PIECES = st.lists(st.tuples(WRITTEN, WRITTEN), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer("pocket-instruct")


def trained_text(row, tokenizer):
    """The text of the tokens with a label, each as it is written."""
    pieces = zip(row["input_ids"], row["labels"], strict=True)
    kept = [token for token, label in pieces if label != IGNORED]
    return tokenizer.decode(kept, skip_special_tokens=False)


def encoded(row, tokenizer, **losses):
    losses = {"completion_only": None, "assistant_only": False, **losses}
    return row_encoder(set(row), tokenizer, text_field="text", **losses)(row)


def row_of(form, answer):
    messages = [QUESTION, {"role": "assistant", "content": answer}]
    return {
        "text": {"text": answer},
        "plain pair": {"prompt": "How many? ", "completion": answer},
        "messages": {"messages": messages},
        "pair": {"prompt": messages[:1], "completion": messages[1:]},
    }[form]


@settings(max_examples=30)
@pytest.mark.parametrize("form", ["text", "plain pair", "messages", "pair"])
@given(pieces=PIECES, closed=st.booleans())
def test_what_programs_print_has_no_labels_and_the_rest_keeps_them(form, pieces, closed, tokenizer):
    parts = [(f"{text}\n{STOP}", f"\n{printed}\n```\n") for text, printed in pieces]
    if not closed:  # the text was cut inside of the last output
        parts[-1] = (parts[-1][0], f"\n{pieces[-1][1]}")
    answer = "".join(text + printed for text, printed in parts)
    row = row_of(form, answer)
    whole, masked = (encoded(row, tokenizer, mask_outputs=mask) for mask in (False, True))
    assert masked["input_ids"] == whole["input_ids"]
    kept, everything = (trained_text(row, tokenizer) for row in (masked, whole))
    expected = everything.replace(answer, "".join(text for text, _ in parts))
    assert kept == (expected if closed else expected.removesuffix(tokenizer.eos_token))


def test_a_transcript_trains_its_program_and_its_answer(tokenizer):
    """The fence that opens an output calls the program: the model writes it."""
    draft = drafts("pocket-gsm8k", "train")[3]
    row = row_of("pair", draft.transcript)
    masked = encoded(row, tokenizer, mask_outputs=True, assistant_only=True)
    program, rest = draft.transcript.split(STOP)
    answer = rest.split("```\n")[1]
    assert trained_text(masked, tokenizer).strip() == (
        f"{program}{STOP}{answer}{tokenizer.eos_token}"
    )


def test_the_worked_example_of_the_card():
    """Prompt, reasoning, program, output and reasoning have 3, 2, 4, 2 and 3 tokens."""
    words = Tokenizer(WordLevel({"?": 0, "<end>": 1}, unk_token="?"))
    words.pre_tokenizer = Split(Regex(r"\s+"), "removed")
    words = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?", eos_token="<end>")
    row = {
        "prompt": "how many pens ",
        "completion": f"count them a = 3 {STOP}\n3 ```\nthere are <end>",
    }
    labels = encoded(row, words, mask_outputs=True)["labels"]
    logps = tensor([-1.0] * 3 + [-0.5] * 2 + [-0.2] * 4 + [-3.0] * 2 + [-0.1] * 3).double()
    trained = tensor(labels) != IGNORED
    assert len(labels) == len(logps)
    assert int(trained.sum()) == 9
    loss = SUPERVISED["nll"].loss(logps[trained]).mean()
    assert float(loss) == pytest.approx(0.233333, abs=1e-6)


def test_rows_of_token_ids_say_themselves_what_is_trained_on(tokenizer):
    rows = Dataset.from_list([{"input_ids": [5, 6, 7]}])
    with pytest.raises(BadValue, match="mask_tool_outputs=True, but the dataset has token ids"):
        tokenize_rows(rows, tokenizer, mask_outputs=True)
    labelled = Dataset.from_list([{"input_ids": [5, 6, 7], "labels": [5, IGNORED, 7]}])
    (row,) = tokenize_rows(labelled, tokenizer, mask_outputs=True)
    assert row["labels"] == [5, IGNORED, 7]
