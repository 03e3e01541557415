"""Quantities of a student's tokens by its teacher, and their derivation from a stored file."""

from math import log

import pytest
import torch

from core.distillation.teacher_quantities import (
    NUMBER_COLUMNS,
    OWN,
    START,
    START_SAMPLES,
    TEACHER_QUANTITIES,
    UNLIKELY,
    Samples,
    answer_columns,
    teacher_quantity,
    token_columns,
)
from core.errors import NotMeasured
from core.families.distillation import OF_STEPS, Distillation
from core.forward.quantities import ratio_of_sums
from core.pages.probabilities import subject_and_notes
from core.records.pair_files import pairs_digest, read_pairs, write_pairs
from core.stages.pair_quantities import derive

SAMPLES = Samples(
    prompts=[[5, 6], [7], [5, 6]],
    answers=[[8, 9, 10, 11], [12], [13, 14]],
    is_gone=[[False, False, True, True], [False], [False, True]],
    problems=[0, 0, 1],
)


WORLDS = {  # what the student, the teacher and both have
    "packed": ({}, {}, {}),
    "padded": ({}, {}, {"attn_implementation": "eager"}),
    "wider teacher": ({}, {"hidden_size": 48, "num_hidden_layers": 3}, {}),
    "more rows of a head": ({}, {"vocab_size": 80}, {"vocab_size": 72}),
    "many tokens": ({}, {}, {"vocab_size": 3000, "tie_word_embeddings": False}),
}


@pytest.fixture(params=WORLDS)
def models(request, build_llama):
    student, teacher, both = WORLDS[request.param]
    return build_llama(**both | student), build_llama(seed=1, **both | teacher)


@pytest.fixture
def sets(build_llama):
    student, teacher = build_llama(), build_llama(seed=1)
    columns = answer_columns(token_columns(student, teacher, SAMPLES, 0))
    start = answer_columns(token_columns(build_llama(seed=2), teacher, SAMPLES, 0))
    return {OWN: columns, START: start, START_SAMPLES: columns}


def values(sets, name, *, at_start=False):
    return teacher_quantity(name, sets, at_start=at_start).value


def by_hand(student, teacher):
    """Both divergences of each token, one answer at a time."""
    found = []
    for prompt, answer in zip(SAMPLES.prompts, SAMPLES.answers, strict=True):
        ids = torch.tensor([[*prompt, *answer]])
        with torch.no_grad():
            pair = [m(ids).logits[0, len(prompt) - 1 : -1] for m in (student, teacher)]
        p, q = (x.softmax(-1) for x in pair)
        found.append([(p * (p / q).log()).sum(-1), (q * (q / p).log()).sum(-1)])
    return found


def test_the_sums_are_those_of_one_answer_at_a_time(build_llama, sets):
    for row, (reverse, forward) in enumerate(by_hand(build_llama(), build_llama(seed=1))):
        middle, gone = -(-len(reverse) // 2), torch.tensor(SAMPLES.is_gone[row])
        expected = {
            "tokens": len(reverse),
            "first_tokens": middle,
            "gone_tokens": gone.sum().item(),
            "reverse_kl": reverse.sum().item(),
            "reverse_kl_first": reverse[:middle].sum().item(),
            "reverse_kl_gone": reverse[gone].sum().item(),
            "forward_kl": forward.sum().item(),
        }
        assert {name: sets[OWN][name][row] for name in expected} == pytest.approx(
            expected, rel=1e-4
        )


def test_a_student_like_its_teacher_has_no_divergence(build_llama):
    columns = answer_columns(token_columns(build_llama(), build_llama(), SAMPLES, 0))
    assert values({OWN: columns}, "kl_to_teacher") == pytest.approx(0, abs=1e-6)


def test_quantities_are_means_over_their_tokens(build_llama, sets):
    pairs = by_hand(build_llama(), build_llama(seed=1))
    reverse, forward = (torch.cat([pair[i] for pair in pairs]) for i in (0, 1))
    kinds = {
        "kl_to_teacher": [0, 1, 2, 3, 4, 5, 6],
        "kl_to_teacher/first_half": [0, 1, 4, 5],
        "kl_to_teacher/second_half": [2, 3, 6],
        "kl_to_teacher/gone": [2, 3, 6],
        "kl_to_teacher/right": [0, 1, 4, 5],
    }
    for name, places in kinds.items():
        assert values(sets, name) == pytest.approx(reverse[places].mean().item(), rel=1e-4)
    assert values(sets, "forward_kl_to_teacher") == pytest.approx(forward.mean().item(), rel=1e-4)
    assert values(sets, "share_gone") == pytest.approx(3 / 7)


def test_a_file_of_tokens_has_a_row_for_each_token(build_llama):
    tokens = token_columns(build_llama(), build_llama(seed=1), SAMPLES, 0)
    assert tokens["problem"] == [0, 0, 0, 0, 0, 1, 1]
    assert tokens["answer"] == [0, 0, 0, 0, 1, 0, 0]
    assert tokens["position"] == [0, 1, 2, 3, 0, 0, 1]
    assert tokens["token"] == [token for answer in SAMPLES.answers for token in answer]
    assert tokens["is_gone"] == [flag for flags in SAMPLES.is_gone for flag in flags]


def test_numbers_of_tokens_are_those_of_a_forward_pass(models):
    """Of one answer at a time, over the tokens that both heads have."""
    student, teacher = models
    tokens = token_columns(student, teacher, SAMPLES, 0)
    shared, rows = min(model.config.vocab_size for model in models), []
    for prompt, answer in zip(SAMPLES.prompts, SAMPLES.answers, strict=True):
        with torch.no_grad():
            ids = torch.tensor([[*prompt, *answer]])
            logits = [m.eval()(ids).logits[0, len(prompt) - 1 : -1, :shared] for m in models]
        s, t = (x.double().log_softmax(-1) for x in logits)
        places = torch.arange(len(answer)), torch.tensor(answer)
        rows += zip(
            *(s[places], t[places], (s.exp() * (s - t)).sum(-1), (t.exp() * (t - s)).sum(-1)),
            *(-(s.exp() * s).sum(-1), -(t.exp() * t).sum(-1)),
            (s.exp() * (t.exp() < UNLIKELY)).sum(-1),
            strict=True,
        )
    for name, expected in zip(NUMBER_COLUMNS, torch.tensor(rows).T, strict=True):
        assert tokens[name] == pytest.approx(expected.tolist(), abs=1e-5, rel=1e-5), name
    bounds = {
        **dict.fromkeys(("logp", "teacher_logp"), (-torch.inf, 0)),
        **dict.fromkeys(("reverse_kl", "forward_kl"), (0, torch.inf)),
        **dict.fromkeys(("entropy", "teacher_entropy"), (0, log(shared))),
        "unlikely_mass": (1e-6, 1),  # of no token all or none
    }
    for name, (low, high) in bounds.items():
        assert low <= min(tokens[name]) <= max(tokens[name]) <= high, name


def test_the_sums_of_a_file_follow_from_a_file_of_tokens(models, tmp_path):
    """Bit for bit, from what was read again."""
    student, teacher = models
    files = {
        "tokens": {OWN: token_columns(student, teacher, SAMPLES, 0)},
        "sums": {OWN: answer_columns(token_columns(student, teacher, SAMPLES, 0))},
    }
    for name, sets in files.items():
        write_pairs(tmp_path / name, sets)
    tokens, sums = (read_pairs(tmp_path / name) for name in files)
    assert tokens == files["tokens"]
    assert {OWN: answer_columns(tokens[OWN])} == sums
    assert pairs_digest(sums) == pairs_digest(files["sums"])


def test_answers_to_one_problem_are_one_draw_of_an_interval(sets):
    found = teacher_quantity("kl_to_teacher", sets, at_start=False)
    sums, tokens = (torch.tensor(sets[OWN][name]) for name in ("reverse_kl", "tokens"))
    problems = [[0, 1], [2]]
    above, below = ([[x[row] for row in rows] for rows in problems] for x in (sums, tokens))
    expected = ratio_of_sums(*([torch.tensor(part) for part in x] for x in (above, below)))
    assert found.n == 2
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-5)


def test_the_start_has_its_own_samples(sets):
    for name in TEACHER_QUANTITIES:
        if name != "share_gone":
            assert values(sets, name, at_start=True) != values(sets, name)
    other = {**sets, OWN: sets[START]}
    assert values(other, "kl_to_teacher") == values(sets, "kl_to_teacher", at_start=True)
    assert values(other, "kl_to_teacher/gone") == values(sets, "kl_to_teacher/gone")


def test_a_file_gives_every_quantity_again(sets, tmp_path):
    write_pairs(tmp_path / "tokens.parquet", sets)
    read = read_pairs(tmp_path / "tokens.parquet")
    for at_start in (False, True):
        again, before = (derive(x, TEACHER_QUANTITIES, at_start=at_start) for x in (read, sets))
        for name in TEACHER_QUANTITIES:
            assert again[name] == pytest.approx(before[name])


def test_a_quantity_of_tokens_that_no_answer_has_is_left_out_and_said(sets, capsys):
    right = {**sets[OWN], "gone_tokens": [0] * 3, "reverse_kl_gone": [0.0] * 3}
    with pytest.raises(NotMeasured, match="none of 3 samples has such a token"):
        values({**sets, START_SAMPLES: right}, "kl_to_teacher/gone")
    found = derive({**sets, START_SAMPLES: right}, TEACHER_QUANTITIES)
    assert {*TEACHER_QUANTITIES} - {*found} == {"kl_to_teacher/gone"}
    assert "not measured: kl_to_teacher/gone: none of 3 samples has" in capsys.readouterr().err


def test_the_family_names_every_quantity():
    assert {*Distillation.teacher_quantities} == {*TEACHER_QUANTITIES}
    assert {*OF_STEPS} < {*TEACHER_QUANTITIES}


def test_the_note_of_a_table_explains_every_quantity():
    subject, (note,) = subject_and_notes([*TEACHER_QUANTITIES])
    assert "beside the teacher" in subject
    names = {part for name in TEACHER_QUANTITIES for part in name.split("/")}
    assert {name for name in names if name not in note} == set()
