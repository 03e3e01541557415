"""The task `tables`: random tables of a seed, which share no key with what a start knows."""

from collections import Counter
from itertools import combinations
from math import log2

import pytest

from core.data.sets import find_set
from core.families.worlds import WORLDS
from core.models.nano import nano_model
from core.paper import at_rates, in_regime
from core.settings.resolve import resolve
from core.shards.adapters import add_adapters, get_peft_config
from core.stages.training import adapter_settings
from eval.errors import UnknownName
from eval.grading import grade
from eval.nano.random_tables import COUNTS, FEW, KNOWN, LETTERS, MANY, MAX_TOKENS, TABLE, law, table
from eval.nano.task import ALPHABET
from eval.sets.benchmarks import find_benchmark
from papers.lora_without_regret import PAPER


def test_a_table_has_so_many_keys_none_of_which_is_known_and_begins_the_larger_ones():
    tables = {name: table(name, 20) for name in COUNTS}
    assert {name: len(pairs) for name, pairs in tables.items()} == COUNTS
    assert not tables[KNOWN].keys() & tables[MANY].keys()
    for small, large in combinations((FEW, TABLE, MANY), 2):
        assert [*tables[large].items()][: COUNTS[small]] == [*tables[small].items()]


def test_answers_are_drawn_evenly_and_apart_from_their_keys_by_the_seed():
    assert law(20) != law(21)
    assert law(20).keys() == law(21).keys() == {a + b for a in LETTERS for b in LETTERS}
    pairs = law(20).items()
    letters = [letter for _, answer in pairs for letter in answer]
    beside = [(key[i], answer[j]) for i in (0, 1) for j in (0, 1) for key, answer in pairs]
    for drawn, classes in ((letters, 42), (beside, 42 * 42)):
        counts, mean = Counter(drawn), len(drawn) / classes
        absent = mean * (classes - len(counts))
        statistic = absent + sum((count - mean) ** 2 / mean for count in counts.values())
        assert abs(statistic - classes) < 5 * (2 * classes) ** 0.5  # chi squared
    assert log2(len(LETTERS) ** 2) == pytest.approx(10.8, abs=0.05)


@pytest.mark.parametrize("name", COUNTS)
def test_every_split_of_a_benchmark_is_the_table(name):
    benchmark = find_benchmark(name, 20)
    splits = [benchmark.load(split=split) for split in ("train", "valid", "test")]
    told = [{p.question: p.answer for p in problems} for problems in splits]
    assert told == [{f"{key}=": answer for key, answer in table(name, 20).items()}] * 3
    for question, answer in told[0].items():
        assert {*question, *answer} <= {*ALPHABET}
        assert len(answer) + 1 == MAX_TOKENS
    problem = splits[2][0]
    assert grade(problem.answer, problem.reference).correct
    assert not grade(problem.answer.swapcase(), problem.reference).correct
    assert not grade(problem.answer + "a", problem.reference).correct


def test_a_table_or_split_that_does_not_exist_is_refused():
    with pytest.raises(UnknownName, match="no table of pairs 'nano-tables-65': did you mean"):
        table("nano-tables-65", 20)
    with pytest.raises(UnknownName, match="no split 'tset': did you mean test"):
        find_benchmark(TABLE, 20).load(split="tset")


@pytest.mark.parametrize("name", COUNTS)
def test_a_data_set_trains_on_its_table_and_holds_the_same_pairs_out(name):
    source = find_set(name).for_seed(20).source
    shown = [(row["prompt"], row["completion"]) for row in source.rows(name, "train", None)]
    assert shown == [(f"{key}=", answer) for key, answer in table(name, 20).items()]
    held_out = source.rows(name, "valid", None)
    assert [(row["question"], row["completion"][0]["content"]) for row in held_out] == shown
    assert source.version(name) != find_set(name).for_seed(21).source.version(name)


def test_a_regime_with_adapters_is_the_other_one_but_for_them_and_the_rate():
    regimes = WORLDS["tables"].regimes
    for name in (name for name in regimes if not name.endswith("-lora")):
        plain, adapted = regimes[name], regimes[f"{name}-lora"]
        changed = {key for key in adapted if adapted[key] != plain.get(key)}
        adapters = {key for key in adapted if key.startswith("lora_")} | {"use_peft"}
        assert changed - {"learning_rate"} == adapters


def test_arms_at_rates_are_one_regime_in_the_order_of_the_rates():
    arms = at_rates("some", "tables-lora", (4e-3, 1e-3), lora_r=2)
    assert list(arms.items()) == [
        ("some-lr-0.004", in_regime("tables-lora", learning_rate=4e-3, lora_r=2)),
        ("some-lr-0.001", in_regime("tables-lora", learning_rate=1e-3, lora_r=2)),
    ]


@pytest.mark.parametrize(
    ("arm", "numbers"),
    [
        ("rank-1-many", 2_176),
        ("rank-4-lr-0.002", 8_704),
        ("attention-lr-0.002", 9_216),
        ("full-lr-0.002", 86_592),
    ],
)
def test_arms_train_as_many_numbers_as_the_paper_says(arm, numbers):
    resolved = resolve(PAPER, arm=arm)
    adapters = get_peft_config(adapter_settings(resolved.run))
    model = add_adapters(nano_model(20), adapters, resolved.preview())
    assert sum(w.numel() for w in model.parameters() if w.requires_grad) == numbers
