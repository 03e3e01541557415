"""Chat templates are foreign code: whatever one does, it ends in a text or in one line."""

import resource
from threading import Thread
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from core.bounded_templates import LENGTH, SECONDS, BoundedSandbox, apply_template
from core.models.load import load_tokenizer
from core.rollout.chat import chat_text
from eval.errors import BadValue

TURNS = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]
NESTED = "{% for i in range(99999) %}{% for j in range(99999) %}BODY{% endfor %}{% endfor %}"
GROWS = "{% set ns = namespace(x=START) %}{% for i in range(99) %}{% set ns.x = STEP %}{% endfor %}"
SLOW = [
    NESTED.replace("BODY", ""),
    NESTED.replace("BODY", "x"),
    "{% set x %}" + NESTED.replace("BODY", "") + "{% endset %}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(99) }}",
    "{{ range(99999)|select('in', range(99999)|list)|list }}",
]
LARGE = [
    "{{ 'A' * 500000000 }}",
    "{{ 500000000 * 'A' }}",
    "{{ [0] * 500000000 }}",
    "{{ 'A'|center(500000000) }}",
    "{{ 'A'.ljust(500000000) }}",
    "{{ '%500000000d' % 1 }}",
    "{{ '%500000000d'|format(1) }}",
    "{{ [1]|batch(500000000, 2)|list }}",
    "{{ ('a' * 999999)|replace('a', 'b' * 999999) }}",
    "{{ (['a' * 999999] * 999999)|join }}",
    "{% for i in range(99999) %}{{ 'a' * 999999 }}{% endfor %}",
    "{% set x %}{% for i in range(99999) %}{{ 'a' * 999999 }}{% endfor %}{% endset %}",
    GROWS.replace("START", "'A'").replace("STEP", "ns.x ~ ns.x"),
    GROWS.replace("START", "'A'").replace("STEP", "ns.x + ns.x"),
    GROWS.replace("START", "9").replace("STEP", "ns.x * ns.x"),
    "{{ 9 ** (9 ** 9) }}",
    "x" * (LENGTH + 1),
]
WRONG = [
    "{% include 'x' %}",
    "{% extends 'x' %}",
    "{% import 'x' as y %}",
    "{{ 1 // 0 }}",
    "{{ 2.0 ** 99999 }}",
    "{{ messages.x.y }}",
    "{{ messages + 1 }}",
    "{{ lipsum(n=999999999) }}",
    "{{ range(999999999)|list }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{{ raise_exception('no \n no') }}",
    "{{ raise_exception('no' * 9999) }}",
    "{{ " + "(" * 5000,
    "{% for %}",
    "{{",
]


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer("pocket-base", "plain")


def refusal(tokenizer, template, **keywords):
    tokenizer.chat_template = template
    with pytest.raises(BadValue) as caught:
        apply_template(tokenizer, TURNS, tokenize=False, **keywords)
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 1000
    return line


@pytest.mark.parametrize("template", SLOW)
def test_a_slow_template_is_ended(tokenizer, template, monkeypatch):
    monkeypatch.setattr("core.bounded_templates.SECONDS", SECONDS / 10)
    before = process_time()
    assert "0.2 s of processor time" in refusal(tokenizer, template)
    assert process_time() - before < SECONDS


@pytest.mark.parametrize("template", LARGE)
def test_a_large_template_is_ended(tokenizer, template):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = refusal(tokenizer, template)
    assert any(words in line for words in ("of memory", "characters", "bits"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**19  # KiB
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY


@pytest.mark.parametrize("template", WRONG)
def test_a_template_that_fails_is_one_line(tokenizer, template):
    assert "refuses these turns" in refusal(tokenizer, template)
    with pytest.raises(BadValue, match="refuses these turns"):
        chat_text(tokenizer, "1+1?")


def test_text_with_marks_of_the_assistant_is_bounded_too(tokenizer, monkeypatch):
    monkeypatch.setattr("core.bounded_templates.SECONDS", SECONDS / 10)
    template = "{% generation %}x{% endgeneration %}" + NESTED.replace("BODY", "xy")
    keywords = {"return_dict": True, "return_assistant_tokens_mask": True}
    tokenizer.chat_template = template
    with pytest.raises(BadValue, match=r"characters|processor time"):
        apply_template(tokenizer, TURNS, **keywords)


def test_threads_take_turns_and_leave_no_bound_behind(tokenizer):
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    texts = []

    def render():
        texts.extend(apply_template(tokenizer, TURNS, tokenize=False) for _ in range(20))

    threads = [Thread(target=render) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["1+1?2"] * 80
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY


PARTS = st.sampled_from(
    [
        "{% for m in xs %}{{ loop.index }}{{ loop.last }}{{ loop.length }}{{ m }}{% endfor %}",
        "{% for m in xs if m != 'b' %}{{ loop.revindex }}{{ m }}{% else %}none{% endfor %}",
        "{% for m in xs %}{% if m == 'b' %}{% break %}{% endif %}{{ m ~ '!' }}{% endfor %}",
        "{% for k, v in d.items() %}{{ k }}={{ v * 3 }}{% endfor %}",
        "{% for x in tree recursive %}[{{ loop.depth }}{{ loop(x) }}]{% endfor %}",
        "{% set o = namespace(n=1) %}{% for m in xs %}{% set o.n = o.n * 2 %}{% endfor %}{{ o.n }}",
        "{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m('x') * 2 }}{{ 2 ** 3 }}{{ '%s' % 7 }}",
        "{{ xs|map('upper')|join(', ') }}{{ xs|select('in', 'ab')|list }}{{ d|tojson }}",
    ]
)


@given(st.lists(PARTS), st.lists(st.sampled_from(["a", "b", ""])), st.integers(0, 3))
def test_within_the_bounds_nothing_changes(parts, xs, depth):
    tree = []
    for _ in range(depth):
        tree = [tree, tree]
    values = {"xs": xs, "d": dict.fromkeys(xs, "v"), "tree": tree}
    plain, bounded = (
        sandbox(extensions=[loopcontrols]).from_string("".join(parts))
        for sandbox in (ImmutableSandboxedEnvironment, BoundedSandbox)
    )
    assert bounded.render(**values) == plain.render(**values)
    assert "".join(bounded.generate(**values)) == plain.render(**values)
