"""TRL's reward functions: the same names, values and logged columns, on any input."""

import inspect
import pickle

import pytest
import trl.rewards as theirs
from hypothesis import example, given, settings
from hypothesis import strategies as st

import core.rewards as ours
from eval.errors import BadValue
from eval.grading.parts import stated_spans
from eval.grading.placeholders import without_requests

NAMES = [
    "accuracy_reward",
    "get_cosine_scaled_reward",
    "get_repetition_penalty_reward",
    "get_soft_overlong_punishment",
    "reasoning_accuracy_reward",
    "think_format_reward",
]
FACTORIES = {
    "get_cosine_scaled_reward": (7,),
    "get_repetition_penalty_reward": (),
    "get_soft_overlong_punishment": (9, 4),
}
FORMULAS = st.sampled_from(
    [
        "4",
        "\\frac{1}{3}",
        "0.5",
        "x+1",
        "\\frac12",
        "2,000",
        "(1, 2)",
        "\\text{no}",
        "50\\%",
        "",
        "1+",
    ]
)
WORDS = st.sampled_from(
    [
        "so ",
        "The answer is ",
        "\\boxed{",
        "}",
        "$",
        "\n",
        "<think>",
        "</think>",
        "final",
        "\\frac",
        "[",
    ]
)
PIECES = st.lists(st.one_of(WORDS, FORMULAS), max_size=7).map("".join)
TEXTS = st.one_of(
    PIECES, FORMULAS.map("I think \\boxed{{{}}}.".format), FORMULAS.map("${}$".format)
)
IDS = st.lists(st.integers(0, 3), max_size=12)


def is_plain(text):
    """Whether a text has neither reasoning nor a recited request, which TRL reads as the answer."""
    return stated_spans(text) == [(0, len(text))] and without_requests(text)[0] == text


def said(texts):
    return [[{"role": "assistant", "content": text}] for text in texts]


def logged(function, *arguments, **keywords):
    columns = {}
    values = function(*arguments, **keywords, log_extra=columns.__setitem__, answer=["x"])
    return values, columns


def test_every_name_of_trl_is_here_with_its_arguments():
    assert set(NAMES) == {name for names in theirs._import_structure.values() for name in names}
    for name in NAMES:
        mine, other = (inspect.signature(getattr(package, name)) for package in (ours, theirs))
        common = [
            (p.name, p.default) for p in other.parameters.values() if p.kind is not p.VAR_KEYWORD
        ]
        assert [
            (p.name, p.default) for p in mine.parameters.values() if p.kind is not p.VAR_KEYWORD
        ] == common


@settings(max_examples=60)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4))
@example([("\\boxed{\\frac{1}{3}}", "\\frac{1}{3}"), ("4", "$4$"), ("\\boxed{4}", "no answer")])
def test_accuracy(pairs):
    plain = [(text, gold) for text, gold in pairs if is_plain(text)]
    for name, some in (("accuracy_reward", plain), ("reasoning_accuracy_reward", pairs)):
        texts, solution = [text for text, _ in some], [gold for _, gold in some]
        mine, other = (
            logged(getattr(package, name), said(texts), solution) for package in (ours, theirs)
        )
        assert mine == other


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("<think>maybe \\boxed{41}, no, 42</think> The answer is 42.", "42"),
        ("maybe \\boxed{41}, no, 42</think>\n#### 42", "42"),
        ("maybe \\boxed{41}</think> So she has 42 apples.", "42"),
        ("<think>maybe \\boxed{41}</think> It is \\boxed{\\frac{84}{2}}.", "42"),
        ("I must put it in \\boxed{}. 6*7=42, so the answer is 42.", "42"),
        ("<think>It is \\boxed{3}, I", None),
        ("<think>It is \\boxed{3}</think>", None),
    ],
)
def test_an_answer_is_read_outside_reasoning_where_trl_reads_within(text, right):
    for gold in ("3", "41", "42"):
        assert ours.accuracy_reward(said([text]), [gold]) == [float(gold == right)]
        (scaled,) = ours.get_cosine_scaled_reward(4)([text], [gold], [[0]])
        assert scaled is not None
        assert (scaled > 0) is (gold == right)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=2),
    st.lists(st.sampled_from(["</think>", "final", "}"]), max_size=2),
)
def test_reasoning_ends_with_the_first_delimiter_that_there_is(pairs, ends):
    texts, solution = zip(*pairs, strict=True)
    mine, other = (
        package.reasoning_accuracy_reward(said(texts), list(solution), reasoning_delimiters=ends)
        for package in (ours, theirs)
    )
    assert mine == other


@given(st.lists(PIECES))
def test_think_format(texts):
    texts = [*texts, *(f"<think>{text}" for text in texts), *(f"<think>{t}</think>" for t in texts)]
    mine, other = (package.think_format_reward(said(texts)) for package in (ours, theirs))
    assert mine == other


@given(st.lists(IDS), st.integers(1, 4), st.floats(-2, 0))
def test_repetition(ids, size, penalty):
    mine, other = (p.get_repetition_penalty_reward(size, penalty)(ids) for p in (ours, theirs))
    assert mine == other


@given(st.lists(IDS), st.integers(0, 12), st.integers(0, 12))
def test_overlong(ids, limit, cache):
    mine, other = (p.get_soft_overlong_punishment(limit, cache)(ids) for p in (ours, theirs))
    assert mine == other


@settings(max_examples=25)
@given(
    st.lists(st.tuples(TEXTS.filter(is_plain), IDS), min_size=1, max_size=3),
    st.integers(1, 10),
    st.lists(st.floats(-1, 1), min_size=4, max_size=4),
)
def test_cosine(samples, limit, values):
    texts, ids = zip(*samples, strict=True)
    mine, other = (
        package.get_cosine_scaled_reward(limit, *values)(
            completions=said(texts), solution=["$4$"] * len(ids), completion_ids=list(ids)
        )
        for package in (ours, theirs)
    )
    assert mine == pytest.approx(other, abs=1e-12)


def test_rewards_of_factories_have_trls_metric_name_and_pickle():
    for name, arguments in FACTORIES.items():
        mine, other = (getattr(package, name)(*arguments) for package in (ours, theirs))
        assert mine.__name__ == other.__name__
        assert pickle.loads(pickle.dumps(mine)) == mine
    for name in set(NAMES) - FACTORIES.keys():
        assert getattr(ours, name).__name__ == name


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_cosine_scaled_reward", (0,)),
        ("get_repetition_penalty_reward", (0,)),
        ("get_repetition_penalty_reward", (3, 0.5)),
        ("get_soft_overlong_punishment", (10, -1)),
    ],
)
def test_what_no_completion_could_be_rewarded_with_is_refused_at_once(name, arguments):
    with pytest.raises(BadValue, match="expected"):
        getattr(ours, name)(*arguments)


def test_text_completions_are_read_too():
    assert ours.accuracy_reward(["\\boxed{4}", "\\boxed{5}"], ["$4$"] * 2) == [1.0, 0.0]
    assert ours.think_format_reward(["<think>x</think>y"]) == [1.0]
