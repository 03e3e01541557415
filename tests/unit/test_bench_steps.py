"""The workloads of steps: pairs, labelled and chosen answers, and both sides of each."""

import pytest

from core.bench.large import VOCABULARY
from core.bench.large_steps import (
    CLAIMED,
    LONGEST,
    PAIRS,
    PROMPT,
    SHORTEST,
    STEPS,
    build,
    chosen_answers,
    word_pairs,
)
from core.bench.large_steps import WORKLOADS as LARGE
from core.bench.pocket_steps import (
    WORKLOADS,
    labelled_answers,
    lengths,
    pocket_pairs,
    prompts_alone,
)
from core.bench.table import BENCHES
from core.bench.trainers import OURS, trl_side
from core.bench.words import word_tokenizer
from core.data.pairs import encode_answers


def test_a_rejected_answer_solves_the_next_problem_and_labels_follow_the_pairs():
    pairs = pocket_pairs(4).to_list()
    assert [pair["rejected"] for pair in pairs[:-1]] == [pair["chosen"] for pair in pairs[1:]]
    assert len({str(pair["prompt"]) for pair in pairs}) == 4
    rows = labelled_answers(pocket_pairs(4)).to_list()
    assert [row["label"] for row in rows] == [True, False] * 4
    assert [row["completion"] for row in rows[::2]] == [pair["chosen"] for pair in pairs]
    assert [row["completion"] for row in rows[1::2]] == [pair["rejected"] for pair in pairs]
    assert prompts_alone(pocket_pairs(4)).to_list() == [{"prompt": row["prompt"]} for row in pairs]
    assert [row["completion"] for row in chosen_answers(pocket_pairs(4))] == [
        pair["chosen"] for pair in pairs
    ]
    assert lengths([pair["chosen"] for pair in pairs]) != [1.0] * 4


def test_word_pairs_have_prompts_of_one_length_and_answers_between_the_bounds():
    tokenizer, lengths = word_tokenizer(VOCABULARY), set()
    for row in word_pairs(60):
        ids = encode_answers(row, tokenizer, None, "keep_start")
        for name in ("chosen", "rejected"):
            assert len(ids[f"{name}_prompt_ids"]) == PROMPT
            assert SHORTEST < len(ids[f"{name}_ids"]) <= LONGEST  # with the end
            assert tokenizer.unk_token_id not in ids[f"{name}_ids"]
            lengths.add(len(ids[f"{name}_ids"]))
    assert len(lengths) > 60
    assert word_pairs(3).to_list() == word_pairs(3).to_list()


@pytest.mark.parametrize("trainer", OURS)
def test_both_sides_have_the_same_names(trainer):
    ours, theirs = OURS[trainer], trl_side(trainer)
    assert ours.trainer.__name__ == theirs.trainer.__name__
    assert ours.config.__name__ == theirs.config.__name__
    assert ours.trainer is not theirs.trainer


def test_every_workload_has_a_trainer_and_a_requirement():
    assert {w.trainer for w in (*WORKLOADS.values(), *LARGE.values())} == set(OURS)
    assert all(workload.at_least > 1 for workload in WORKLOADS.values())
    benches = {workload.bench for workload in (*WORKLOADS.values(), *LARGE.values())}
    assert benches - {CLAIMED} < BENCHES.keys()


@pytest.mark.parametrize("name", LARGE)
def test_the_rows_of_a_larger_workload_are_those_that_its_trainer_reads(name, tmp_path):
    trainer = build(LARGE[name], "ours", str(tmp_path))
    assert len(trainer.train_dataset) == PAIRS * STEPS
