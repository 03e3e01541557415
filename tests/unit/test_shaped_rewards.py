"""Rewards for length, repetition, form and language, worked out by hand."""

import pickle
from dataclasses import FrozenInstanceError, dataclass, fields
from statistics import fmean, mean, pstdev

import pytest

from core.data.sources import STYLES
from core.rewards import (
    Accuracy,
    Conditioned,
    CosineLength,
    DenseRepetition,
    LanguageConsistency,
    LengthTarget,
    LengthWithin,
    Noisy,
    Shuffled,
    StepAccuracy,
    TagCount,
    ThinkFormat,
    get_cosine_scaled_reward,
    think_format_reward,
)
from core.settings.reward_keys import reward_key
from eval.errors import BadValue
from eval.pocket.suites import drafts
from papers.gdpo import LINES

RIGHT, WRONG = "so \\boxed{12}", "so \\boxed{13}"


def said(*texts):
    return [[{"role": "assistant", "content": text}] for text in texts]


def graded(reward, text, *lengths):
    """What a reward gives a right or wrong text at several numbers of tokens."""
    n = len(lengths)
    return reward(
        completions=said(*[text] * n),
        completion_ids=[[0] * length for length in lengths],
        answer=["12"] * n,
    )


def test_the_cosine_has_its_ends_and_its_middle_and_the_limit_takes_it_all():
    """arXiv 2502.03373: right 2 to 1, wrong -10 to 0, -10 at the limit."""
    reward = CosineLength(100)
    assert graded(reward, RIGHT, 0, 50, 99, 100, 120) == pytest.approx(
        [2.0, 1.5, 1.0, -10, -10], abs=3e-4
    )
    assert graded(reward, WRONG, 0, 50, 99, 100) == pytest.approx([-10, -5, 0, -10], abs=3e-3)
    assert graded(reward, RIGHT, 25) == pytest.approx([1 + 0.5 * (1 + 0.5**0.5)])
    open_end = CosineLength(100, at_limit=None)
    assert graded(open_end, RIGHT, 100, 120) == pytest.approx([1.0, 1.0])
    assert graded(open_end, WRONG, 100, 120) == pytest.approx([0.0, 0.0])


def test_a_cosine_may_begin_late_and_end_early():
    """Right ones are worth all up to 60 tokens, wrong ones their last from 20 on."""
    reward = CosineLength(
        100, right=(1.0, 0.5), wrong=(-1.0, -0.5), at_limit=None, right_from=60, wrong_until=20
    )
    assert graded(reward, RIGHT, 0, 60, 80, 100) == pytest.approx([1.0, 1.0, 0.75, 0.5])
    assert graded(reward, WRONG, 0, 10, 20, 100) == pytest.approx([-1.0, -0.75, -0.5, -0.5])


@pytest.mark.parametrize("length", [0, 3, 7, 20])
@pytest.mark.parametrize("text", [RIGHT, WRONG])
def test_with_the_values_of_trl_and_no_limit_it_is_trls(text, length):
    """Which reads the column `solution`."""
    ours = CosineLength(16, right=(0.9, 0.2), wrong=(-0.8, -0.1), at_limit=None)
    theirs = get_cosine_scaled_reward(16, -0.8, -0.1, 0.2, 0.9)
    found = theirs(said(text), ["\\boxed{12}"], [[0] * length])
    assert graded(ours, text, length) == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize(
    ("ids", "penalties"),
    [
        ([], []),
        ([1, 2], [0, 0]),
        ([1, 2, 1, 2], [0, 0, 1, 1]),
        ([1, 1, 1, 1], [0, 1, 1, 1]),  # 1 1 stands again at the second place, and at the third
        ([1, 2, 3, 1, 2, 4, 1, 2], [0, 0, 0, 1, 1, 0, 1, 1]),
    ],
)
def test_each_token_of_a_repeated_pair_is_fined_once(ids, penalties):
    reward = DenseRepetition(ngram_size=2, penalty=-0.5)
    assert reward.per_token(ids) == [-0.5 * p for p in penalties]
    assert reward(completion_ids=[ids]) == [-0.5 * sum(penalties)]


def test_a_repetition_of_40_tokens_is_fined_and_one_of_39_is_not():
    text = list(range(100))
    reward = DenseRepetition()
    assert reward(completion_ids=[text + text[:39], text + text[:40]]) == [0.0, pytest.approx(-2)]


FORMS = {
    "<think>a</think>b": (True, 0.5),
    "<think>a</think><answer>b</answer>": (True, 1.0),
    "a<think>b</think>": (False, 0.5),
    "<think>a<think>b</think>": (False, 0.25),
    "<think>a": (False, 0.25),
    "": (False, 0.0),
}


@pytest.mark.parametrize("text", FORMS)
def test_thinking_comes_first_and_tags_come_once(text):
    thinks, share = FORMS[text]
    assert ThinkFormat()(completions=said(text)) == think_format_reward(said(text)) == [thinks]
    assert ThinkFormat(2.0, -1.0)(completions=[text]) == [2.0 if thinks else -1.0]
    assert TagCount()(completions=said(text)) == [share]


@pytest.mark.parametrize(
    ("text", "language", "share"),
    [
        ("The answer is \\boxed{12}.", "en", 1.0),
        ("The answer is \\boxed{12}.", "zh", 0.0),
        ("答案是 \\boxed{12} x", "zh", 1.0),
        ("答案 is 十二", "zh", 0.8),
        ("答案 is 十二", "en", 0.2),
        ("答案</think>The answer", "zh", 1.0),
        ("12 = 12", "en", 0.0),
        ("La respuesta", "es", None),
    ],
)
def test_words_of_the_language_by_all_words(text, language, share):
    found = LanguageConsistency()(completions=said(text), language=[language])
    assert found == [share if share is None else pytest.approx(share)]


def test_lengths_within_a_limit_and_near_a_target():
    ids = [[0] * n for n in (3, 4, 5)]
    assert LengthWithin(4)(completion_ids=ids) == [1.0, 1.0, 0.0]
    assert LengthWithin(4, within=0.0, beyond=-1.0)(completion_ids=ids) == [0.0, 0.0, -1.0]
    assert LengthTarget(0.5, target=5)(completion_ids=ids) == [-1.0, -0.5, 0.0]
    assert LengthTarget(0.5)(completion_ids=ids, target_length=[3, 8, 1]) == [0.0, -2.0, -2.0]
    with pytest.raises(BadValue, match="set target, or give the data the column target_length"):
        LengthTarget(0.5)(completion_ids=ids)


@dataclass(frozen=True)
class Given:
    """A reward that the rows name."""

    column: str

    @property
    def __name__(self):
        return self.column

    def __call__(self, **columns):
        return columns[self.column]


def test_a_conditioned_reward_is_paid_where_the_other_one_is_high():
    reward = Conditioned(Given("short"), on=Given("right"), at_least=0.5, otherwise=-1.0)
    short, right = [0.3, 0.3, None, 0.3, 0.4], [1.0, 0.4, 1.0, None, 0.5]
    assert reward(short=short, right=right) == [0.3, -1.0, None, None, 0.4]
    assert reward.__name__ == "short_if_right"


def test_length_counts_only_when_right():
    reward = Conditioned(LengthWithin(4), on=Accuracy())
    assert reward.__name__ == "length_within_if_accuracy"
    assert graded(reward, RIGHT, 3, 5) == [1.0, 0.0]
    assert graded(reward, WRONG, 3, 5) == [0.0, 0.0]


def test_noise_is_normal_and_the_same_for_the_same_texts():
    texts = [str(number) for number in range(4000)]
    asked = {"prompts": ["a"] * 4000, "completions": texts, "given": [2.0] * 4000}
    found = Noisy(Given("given"), 0.5)(**asked)
    assert found == Noisy(Given("given"), 0.5)(**asked)
    drawn = [(value - 2.0) / 0.5 for value in found]
    assert mean(drawn) == pytest.approx(0.0, abs=0.05)
    assert pstdev(drawn) == pytest.approx(1.0, abs=0.05)
    assert mean(abs(x) < 1 for x in drawn) == pytest.approx(0.683, abs=0.03)
    other = Noisy(Given("given"), 0.5)(**asked | {"prompts": ["b"] * 4000})
    assert all(a != b for a, b in zip(found, other, strict=True))
    asked |= {"given": [None] * 4000}
    assert Noisy(Given("given"), 0.5)(**asked) == [None] * 4000


def test_shuffled_values_are_those_of_the_reward_and_say_nothing_of_a_completion():
    """The right half is paid as often as the wrong half, within four standard errors."""
    paid = []
    for number in range(200):
        texts = said(*[f"{number}: {RIGHT}"] * 8, *[f"{number}: {WRONG}"] * 8)
        values = Shuffled(Accuracy())(completions=texts, answer=["12"] * 16)
        assert sorted(values) == [0.0] * 8 + [1.0] * 8
        assert Shuffled(Accuracy())(completions=texts, answer=["12"] * 16) == values
        paid.append(sum(values[:8]))
    # of 16 places 8 are paid: hypergeometric, variance 8 * 8 * 8 * 8 / (16 * 16 * 15)
    assert abs(sum(paid) / 200 - 4) < 4 * (4096 / 3840 / 200) ** 0.5


REWARDS = [
    Conditioned(LengthWithin(4), on=Accuracy()),
    CosineLength(9),
    DenseRepetition(),
    LanguageConsistency(),
    LengthTarget(0.5),
    LengthWithin(4),
    Noisy(Accuracy(), 0.5),
    Shuffled(Accuracy()),
    TagCount(),
    ThinkFormat(),
]


@pytest.mark.parametrize("reward", REWARDS, ids=lambda reward: reward.__name__)
def test_a_reward_pickles_and_has_a_key_and_stays_as_it_is(reward):
    assert pickle.loads(pickle.dumps(reward)) == reward
    assert reward_key(pickle.loads(pickle.dumps(reward))) == reward_key(reward)
    for field in fields(reward):
        with pytest.raises(FrozenInstanceError):
            setattr(reward, field.name, 1)


def test_each_reward_has_its_own_name():
    assert len({reward.__name__ for reward in REWARDS}) == len(REWARDS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CosineLength(10, right_from=10),
        lambda: CosineLength(10, wrong_until=0),
        lambda: CosineLength(10, wrong_until=11),
        lambda: CosineLength(0),
        lambda: DenseRepetition(0),
        lambda: DenseRepetition(3, 0.1),
        lambda: TagCount(()),
        lambda: TagCount(("",)),
        lambda: LengthWithin(0),
        lambda: LengthTarget(0.0),
        lambda: Conditioned(StepAccuracy(), on=Accuracy()),
        lambda: Noisy(Accuracy(), 0.0),
        lambda: Noisy(StepAccuracy(), 1.0),
        lambda: Shuffled(StepAccuracy()),
    ],
)
def test_what_could_not_be_paid_sensibly_is_refused_at_once(make):
    with pytest.raises(BadValue, match="expected"):
        make()


def test_an_answer_that_no_verdict_is_due_for_has_no_worth():
    assert graded(CosineLength(9), "so \\boxed{9^{9^{9^9}}}", 3) == [None]


def test_four_lines_of_working_are_in_some_solutions_and_not_in_all():
    told = [STYLES["worked"].answer(one) for one in drafts("pocket-math", "valid")]
    lines = [sum("=" in line for line in text.split("\n")[:-1]) for text in told]
    found = LINES(completions=told)
    assert found == [float(count >= 4) for count in lines]
    assert 0.2 < fmean(found) < 0.8
