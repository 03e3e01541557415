"""Trainers of completions that are sampled and compared while training."""

from dataclasses import replace
from math import log, nan

import pytest
import torch
from datasets import Dataset
from grpo_runs import digits, double, logs, prompts, weights
from online_runs import KINDS, played, recording

from core.errors import RewardError
from core.forward import micro_pieces
from core.forward.logps import token_logps
from core.losses.paired_answers import Answers
from core.preference.online_trainer import alternate
from core.preference.pair_rewards import MissingEnd
from core.rollout.native.mixture import geometric_mixture
from eval.errors import BadValue
from eval.judging.judges import Cyclic, preference

METRICS = {
    "OnlineDPO": {
        *("objective/kl", "objective/entropy", "objective/non_score_reward"),
        *("objective/rlhf_reward", "objective/scores", "objective/scores_margin"),
        *("val/contain_eos_token", "rewards/chosen", "rewards/rejected", "rewards/margins"),
        *("rewards/accuracies", "logps/chosen", "logps/rejected", "beta"),
    },
    "XPO": {
        *("loss/dpo", "loss/xpo", "objective/kl", "objective/entropy", "objective/model_scores"),
        *("objective/ref_scores", "objective/scores_margin", "val/model_contain_eos_token"),
        *("val/ref_contain_eos_token", "rewards/chosen", "rewards/rejected", "rewards/margins"),
        *("rewards/accuracies", "logps/chosen", "logps/rejected", "alpha", "beta"),
    },
    "NashMD": {
        *("loss/kl", "loss/score", "objective/entropy", "rewards/probabilities"),
        *("rewards/accuracies", "rewards/margins", "rewards/chosen", "rewards/rejected"),
        *("logps/chosen", "logps/rejected", "val/model_contain_eos_token"),
        *("val/ref_contain_eos_token", "beta", "mixture_coef"),
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_training_moves_the_policy_and_logs_what_trl_logs(kind, make_online):
    trainer = make_online(kind, gradient_accumulation_steps=2)
    start = weights(trainer.model).clone()
    trainer.train()
    assert (weights(trainer.model) - start).abs().max() > 1e-3
    rows = [row for row in trainer.state.log_history if "loss" in row]
    assert len(rows) == 3
    for row in rows:
        assert METRICS[kind] <= row.keys()
        assert 0 <= row["rewards/accuracies"] <= 1  # VeOmni#1130
    at_start = rows[0]["loss/kl" if kind == "NashMD" else "objective/kl"]
    assert at_start == pytest.approx(0, abs=1e-5)


SPLITS = {
    "in four micro-batches": {
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 4,
    },
    "two of a larger rollout": {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
    },
}


@pytest.mark.parametrize("split", [*SPLITS, "in pieces"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_split_changes_no_update(kind, split, make_online, build_llama, monkeypatch):
    """The loss is divided by the accumulation, and pairs stay whole."""
    whole_batch = {"per_device_train_batch_size": 8, "max_steps": 1, "optim": "sgd"}
    rollouts, settings = [], {"beta": 0.5, "optim": "sgd", "max_steps": 1}
    model = double(build_llama())
    whole = make_online(
        kind, model=model, trainer=recording(kind, rollouts), **settings | whole_batch
    )
    whole.train()
    if split == "in pieces":
        monkeypatch.setitem(micro_pieces.TOKENS, "cpu", 1)
    other = make_online(
        kind,
        model=double(build_llama()),
        trainer=played(kind, rollouts),
        **settings | SPLITS.get(split, whole_batch),
    )
    other.train()
    difference = (weights(whole.model) - weights(other.model)).abs().max()
    assert difference < 1e-8  # rotations are in single precision, and padding moves positions
    assert (weights(whole.model) - weights(double(build_llama()))).abs().max() > 1e-5
    for name in ("loss", "logps/chosen", "rewards/accuracies"):
        assert logs(other, name) == pytest.approx(logs(whole, name), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_no_metric(kind, make_online, build_llama):
    rollouts = []
    short = make_online(
        kind, model=double(build_llama()), trainer=recording(kind, rollouts), optim="sgd"
    )
    short.train()
    long = make_online(
        kind,
        model=double(build_llama()),
        trainer=played(kind, rollouts),
        pad_to_multiple_of=32,
        optim="sgd",
    )
    long.train()
    for name in METRICS[kind] | {"loss"}:
        assert logs(long, name) == pytest.approx(logs(short, name), rel=1e-5, abs=1e-6), name


def test_the_kl_is_the_mean_of_whole_completions(make_online, build_llama):
    rollouts = []
    trainer = make_online(trainer=recording("OnlineDPO", rollouts), ref_model=build_llama(seed=3))
    trainer.model.train()
    (batch,) = trainer.optimizer_step_batches([trainer_rows(trainer)])
    trainer.compute_loss(trainer.model, batch)
    ratios = [
        sum_of_logps(build_llama(), *ids) - sum_of_logps(build_llama(seed=3), *ids)
        for ids in zip(rollouts[0].prompt_ids, rollouts[0].completion_ids, strict=True)
    ]
    (kl,) = trainer._metrics["train"]["objective/kl"]
    assert kl == pytest.approx(sum(ratios) / len(ratios), rel=1e-4)


def trainer_rows(trainer):
    rows = trainer.train_dataset
    return [rows[i // 2] for i in range(2 * trainer.args.per_device_train_batch_size)]


@torch.no_grad()
def sum_of_logps(model, prompt, completion, temperature=1.0):
    logits = model.eval()(torch.tensor([[*prompt, *completion]])).logits[0, len(prompt) - 1 : -1]
    logps = (logits / temperature).log_softmax(-1)
    return logps[range(len(completion)), list(completion)].sum().item()


BY_EPOCH = {"OnlineDPO": "beta", "XPO": "alpha", "NashMD": "mixture_coef"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_has_a_value_for_each_epoch(kind, make_online):
    """TRL 1.16 raises in the second step."""
    name = BY_EPOCH[kind]
    given = {name: [0.25, 0.5], "max_steps": -1, "num_train_epochs": 3}
    trainer = make_online(kind, dataset=prompts(8), **given)
    trainer.train()
    assert logs(trainer, name) == pytest.approx([0.25, 0.25, *[0.5] * 4])


def test_without_a_bonus_xpo_is_online_dpo(make_online, build_llama):
    rollouts, trained = [], []
    for kind, trainer in (
        ("XPO", recording("XPO", rollouts)),
        ("OnlineDPO", None),
        ("XPO", None),
    ):
        alpha = {"alpha": 0.0 if trainer else 0.1} if kind == "XPO" else {}
        made = make_online(
            kind, model=double(build_llama()), trainer=trainer or played(kind, rollouts), **alpha
        )
        made.train()
        trained.append(made)
    without, dpo, bonus = (weights(made.model) for made in trained)
    assert torch.equal(without, dpo)
    assert (bonus - dpo).abs().max() > 1e-4
    assert trained[2].state.log_history[-2]["loss/xpo"] < -0.1


@pytest.mark.parametrize("kind", ["XPO", "NashMD"])
def test_the_second_completion_comes_from_another_model(kind, make_online, build_llama):
    reference, temperature = build_llama(seed=5), 0.7
    settings = {"mixture_coef": 0.25} if kind == "NashMD" else {}
    trainer = make_online(kind, ref_model=reference, temperature=temperature, **settings)
    rows = [{"role": "user", "content": "1+1="}]
    generated = trainer.generate([rows] * 6)
    policy = build_llama()
    for place, (prompt, completion, logps) in enumerate(
        zip(generated.prompt_ids, generated.completion_ids, generated.logps, strict=True)
    ):
        ids = torch.tensor([[*prompt, *completion]])
        with torch.no_grad():
            logits, other = (
                model.eval()(ids).logits[0, len(prompt) - 1 : -1] for model in (policy, reference)
            )
        second = other if kind == "XPO" else geometric_mixture(logits, other, 0.25)
        chosen = second if place % 2 else logits
        expected = (chosen / temperature).log_softmax(-1)[range(len(completion)), completion]
        assert logps == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.parametrize(("share", "source"), [(0.0, "policy"), (1.0, "reference")])
def test_a_mixture_with_all_of_one_model_is_this_model(share, source, make_online, build_llama):
    trainer = make_online("NashMD", ref_model=build_llama(seed=5), mixture_coef=share)
    asked = [[{"role": "user", "content": f"{i}+1="}] for i in range(6)], list(range(6))
    mixed = trainer.sample_mixture(*asked)
    plain = trainer.sample_from(getattr(trainer, source)(), *asked)
    assert [list(ids) for ids in mixed.completion_ids] == [list(x) for x in plain.completion_ids]
    other = trainer.sample_from(
        trainer.reference() if source == "policy" else trainer.policy(), *asked
    )
    assert mixed.completion_ids != other.completion_ids


@pytest.mark.parametrize("accumulation", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_is_the_same_run(kind, accumulation, make_online):
    settings = {
        "max_steps": 5,
        "save_strategy": "steps",
        "save_steps": 2,
        "steps_per_generation": 3,  # a checkpoint in the middle of a rollout
        "gradient_accumulation_steps": accumulation,
        "per_device_train_batch_size": 2,
    }
    whole = make_online(kind, **settings)
    whole.train()
    resumed = make_online(kind, **settings)
    resumed.train(resume_from_checkpoint=f"{whole.args.output_dir}/checkpoint-2")
    assert torch.equal(weights(whole.model), weights(resumed.model))
    for name in ("loss", "reward", "num_tokens", "grad_norm", "rewards/margins"):
        assert logs(whole, name) == logs(resumed, name)


def test_the_penalty_looks_in_the_answer_alone(make_online, tiny_tokenizer):
    """An end token in the prompt switches it off in TRL 1.13's XPO and Nash-MD (trl#6805)."""
    texts = Dataset.from_dict({"prompt": ["<eos>1+1="] * 8})

    def equal(completions, **_):
        return [1.0] * len(completions)

    for kind in KINDS:
        trainer = make_online(
            kind,
            dataset=texts,
            reward_funcs=equal,
            missing_eos_penalty=0.75,
            max_new_tokens=1,
            max_steps=1,
        )
        assert trainer.eos_token_ids == [tiny_tokenizer.eos_token_id]
        rollouts = trainer.generate(["<eos>1+1="] * 8)
        has_end = [tiny_tokenizer.eos_token_id in ids for ids in rollouts.completion_ids]
        assert tiny_tokenizer.eos_token_id in rollouts.prompt_ids[0]
        trainer.model.train()
        scored = trainer.score([{"prompt": "<eos>1+1="}] * 8, rollouts)
        expected = [1.0 if found else 0.25 for found in has_end]
        assert trainer.totals(scored).tolist() == expected


def test_an_end_token_is_found_anywhere_in_the_answer():
    assert MissingEnd(frozenset({1, 9}))(completion_ids=[[3, 9], [9, 3], [3], []]) == [0, 0, -1, -1]


def test_preferences_of_rewards(make_online):
    """Equal rewards choose the first; a completion without a reward makes no pair."""
    given = torch.tensor([[2.0], [1.0], [1.0], [2.0], [1.0], [1.0], [nan], [2.0]])
    dpo, nash = (make_online(kind) for kind in ("OnlineDPO", "NashMD"))
    scored = replace(empty_scored(), rewards=given)
    assert dpo.advantages(scored).tolist() == [0.5, -0.5, -0.5, 0.5, 0.5, -0.5, 0, 0]
    half = 0.7310585786 - 0.5
    assert nash.advantages(scored).tolist() == pytest.approx([half, -half, -half, half, 0, 0, 0, 0])


def empty_scored():
    from core.losses.estimators import Scored

    return Scored(rewards=torch.zeros(2, 1), group=2, length=1)


@pytest.mark.parametrize("kind", ["OnlineDPO", "XPO"])
def test_skipped_pairs_of_equal_rewards_have_no_loss(kind, make_online):
    given = torch.tensor([[2.0], [1.0], [1.0], [1.0], [nan], [2.0]])
    scored, losses = replace(empty_scored(), rewards=given), {}
    for ties, half in (("first", 0.5), ("skipped", 0.0)):
        trainer = make_online(kind, reward_funcs=even, tied_pairs=ties, max_steps=1)
        assert trainer.advantages(scored).tolist() == [0.5, -0.5, half, -half, 0, 0]
        trainer.train()
        (losses[ties],) = logs(trainer, "loss")
    assert losses["first"] == pytest.approx(log(2), abs=1e-3)
    assert losses["skipped"] == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("kind", ["OnlineDPO", "XPO"])
def test_metrics_of_pairs_are_of_those_that_have_a_loss(kind, make_online):
    trainer = make_online(kind, tied_pairs="skipped", beta=0.5)
    answers = Answers(
        logps=-torch.arange(8.0).unsqueeze(1), ref_logps=torch.zeros(8, 1), mask=torch.ones(8, 1)
    )
    advantages = torch.tensor([0.5, -0.5, 0.0, 0.0, -0.5, 0.5, 0.0, 0.0])
    _, metrics = trainer.losses(answers, {"advantages": advantages, "scores": torch.zeros(8)})
    assert metrics["rewards/margins"].tolist() == [0.5, -0.5]
    assert metrics["logps/chosen"].tolist() == [0.0, -5.0]
    assert len(metrics["objective/kl"]) == 8


def even(completions, **_):
    """The same reward for all."""
    return [1.0] * len(completions)


def test_a_judge_compares_in_place_of_rewards(make_online):
    asked = []

    def judge(prompts, first, second, answer):
        asked.append((prompts, first, second, answer))
        return [0.75] * len(prompts)

    trainer = make_online("NashMD", judge=judge, max_steps=1)
    trainer.train()
    ((questions, first, second, answer),) = asked
    assert len(questions) == len(first) == len(second) == len(answer) == 4
    assert all(question.endswith("=") for question in questions)
    assert logs(trainer, "rewards/probabilities") == [pytest.approx(0.75)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_judge_prefers_is_learnt(kind, make_online):
    shares = []

    def more_digits(first, second, **_):
        own, others = digits(first), digits(second)
        shares.append(sum(own) / len(own))
        return [preference(*pair) for pair in zip(own, others, strict=True)]

    settings = {"max_steps": 30, "per_device_train_batch_size": 8, "beta": 0.01}
    make_online(kind, judge=more_digits, **settings).train()
    assert sum(shares[-5:]) > sum(shares[:5]) + 5 * 0.15


@pytest.mark.parametrize("chance", [nan, -0.1, 1.5, float("inf"), "no", None])
def test_a_judge_that_gives_no_chance_stops_with_its_row(chance, make_online):
    def judge(prompts, **_):
        return [0.5, chance, *[0.5] * (len(prompts) - 2)]

    with pytest.raises(RewardError, match=r"judge judge returned .* for pair 1 \('.*='\)"):
        make_online(judge=judge).train()


def test_a_judge_of_too_few_pairs_stops(make_online):
    with pytest.raises(RewardError, match="returned 1 chances for 4 pairs"):
        make_online(judge=lambda **_: [0.5]).train()


def test_a_log_probability_that_is_not_finite_stops_with_its_row(make_online):
    trainer = make_online()
    with torch.no_grad():
        trainer.model.lm_head.weight[7] = nan
    trainer.generate = lambda prompts: played_once(trainer, prompts)
    with pytest.raises(BadValue, match=r"log-probability of '.*' after '.*': nan under the policy"):
        trainer.train()


def played_once(trainer, rows):
    from core.collect.generation import Generated

    ids = trainer.tokenizer.apply_chat_template(rows, add_generation_prompt=True)["input_ids"]
    completions = [[7, 8, 1] for _ in rows]
    texts = [[{"role": "assistant", "content": "23"}] for _ in rows]
    return Generated(prompt_ids=ids, completion_ids=completions, completions=texts)


def test_only_the_end_of_a_long_prompt_is_read(make_online):
    trainer = make_online(max_length=12, max_new_tokens=4)
    trainer.model.train()
    long = alternate(*[replaced(trainer, length) for length in (3, 4)])
    batch = trainer.tensors(long)
    assert batch["prompt_mask"].sum(1).tolist() == [8, 8, 8, 8]
    assert batch["prompt_ids"][0].tolist() == list(range(12, 20))
    logps = token_logps(trainer.model, batch, 1.0).logps[1].sum().item()
    found = sum_of_logps(trainer.model, range(12, 20), [8, 8, 8, 8])
    assert logps == pytest.approx(found, rel=1e-5)


def replaced(trainer, length):
    one = played_once(trainer, [[{"role": "user", "content": "1"}]] * 2)
    prompt_ids, ids = [list(range(20))] * 2, [[8] * length] * 2
    return replace(one, prompt_ids=prompt_ids, completion_ids=ids, logps=[[0.0] * length] * 2)


def test_the_reference_is_the_model_without_its_adapters(make_online):
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
    trainer = make_online("XPO", peft_config=config, max_steps=1)
    trainer.train()
    assert abs(logs(trainer, "objective/kl")[0]) > 1e-3  # the adapters began elsewhere


REFUSED = {
    "beta": [{"beta": 0.0}, {"beta": -1.0}, {"beta": [0.1, 0.0]}, {"beta": "lots"}, {"beta": []}],
    "loss_type": [{"loss_type": "exo"}],
    "max_length": [{"max_length": 8}],
    "two names of one setting": [{"max_new_tokens": 8, "max_completion_length": 9}],
    "num_generations": [{"num_generations": 4}],
    "rollout_selection": [{"rollout_selection": "varied"}],
    "mask_truncated_completions": [{"mask_truncated_completions": True}],
    "missing_eos_penalty": [
        {"missing_eos_penalty": -1.0}, {"judge": Cyclic(), "missing_eos_penalty": 1.0}
    ],
    "reward_weights": [{"judge": Cyclic(), "reward_weights": [2.0]}],
    "judge": [{"judge": Cyclic(), "reward_funcs": len}, {"reward_funcs": None}, {"judge": "no"}],
}  # fmt: skip


@pytest.mark.parametrize(("name", "changes"), [(n, c) for n, rows in REFUSED.items() for c in rows])
def test_bad_settings_are_refused_before_loading(name, changes, make_online):
    with pytest.raises(BadValue, match=name):
        make_online(model="no-such-model", **changes)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("XPO", {"alpha": -0.1}, "alpha"),
        ("XPO", {"rollout_policy": "reference"}, "rollout_policy"),
        ("XPO", {"rollout_lag": 1}, "rollout_lag"),
        ("XPO", {"use_vllm": True}, "use_vllm"),
        ("XPO", {"rollout_engine": "vllm"}, "rollout_engine"),
        ("NashMD", {"mixture_coef": 1.5}, "mixture_coef=1.5: expected a number from 0 to 1"),
        ("NashMD", {"mixture_coef": [0.5, -0.1]}, "mixture_coef"),
        ("NashMD", {"rollout_engine": "hf"}, "only the native engine samples from a mixture"),
        ("NashMD", {"use_transformers_continuous_batching": True}, "only the native engine"),
        ("NashMD", {"loss_type": "ipo"}, "loss_type"),
        ("NashMD", {"kl_weight": "none"}, "kl_weight"),
    ],
)
def test_settings_of_two_models_are_refused(kind, changes, message, make_online):
    with pytest.raises(BadValue, match=message):
        make_online(kind, model="no-such-model", **changes)


def test_images_and_the_model_as_its_own_reference_are_refused(make_online, build_llama):
    images = Dataset.from_dict({"prompt": ["1"] * 8, "image": ["a"] * 8})
    with pytest.raises(BadValue, match="images"):
        make_online(dataset=images, model="no-such-model")
    model = build_llama()
    with pytest.raises(BadValue, match="cannot be the same object"):
        make_online(model=model, ref_model=model)


def test_an_encoder_decoder_is_refused(make_online):
    from transformers import T5Config, T5ForConditionalGeneration

    size = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "vocab_size": 64}
    with pytest.raises(BadValue, match="encoder-decoder"):
        make_online(model=T5ForConditionalGeneration(T5Config(**size)))


def test_a_batch_counts_prompts_and_both_names_of_a_length_act(make_online):
    trainer = make_online(max_steps=1, max_new_tokens=3)
    assert trainer.args.max_completion_length == 3
    trainer.train()
    assert logs(trainer, "num_completions") == [8.0]
    assert logs(trainer, "completions/max_length")[0] <= 3
    assert make_online(max_new_tokens=64, max_completion_length=5).args.max_new_tokens == 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_held_out_loss_is_that_of_pairs(kind, make_online):
    trainer = make_online(kind, eval_dataset=prompts(4))
    found = trainer.evaluate()
    assert found["eval_loss"] == pytest.approx(
        {"OnlineDPO": 0.693147, "XPO": 0.693147, "NashMD": 0.0}[kind], abs=1.0
    )
    assert found == pytest.approx(trainer.evaluate(), nan_ok=True, rel=1) or "eval_runtime" in found
