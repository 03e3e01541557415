"""A chat template that is given beside a model: what it writes, and what goes by it."""

import pytest

from core.models.chat_templates import template_text
from core.models.load import load_tokenizer
from core.rollout.chat import chat_text
from core.settings.refusals import refuse
from core.settings.resolve import resolve
from core.stages.chain import Chain
from eval.errors import BadValue, MissingFile
from papers.deepseekmath_grpo import PAPER
from papers.dft import PAPER as DFT

CONVERSATION = [
    {"role": "user", "content": "1+1?"},
    {"role": "assistant", "content": "2"},
    {"role": "user", "content": "2+2?"},
]


def test_the_plain_template_asks_in_plain_words():
    tokenizer = load_tokenizer("pocket-base", "plain")
    told = chat_text(tokenizer, CONVERSATION, system="Be brief.")
    end = tokenizer.eos_token
    assert told == f"Be brief.\n\nQuestion: 1+1?\nAnswer: 2{end}\nQuestion: 2+2?\nAnswer:"
    tokenizer.bos_token = "<s>"
    assert chat_text(tokenizer, "1+1?") == "<s>Question: 1+1?\nAnswer:"


def test_what_is_taught_continues_what_is_asked():
    tokenizer = load_tokenizer("pocket-base", "plain")
    asked = chat_text(tokenizer, CONVERSATION[:1])
    whole = tokenizer.apply_chat_template(CONVERSATION[:2], tokenize=False)
    assert whole == f"{asked} 2{tokenizer.eos_token}\n"


def test_a_training_goes_by_the_text_of_its_template(tmp_path):
    file = tmp_path / "mine.jinja"
    keys = [Chain(resolve(PAPER)).train.key]
    for text in ("{{ messages[-1].content }}:", "{{ messages[-1].content }}?"):
        file.write_text(text)
        keys.append(Chain(resolve(PAPER, arguments=(f"chat_template={file}",))).train.key)
    assert len(set(keys)) == 3
    assert chat_text(load_tokenizer("pocket-base", str(file)), "1+1") == "1+1?"


def test_what_is_no_template_is_one_line(tmp_path):
    (tmp_path / "weights").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MissingFile, match="expected a file with a Jinja template, or plain"):
        template_text(str(tmp_path / "nothing"))
    with pytest.raises(BadValue, match=r"weights: .*expected text in UTF-8"):
        template_text(str(tmp_path / "weights"))
    with pytest.raises(BadValue, match="chat_template_path=x is no setting of a run: give chat_"):
        refuse([resolve(DFT, arguments=("chat_template_path=x",))])
