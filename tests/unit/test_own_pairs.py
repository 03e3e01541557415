"""Pairs of a model's own answers, and the quantities of pairs under a policy and its start."""

import json
from dataclasses import replace
from math import exp, log1p
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.collect.own_pairs import (
    chosen_answers,
    flip,
    labelled_answers,
    pair_row,
    pair_rows,
    shuffle_rejected,
)
from core.data.load import load_training_data
from core.data.pairs import encode_answers
from core.families.family import SEEN, Making
from core.families.table import ROWS, find_family
from core.laws.preference_optima import bandit, bias_under_flips, stationary_chosen
from core.models.load import load_policy, load_tokenizer
from core.preference.pair_quantities import (
    OF_GOLD,
    PAIR_QUANTITIES,
    QUANTILE_GAP,
    MovedPairs,
    least_quantile_gap,
    pair_quantity,
)
from core.preference.pair_sums import PairSums, pair_sums
from core.preparations.own_labels import OwnLabelsConfig
from core.preparations.own_pairs import PAIRINGS, Answer, OwnPairsConfig
from core.records.pair_files import read_run_pairs
from core.records.places import stored_file
from core.rewards import Accuracy
from core.run.order import run_order
from core.run.request import Order
from core.samplers.policy import PolicySampler
from core.settings.refusals import check_run
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.verdicts.derived_pairs import pair_problems
from eval.errors import BadValue
from papers.cdpo import PAPER as CDPO
from papers.dpo import PAPER as DPO
from papers.robust_dpo import PAPER

ANSWERS = st.lists(
    st.builds(
        Answer,
        text=st.text(max_size=3),
        tokens=st.integers(1, 6),
        reward=st.sampled_from([0.0, 0.5, 1.0]),
    ),
    min_size=1,
    max_size=8,
)
SHARE = 0.3


@given(ANSWERS)
def test_a_pair_by_reward_has_the_extremes_and_none_is_made_of_equal_rewards(answers):
    rewards = [answer.reward for answer in answers]
    pair = PAIRINGS["reward"].choose(answers)
    assert (pair is None) == (len(set(rewards)) == 1)
    if pair is not None:
        assert [answer.reward for answer in pair] == [max(rewards), min(rewards)]
        assert answers.index(pair[0]) == rewards.index(max(rewards))


@given(ANSWERS)
def test_a_pair_by_length_is_of_answers_that_are_equally_good(answers):
    highest = max(answer.reward for answer in answers)
    lengths = {answer.tokens for answer in answers if answer.reward == highest}
    pair = PAIRINGS["length"].choose(answers)
    assert (pair is None) == (highest == 0 or len(lengths) == 1)
    if pair is not None:
        assert [answer.reward for answer in pair] == [highest] * 2
        assert [answer.tokens for answer in pair] == [max(lengths), min(lengths)]


@given(ANSWERS, st.sampled_from([*PAIRINGS]))
def test_a_gold_answer_is_a_third_text_as_good_as_the_better_one(answers, pair_by):
    pair = chosen_answers(answers, pair_by, with_gold=False)
    triple = chosen_answers(answers, pair_by, with_gold=True)
    assert pair == (PAIRINGS[pair_by].choose(answers) or ())
    texts = [answer.text for answer in pair]
    others = [a for a in answers if pair and a.text not in texts and a.reward >= pair[0].reward]
    assert triple == ((*pair, others[0]) if others else ())


def config(**changes):
    quiet = {"output_dir": "unused", "use_cpu": True, "bf16": False, "report_to": "none"}
    short = {"num_prompts": 24, "num_generations": 6, "max_completion_length": 64}
    return OwnPairsConfig(**quiet | short | changes)


@pytest.fixture(scope="module")
def policy():
    return PolicySampler(load_policy("pocket-instruct"), load_tokenizer("pocket-instruct"))


@pytest.fixture(scope="module")
def prompts():
    return list(load_training_data("pocket"))


def grades(rows, column):
    return Accuracy()(
        completions=[row[column] for row in rows],
        answer=[row["answer"] for row in rows],
        language=[row["language"] for row in rows],
    )


def test_the_better_answer_is_chosen_but_in_the_share_that_is_flipped(policy, prompts):
    rows = pair_rows(policy, config(), (Accuracy(),), prompts)
    assert len({row["id"] for row in rows}) == len(rows) > 5
    assert set(grades(rows, "chosen")) == {1.0}
    assert set(grades(rows, "rejected")) == {0.0}
    noisy = pair_rows(policy, config(flipped_share=SHARE), (Accuracy(),), prompts)
    flipped = [row for row in noisy if row["flipped"]]
    assert len(flipped) == round(SHARE * len(rows))
    assert set(grades(flipped, "chosen")) == {0.0}
    turned = [
        row | {"chosen": row["rejected"], "rejected": row["chosen"], "flipped": False}
        if row["flipped"]
        else row
        for row in noisy
    ]
    assert turned == rows


@given(ANSWERS)
def test_rates_of_winning_are_those_of_games_against_every_sample(answers):
    pair = PAIRINGS["reward"].choose(answers)
    if pair is None:
        return
    row = pair_row({"prompt": "?"}, pair, answers)
    for name, answer in zip(("chosen", "rejected"), pair, strict=True):
        rewards = [sample.reward for sample in answers]
        games = [1.0 if answer.reward > r else 0.5 * (answer.reward == r) for r in rewards]
        assert row[f"{name}_win_rate"] == pytest.approx(sum(games) / len(games))
    assert row["chosen_win_rate"] > row["rejected_win_rate"]
    turned = flip(row)
    assert turned["flipped"]
    assert turned["chosen_win_rate"] == row["rejected_win_rate"]
    assert flip(turned) | {"flipped": False} == row
    assert "chosen_win_rate" not in pair_row({"prompt": "?"}, pair, ())


@given(st.integers(2, 30), st.integers(0, 99))
def test_shuffled_rejected_answers_are_those_of_another_prompt_each_once(count, seed):
    rows = [{"prompt": f"{n}?", "chosen": f"{n}", "rejected": f"-{n}"} for n in range(count)]
    shuffled = shuffle_rejected(rows, Random(seed))
    assert [row["chosen"] for row in shuffled] == [row["chosen"] for row in rows]
    assert sorted(row["rejected"] for row in shuffled) == sorted(row["rejected"] for row in rows)
    for row in shuffled:
        assert row["rejected_prompt"] == f"{row['rejected'][1:]}?" != row["prompt"]


@given(st.integers(1, 30), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.integers(0, 99))
def test_labelled_answers_are_all_rejected_ones_and_a_share_of_the_chosen(count, share, seed):
    pairs = [
        {"prompt": f"{n}?", "chosen": f"{n}", "rejected": "-" * n, "flipped": False, "answer": n}
        for n in range(count)
    ]
    rows = labelled_answers(pairs, share, Random(seed))
    columns = {"prompt", "answer", "completion", "label"}
    assert all(row.keys() == columns for row in rows)
    by_label = {label: [r for r in rows if r["label"] is label] for label in (True, False)}
    assert [row["completion"] for row in by_label[False]] == ["-" * n for n in range(1, count)]
    assert len({row["completion"] for row in by_label[True]}) == round(share * count)
    for row in by_label[True]:
        assert row["prompt"] == f"{row['completion']}?" == f"{row['answer']}?"


def test_a_family_labels_the_answers_of_pairs(policy, prompts):
    plain = {"output_dir": "unused", "use_cpu": True, "bf16": False, "report_to": "none"}
    sampled = {"num_prompts": 24, "num_generations": 6, "max_completion_length": 64}
    config = OwnLabelsConfig(**plain, **sampled, desirable_share=0.5)
    making = Making(config=config, sampler=policy, rewards=(Accuracy(),), rows=prompts)
    rows = find_family("own-labels").rows(making)
    assert grades(rows, "completion") == [float(row["label"]) for row in rows]
    desirable = sum(row["label"] for row in rows)
    assert desirable == round(0.5 * (len(rows) - desirable)) > 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"desirable_share": 1.5}, "desirable_share=1.5: expected a share"),
        ({"desirable_share": -0.1}, "desirable_share"),
        ({"win_rates": True}, "win_rates=True: nothing is trained here"),
        ({"shuffles_rejected": True}, "shuffles_rejected=True"),
    ],
)
def test_settings_without_effect_on_labelled_answers_are_refused(changes, told):
    with pytest.raises(BadValue, match=told):
        OwnLabelsConfig(output_dir="unused", use_cpu=True, bf16=False, report_to="none", **changes)


def test_a_rejected_answer_is_read_after_its_own_prompt(policy):
    row = {"prompt": "1 + 1 =", "chosen": " 2", "rejected": " 5", "rejected_prompt": "2 + 2 ="}
    both, alone = (
        encode_answers({**row, "prompt": prompt}, policy.tokenizer, None, "keep_start")
        for prompt in (row["prompt"], row["rejected_prompt"])
    )
    assert both["rejected_prompt_ids"] == alone["rejected_prompt_ids"] != both["chosen_prompt_ids"]
    assert both["rejected_ids"] == alone["rejected_ids"]


def test_triples_have_another_right_answer(policy, prompts):
    many = config(num_prompts=80, num_generations=8, flipped_share=SHARE)
    rows = pair_rows(policy, many, (Accuracy(),), prompts, with_gold=True)
    assert rows
    assert set(grades(rows, "reference")) == {1.0}
    for row in rows:
        assert row["reference"] not in (row["chosen"], row["rejected"])
        assert grades([row], "chosen") == [0.0 if row["flipped"] else 1.0]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"flipped_share": 1.5}, "flipped_share=1.5"),
        ({"flipped_share": -0.1}, "flipped_share"),
        ({"pair_by": "taste"}, "one of 'reward', 'length'"),
        ({"num_generations": 1}, "num_generations"),
    ],
)
def test_settings_that_make_no_pairs_are_refused(changes, told):
    with pytest.raises(BadValue, match=told):
        config(**changes)


def alike(completions, **_):
    return [0.5 for _ in completions]


def test_answers_that_are_all_as_good_make_no_pair(policy, prompts):
    with pytest.raises(BadValue, match="pair_by=reward"):
        pair_rows(
            policy,
            config(num_prompts=2),
            (lambda completions, **_: [0.0] * len(completions),),
            prompts,
        )


SUMS = st.lists(st.floats(-9, 0), min_size=3, max_size=3).map(
    lambda values: torch.tensor(values, dtype=torch.float64)
)


LOG_WEIGHTS = torch.tensor([-4.0, 0.5, -2.5])


def sums(chosen, rejected, gold=None):
    lengths = torch.tensor([2.0, 3.0, 4.0]), torch.tensor([4.0, 3.0, 2.0])
    return PairSums(chosen, rejected, *lengths, LOG_WEIGHTS, gold)


def excess(better, worse, shift):
    """The mean loss of two classifications minus that of DPO, in plain numbers."""
    pairs = [(a - shift, b - shift) for a, b in zip(better, worse, strict=True)]
    losses = [log1p(exp(-a)) + log1p(exp(b)) - log1p(exp(b - a)) for a, b in pairs]
    return sum(losses) / len(losses)


@given(SUMS, SUMS, SUMS, SUMS, SUMS)
def test_quantities_of_pairs_by_their_definitions(chosen, rejected, ref_chosen, ref_rejected, gold):
    flipped = torch.tensor([1.0, 0.0, 1.0])
    start = sums(ref_chosen, ref_rejected, torch.zeros(3))
    pairs = MovedPairs(sums(chosen, rejected, gold), start, flipped)
    better, worse = (chosen - ref_chosen).tolist(), (rejected - ref_rejected).tolist()
    order = [0.5 if a == b else float(a > b) for a, b in zip(better, worse, strict=True)]
    lengths = zip([2, 3, 4], [4, 3, 2], strict=True)
    per_token = [
        a / m - b / n
        for (m, n), a, b in zip(lengths, chosen.tolist(), rejected.tolist(), strict=True)
    ]
    expected = {
        "pair_accuracy": sum(order) / 3,
        "likelihood_accuracy": sum(0.5 if x == 0 else float(x > 0) for x in per_token) / 3,
        "pair_margin": sum(a - b for a, b in zip(better, worse, strict=True)) / 3,
        "log_ratio/chosen": sum(better) / 3,
        "log_ratio/rejected": sum(worse) / 3,
        "log_ratio/gold": gold.mean().item(),
        "chosen_fell": sum(a < 0 for a in better) / 3,
        "other_answers": 1 - (chosen.exp() + rejected.exp()).mean().item(),
        "flipped_resisted": (order[0] + order[2]) / 2,
        "start_log_weight": -2.0,
        "start_log_weight_spread": (2.0 + 2.5 + 0.5) / 3,
        "excess_loss": excess(better, worse, 0.0),
        "excess_loss/shifted": excess(better, worse, (sum(better) + sum(worse)) / 6),
    }
    assert expected.keys() == PAIR_QUANTITIES.keys()
    for name, value in expected.items():
        assert pair_quantity(name, pairs).value == pytest.approx(value, abs=1e-12)


@given(SUMS, st.floats(-3, 3), st.randoms())
def test_quantiles_of_a_shifted_sample_are_apart_by_the_shift(ratios, shift, random):
    """Whichever chosen answer belongs to which rejected one."""
    order = random.sample(range(3), 3)
    gap = least_quantile_gap(ratios + shift, ratios[order])
    assert gap.value == pytest.approx(shift, abs=1e-9)
    assert gap.low <= gap.value + 1e-9
    wider = ratios.mean() + 2 * (ratios - ratios.mean())
    assert least_quantile_gap(wider, ratios).value <= 1e-9


def test_a_quantity_of_flipped_pairs_needs_some():
    values = torch.zeros(3)
    with pytest.raises(BadValue, match="none of 3 pairs is flipped"):
        pair_quantity(
            "flipped_resisted", MovedPairs(sums(values, values), sums(values, values), values)
        )


def test_a_quantity_of_gold_answers_needs_them():
    values = torch.zeros(3)
    with pytest.raises(BadValue, match="have no gold answers"):
        pair_quantity(OF_GOLD, MovedPairs(sums(values, values), sums(values, values), values))


def test_sums_of_a_model_are_those_of_its_softmax_and_flipped_pairs_are_turned_round(policy):
    prompt = [{"role": "user", "content": "2 + 2"}]
    words = [[{"role": "assistant", "content": text}] for text in ("4", "5 + 1")]
    row = {"prompt": prompt, "chosen": words[0], "rejected": words[1]}
    model, tokenizer = policy.model.eval(), policy.tokenizer
    plain = pair_sums(model, tokenizer, [row])
    turned = pair_sums(
        model, tokenizer, [{**row, "chosen": words[1], "rejected": words[0], "flipped": True}]
    )
    assert [x.tolist() for x in plain[:4]] == [x.tolist() for x in turned[:4]]
    third = [{"role": "assistant", "content": "3 + 1"}]
    golden = {**row, "reference": third, "flipped": True}  # which a gold answer never is
    expected = pair_sums(model, tokenizer, [{**row, "rejected": third}]).rejected
    gold = pair_sums(model, tokenizer, [golden]).gold
    assert gold.item() == pytest.approx(expected.item())
    log_weight = 0.0
    for answer, total, count in zip(words, plain[:2], plain[2:4], strict=True):
        start = tokenizer.apply_chat_template(prompt, add_generation_prompt=True)["input_ids"]
        whole = tokenizer.apply_chat_template([*prompt, *answer])["input_ids"]
        logits = model(torch.tensor([whole])).logits[0, len(start) - 1 : -1].double()
        targets = torch.tensor(whole[len(start) :])
        logs = logits.log_softmax(-1)
        logps = logs.gather(-1, targets.unsqueeze(-1))
        assert count.item() == len(targets)
        assert total.item() == pytest.approx(logps.sum().item(), abs=1e-4)
        log_weight += (logps[:, 0] - logs.exp().square().sum(-1).log()).mean().item()
    assert plain.log_weight.item() == pytest.approx(log_weight, abs=1e-4)


@pytest.mark.parametrize(
    "family",
    [f for f in ROWS if f.pair_quantities and not f.gives_rewards],
    ids=lambda f: f.name,
)
def test_families_declare_all_quantities_of_pairs(family):
    gold = {OF_GOLD} if "reference" in family.columns else set()
    assert set(family.pair_quantities) - gold == {*PAIR_QUANTITIES, QUANTILE_GAP} - {OF_GOLD}
    assert gold <= set(family.pair_quantities)


def test_a_chain_measures_what_claims_read_of_held_out_pairs_and_of_those_trained_on():
    chain = Chain(resolve(PAPER, arm="robust"), seed=20)
    subjects = [stage.subject for stage in chain.probabilities if stage.name == "pairs"]
    assert subjects == [f"flipped_resisted{SEEN}"] * 2
    held_out = [stage.subject for stage in Chain(resolve(CDPO), seed=20).probabilities]
    assert held_out == ["pair_accuracy"] * 2


def test_targets_of_losses_and_means_over_flips():
    assert stationary_chosen("cdpo", label_smoothing=0.2) == pytest.approx(torch.tensor(4.0).log())
    assert stationary_chosen("ipo_sum", beta=0.1) == pytest.approx(0.5)
    assert stationary_chosen("sigmoid") == float("inf")
    assert bias_under_flips("robust", chance=0.3) == pytest.approx([0.0] * 5, abs=1e-12)
    assert max(map(abs, bias_under_flips("sigmoid", chance=0.3))) > 0.01


def test_a_policy_of_two_actions_ends_where_the_squared_loss_has_its_target():
    probabilities = bandit("ipo_sum", tau=2.0, pairs=((0, 1),), actions=2)
    assert probabilities[0].item() == pytest.approx(torch.tensor(0.25).sigmoid().item(), abs=1e-6)


TEXTS = [(f"What is {n} + 1?", f"It is {n + 1}.", f"It is {n}.") for n in range(20)]
FORMS = {
    "with prompts": [{"prompt": p, "chosen": c, "rejected": r} for p, c, r in TEXTS],
    "whole": [{"chosen": f"{p} {c}", "rejected": f"{p} {r}"} for p, c, r in TEXTS],
}
BRIEF = ("model=pocket-instruct", "max_steps=2", "eval_limit=4", "at_k_limit=1", "at_k_samples=2")


@pytest.mark.parametrize("form", FORMS)
def test_pairs_of_a_user_are_trained_on_and_held_out_without_answers(form, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    monkeypatch.setattr("core.stages.chain.ANSWER_TOKENS", 24)
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in FORMS[form]))
    (record,) = run_order(Order(paper=DPO, arguments=(f"data={path}", *BRIEF))).runs
    assert record["data"]["rows"] == len(TEXTS)
    assert record["probabilities"]["pair_accuracy"]["n"] == len(TEXTS) // 5
    assert record["probabilities"]["kl_to_start"]["before"] == 0.0
    (held_out,) = read_run_pairs(record).values()
    assert len(held_out["flipped"]) == len(TEXTS) // 5
    assert stored_file(record["pairs"]).stat().st_size < 8000
    assert list(pair_problems(record)) == []


@pytest.mark.long
@pytest.mark.parametrize("settings", [(), ("loss_type=nca_pair", "learning_rate=2e-4")])
def test_revised_solutions_are_trained_on_and_their_pairs_held_out(settings, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    brief = (*BRIEF[1:], "heldout_problems=40", *settings)
    (record,) = run_order(Order(paper=DPO, arguments=("regime=revised", *brief))).runs
    assert record["data"]["name"] == "pocket-revised"
    (held_out,) = read_run_pairs(record).values()
    assert len(held_out["flipped"]) == record["probabilities"]["pair_accuracy"]["n"] == 40
    assert list(pair_problems(record)) == []


def of_family(family, **changes):
    """A paper of another family of pairs, on the data and the model of DPO's."""
    arm = {"family": {}}
    return replace(
        DPO, slug=family, family=family, config=(), arms=arm, claims=(), profiles={}, **changes
    )


def test_triples_of_a_user_are_trained_on_and_held_out(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    monkeypatch.setattr("core.stages.chain.ANSWER_TOKENS", 24)
    path = tmp_path / "triples.jsonl"
    rows = [{**row, "reference": f"{row['chosen']} Yes."} for row in FORMS["with prompts"]]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    arguments = (f"data={path}", "loss_type=tpo-l", *BRIEF)
    (record,) = run_order(Order(paper=of_family("tpo"), arguments=arguments)).runs
    assert record["data"]["rows"] == len(TEXTS)
    assert len(record["curves"]["nll_loss"]) == 2
    path.write_text("\n".join(json.dumps(row) for row in FORMS["with prompts"]))
    with pytest.raises(BadValue, match="has no column reference, which tpo trains on"):
        run_order(Order(paper=of_family("tpo"), arguments=arguments))


@pytest.mark.parametrize(
    ("family", "data"), [("cpo", "pairs"), ("orpo", "pairs"), ("tpo", "triples")]
)
def test_families_of_pairs_share_regimes_and_their_starts(family, data):
    regime = f"regime=choice-{data}"
    own = Chain(resolve(of_family(family), arguments=(regime,)), seed=20)
    dpo = Chain(resolve(DPO, arguments=("regime=choice-pairs",)), seed=20)
    assert own.start.key == dpo.start.key
    assert (own.resolved.preview().max_steps, own.resolved.preview().learning_rate) == (96, 2e-4)
    assert own.train.key != dpo.train.key
    with pytest.raises(BadValue, match="has no column reference"):
        check_run(resolve(of_family("tpo"), arguments=("regime=choice-pairs",)))
