"""The tokens of an assistant, told by generation blocks or by the prompts of a plain template."""

from copy import deepcopy
from pathlib import Path

import pytest
import trl
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_kinds import KINDS, their_rows, tokenizer_of
from transformers.utils import logging

from core.data.preparation import tokenize_rows
from core.data.sft import IGNORED
from eval.errors import BadValue

TEMPLATES = Path(trl.__file__).parent / "chat_templates"
SPECIAL = [
    *("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<start_of_turn>", "<end_of_turn>"),
    *(
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
        "<|user|>",
        "<|assistant|>",
        "<|end|>",
    ),
]
WORDS = st.text(st.sampled_from("ab c\n1.é"), min_size=1, max_size=9).map(lambda t: f"a{t}b")
PLAIN = "{% for m in messages %}[{{ m.role }}]{{ m.content }}<|end|>{% endfor %}"


def tokenizer_with(template, kind="byte-level BPE"):
    tokenizer = deepcopy(tokenizer_of(kind))
    tokenizer.add_tokens(SPECIAL, special_tokens=True)
    tokenizer.chat_template = template
    return tokenizer


def conversation(turns, system=None):
    roles = ("user", "assistant") * len(turns)
    told = [{"role": role, "content": text} for role, text in zip(roles, turns, strict=False)]
    return [{"role": "system", "content": system}, *told] if system else told


def our_rows(rows, tokenizer, **options):
    prepared = tokenize_rows(Dataset.from_list(rows), tokenizer, assistant_only=True, **options)
    return [(row["input_ids"], row["labels"]) for row in prepared]


@pytest.mark.parametrize(
    ("name", "turns"), [("llama3", 6), ("gemma", 6), ("qwen3", 2), ("phi3", 2), ("qwen2_5", 6)]
)
@settings(max_examples=4)
@given(data=st.data())
def test_a_plain_template_tells_what_trls_version_of_it_marks(name, turns, data):
    """Qwen 2.5's alone also marks the line break that generation begins after."""
    drawn = st.lists(WORDS, min_size=2, max_size=turns).map(lambda t: t[: len(t) // 2 * 2])
    rows = [{"messages": conversation(data.draw(drawn))} for _ in range(5)]
    plain = tokenizer_with((TEMPLATES / f"{name}.jinja").read_text())
    training = (TEMPLATES / f"{name}_training.jinja").read_text()
    theirs = their_rows(
        Dataset.from_list(rows), plain, chat_template=training, assistant_only_loss=True
    )
    if name == "qwen2_5":
        (line,) = plain("\n")["input_ids"]
        begin = plain("<|im_start|>assistant")["input_ids"]
        theirs = [(ids, without_first(ids, labels, begin, line)) for ids, labels in theirs]
    assert our_rows(rows, plain) == theirs


def without_first(ids, labels, begin, line):
    """Labels without the line break after what begins the assistant's turn."""
    return [
        IGNORED if ids[at] == line and ids[at - len(begin) : at] == begin else label
        for at, label in enumerate(labels)
    ]


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3)
@given(data=st.data())
def test_marked_templates_give_trls_rows(kind, pair, data):
    turns = conversation(data.draw(st.lists(WORDS, min_size=4, max_size=4)))
    marked = (
        "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}{%- generation -%}"
        " {{ m.content }}<|end|>{%- endgeneration -%}"
        "{% else %} {{ m.content }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}[assistant]{% endif %}"
    )
    row = {"prompt": turns[:1], "completion": turns[1:]} if pair else {"messages": turns}
    tokenizer = tokenizer_with(marked, kind)
    theirs = their_rows(Dataset.from_list([row]), tokenizer, assistant_only_loss=True)
    assert our_rows([row], tokenizer) == theirs


def test_a_prompt_of_several_turns_is_trained_on_only_if_asked():
    template = (TEMPLATES / "llama3.jinja").read_text()
    turns = conversation(["a", "b", "c", "d"])
    rows = [{"prompt": turns[:3], "completion": turns[3:]}]
    tokenizer = tokenizer_with(template)
    whole = our_rows([{"messages": turns}], tokenizer)
    assert our_rows(rows, tokenizer, completion_only=False) == whole
    ((_, labels),) = our_rows(rows, tokenizer)
    kept = [label for label in labels if label != IGNORED]
    assert tokenizer.decode(kept) == "d<|eot_id|>"


@pytest.mark.parametrize(
    "template",
    [
        (TEMPLATES / "qwen3.jinja").read_text(),  # drops earlier thoughts
        PLAIN + "{% if add_generation_prompt %}[bot]{% endif %}",  # generates in another role
    ],
)
def test_a_template_that_does_not_tell_is_refused(template):
    rows = [{"messages": conversation(["a", "b", "c", "d"])}]
    with pytest.raises(BadValue, match="does not tell which tokens are the assistant's: mark"):
        our_rows(rows, tokenizer_with(template))


@pytest.mark.parametrize(
    "begin", ["", "{% if false %}{% generation %}{% endgeneration %}{% endif %}"]
)
def test_a_conversation_without_a_token_of_the_assistant_is_never_trained_on(begin):
    """With blocks that mark nothing, too: `transformers` then gives zeros."""
    template = begin + PLAIN + "{% if add_generation_prompt %}[assistant]{% endif %}"
    turns = conversation(["a", "b"])
    rows = [{"messages": turns if begin else turns[:1]}]
    with pytest.raises(BadValue, match="has no tokens of an assistant: found turns of user"):
        our_rows(rows, tokenizer_with(template))


@pytest.mark.parametrize("inside", [True, False])
def test_blocks_without_the_token_that_ends_a_turn_are_warned_of(inside, caplog, monkeypatch):
    monkeypatch.setattr(logging.get_logger("core.data.conversations"), "propagate", True)
    logging.get_logger("core").warning_once.cache_clear()
    end = "<|end|>\n{% endgeneration %}" if inside else "{% endgeneration %}<|end|>\n"
    template = (
        "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}"
        "{% generation %}{{ m.content }}" + end + "{% else %}{{ m.content }}{% endif %}{% endfor %}"
    )
    our_rows([{"messages": conversation(["a", "b", "c", "d"])}], tokenizer_with(template))
    assert ("leave out the token that ends" in caplog.text) is not inside
