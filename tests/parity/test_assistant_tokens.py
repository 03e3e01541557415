"""The tokens of an assistant, told by generation blocks or by the prompts of a plain template."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

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
BEGINS_AND_ENDS = re.compile(r"<\|\w+\|>|<[a-z_/]+>|\[[a-zA-Z_]+\]|<\|[A-Z_]+\|>")
# Templates of TRL whose generation blocks begin where a prompt of generation ends.
NAMES = [
    *("cohere", "cohere2", "gemma", "gemma3", "glm4moe", "lfm2", "lfm2_v2", "llama3"),
    *("nemotron_3_nano", "phi3", "phi3_5", "qwen2_5", "qwen2_5_vl", "qwen3", "qwen3_5_nothink"),
    *("qwen3_5_think", "qwen3_6", "qwen3_8", "qwen3_instruct_2507", "qwen3_vl"),
]
THOUGHT = "<think>\nso\n</think>\n\nb"
CALL = {"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}
CALLING = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "name": "f", "content": "1"},
    {"role": "assistant", "content": "b"},
]
WORDS = st.text(st.sampled_from("ab c\n1.é"), min_size=1, max_size=9).map(lambda t: f"a{t}b")
PLAIN = "{% for m in messages %}[{{ m.role }}]{{ m.content }}<|end|>{% endfor %}"


def tokenizer_with(template, kind="byte-level BPE"):
    tokenizer = deepcopy(tokenizer_of(kind))
    special = sorted(set(BEGINS_AND_ENDS.findall(template)))
    tokenizer.add_tokens(special, special_tokens=True)
    tokenizer.chat_template = template
    return tokenizer


def conversation(turns, system=None):
    roles = ("user", "assistant") * len(turns)
    told = [{"role": role, "content": text} for role, text in zip(roles, turns, strict=False)]
    return [{"role": "system", "content": system}, *told] if system else told


def our_rows(rows, tokenizer, **options):
    prepared = tokenize_rows(Dataset.from_list(rows), tokenizer, assistant_only=True, **options)
    return [(row["input_ids"], row["labels"]) for row in prepared]


def both(name, rows):
    """Our rows and TRL's of conversations, by a plain template and by TRL's version of it."""
    plain = tokenizer_with((TEMPLATES / f"{name}.jinja").read_text())
    training = (TEMPLATES / f"{name}_training.jinja").read_text()
    rows = [{"messages": messages} for messages in rows]
    options = {"assistant_only_loss": True, "max_length": None}
    theirs = their_rows(Dataset.from_list(rows), plain, chat_template=training, **options)
    if name == "qwen2_5":
        (line,) = plain("\n")["input_ids"]
        begin = plain("<|im_start|>assistant")["input_ids"]
        theirs = [(ids, without_first(ids, labels, begin, line)) for ids, labels in theirs]
    return our_rows(rows, plain), theirs


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=2)
@given(data=st.data())
def test_a_plain_template_tells_what_trls_version_of_it_marks(name, data):
    """Qwen 2.5's alone also marks the line break that generation begins after."""
    drawn = st.lists(WORDS, min_size=2, max_size=7)
    ours, theirs = both(name, [conversation(data.draw(drawn)) for _ in range(5)])
    assert ours == theirs


@pytest.mark.parametrize("name", ["qwen3", "qwen3_5_think", "glm4moe", "nemotron_3_nano", "phi3"])
def test_thoughts_and_systems_are_told_as_by_trl(name):
    """GLM's template drops thoughts of earlier turns, Qwen's keeps all while it trains."""
    rows = [
        conversation(["a", THOUGHT, "c", THOUGHT], system="s"),
        conversation(["a", THOUGHT, "c"]),
    ]
    ours, theirs = both(name, rows)
    assert ours == theirs


@pytest.mark.parametrize("name", ["qwen3", "qwen2_5_vl", "qwen3_6", "glm4moe", "nemotron_3_nano"])
@pytest.mark.parametrize("turns", [CALLING[:2], CALLING, [*CALLING, *conversation(["c", "d"])]])
def test_calls_of_tools_are_told_as_by_trl(name, turns):
    ours, theirs = both(name, [turns])
    assert ours == theirs


def test_a_turn_that_the_next_one_ends_is_trained_to_its_end():
    """GLM-4's template writes no end of a turn: the model stops with what begins another."""
    tokenizer = tokenizer_with((TEMPLATES / "glm4moe.jinja").read_text())
    ((ids, labels),) = our_rows([{"messages": conversation(["a", "b", "c", "d"])}], tokenizer)
    kept = tokenizer.decode([label for label in labels if label != IGNORED])
    assert kept == "\n<think></think>\nb<|user|>\n<think></think>\nd<|user|>"
    assert tokenizer.decode(ids).count("<|user|>") == 3


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
        PLAIN + "{% if add_generation_prompt %}[bot]{% endif %}",  # generates in another role
        PLAIN,  # has no prompt of generation
        (TEMPLATES / "idefics3.jinja").read_text(),  # leaves contents out that are no lists
        (TEMPLATES / "deepseek_r1_distill.jinja").read_text(),
    ],
)
def test_a_template_that_does_not_tell_is_refused(template):
    rows = [{"messages": CALLING}]
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
    monkeypatch.setattr(logging.get_logger("core.data.assistant_tokens"), "propagate", True)
    core: Any = logging.get_logger("core")  # Any: the method of transformers has a cache
    core.warning_once.cache_clear()
    end = "<|end|>\n{% endgeneration %}" if inside else "{% endgeneration %}<|end|>\n"
    template = (
        "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}"
        "{% generation %}{{ m.content }}" + end + "{% else %}{{ m.content }}{% endif %}{% endfor %}"
    )
    our_rows([{"messages": conversation(["a", "b", "c", "d"])}], tokenizer_with(template))
    assert ("leave out the token that ends" in caplog.text) is not inside
