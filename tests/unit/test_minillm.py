"""Laws of MiniLLM's trainer: returns, divisors, padding, the mixture, and the loss of the data."""

import copy
from dataclasses import replace

import pytest
import torch
from datasets import Dataset
from grpo_runs import double, logs, weights
from test_distillation import QUIET, SINGLE, by_hand, of_lengths, sums

import core
from core.distillation.log_ratio_returns import log_ratio_returns
from core.forward import micro_pieces
from core.losses.divergence import kl, mixture
from core.losses.returns import later_rewards, mean_of_later_rewards
from core.losses.sampling import sampling_ratio
from core.rollout.engine import Sampling
from core.rollout.mixed import MixedEngine
from eval.errors import BadValue

ALONE = {"num_generations": 1}
LENGTHS = (12, 3, 11, 12, 5, 10, 2, 12)


@pytest.fixture
def make(build_llama, tiny_tokenizer, tmp_path):
    """Return a builder of trainers; `rollouts` collects the samples, `plays` replaces them."""

    def build(model=None, teacher=None, *, rollouts=None, plays=None, **changes):
        class Ours(core.MiniLLMTrainer):
            def generate(self, prompts):
                generated = super().generate(prompts) if plays is None else next(played)
                if rollouts is not None:
                    rollouts.append(generated)
                return generated

        played = iter(plays or ())
        others = {name: changes.pop(name, None) for name in ("reward_funcs", "rollout_func")}
        data = changes.pop("data", None)
        return Ours(
            model or build_llama(),
            teacher or build_llama(seed=1),
            args=core.MiniLLMConfig(output_dir=str(tmp_path), **QUIET | ALONE | changes),
            train_dataset=sums() if data is None else data,
            processing_class=tiny_tokenizer,
            **others,
        )

    return build


def stated_loss(pair, generated, *, gamma=0.0, normalised=True, has_own=True, temperature=1.0):
    """The loss of a rollout, completion by completion: -R and KL of all tokens, by their number."""
    parts = []
    for prompt, ids in zip(generated.prompt_ids, generated.completion_ids, strict=True):
        one = replace(generated, prompt_ids=[prompt], completion_ids=[ids], completions=[""])
        with torch.no_grad():
            found = by_hand(*pair, one, lambda s, t: torch.stack([s, t], 1), temperature)
        apart = kl(*found.unbind(1))
        own, other = found[range(len(ids)), :, list(ids)].unbind(1)
        rewards = other - own
        for t in range(len(ids)):
            first = t if has_own else t + 1
            powers = gamma ** torch.arange(len(ids) - first) if gamma else torch.ones(1)
            later = rewards[first : first + len(powers)]
            total = (powers[: len(later)] * later).sum()
            norm = powers[: len(later)].sum() if normalised and len(later) else 1.0
            parts.append(apart[t] - total / norm)
    return torch.stack(parts).mean().item()


@pytest.mark.parametrize(
    "returns",
    [
        {},
        {"gamma": 0.9},
        {"gamma": 0.9, "length_normalization": False},
        {"gamma": 1.0, "return_from": "next"},
        {"kd_temperature": 1.7},
    ],
    ids=str,
)
def test_the_loss_is_that_of_returns_and_of_the_reverse_kl(returns, make, build_llama):
    rollouts = []
    trainer = make(rollouts=rollouts, max_steps=1, **returns)
    trainer.train()
    expected = stated_loss(
        (build_llama(), build_llama(seed=1)),
        rollouts[0],
        gamma=returns.get("gamma", 0.0),
        normalised=returns.get("length_normalization", True),
        has_own=returns.get("return_from") != "next",
        temperature=returns.get("kd_temperature", 1.0),
    )
    assert logs(trainer, "loss") == [pytest.approx(expected, rel=1e-4)]
    assert not any(name.startswith("reward") for row in trainer.state.log_history for name in row)


SPLITS = {
    "in four micro-batches": {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 4},
    "padded": {"pad_to_multiple_of": 32},
    "in pieces": {},
}


@pytest.mark.parametrize("terms", [{"gamma": 0.9}, {"lm_coef": 0.5}], ids=str)
@pytest.mark.parametrize("split", SPLITS)
def test_a_split_changes_no_update(split, terms, make, build_llama, tiny_tokenizer, monkeypatch):
    """The divisor is the number of trained tokens of the optimizer step; padding is no token."""
    plays = [of_lengths(tiny_tokenizer, *LENGTHS)]
    pair = double(build_llama()), double(build_llama(seed=1))
    settings = {"plays": plays, "max_steps": 1, "shuffle_dataset": False, **terms}
    whole = make(*copy.deepcopy(pair), **settings)
    whole.train()
    if split == "in pieces":
        monkeypatch.setitem(micro_pieces.TOKENS, "cpu", 1)
    other = make(*copy.deepcopy(pair), **settings, **SPLITS[split])
    other.train()
    assert (weights(whole.model) - weights(other.model)).abs().max() < SINGLE
    assert (weights(whole.model) - weights(pair[0])).abs().max() > 1e-5
    assert logs(other, "loss") == pytest.approx(logs(whole, "loss"), rel=1e-6)


@pytest.mark.parametrize("padding", [None, 8, 32])
def test_a_teacher_equal_to_the_student_has_a_loss_of_zero(padding, make, build_llama):
    trainer = make(
        build_llama(), build_llama(), max_steps=1, pad_to_multiple_of=padding, gamma=0.95
    )
    start = weights(trainer.model).clone()
    trainer.train()
    assert logs(trainer, "loss") == [pytest.approx(0.0, abs=1e-7)]
    assert (weights(trainer.model) - start).abs().max() < 1e-6


@pytest.mark.parametrize("normalised", [True, False])
def test_returns_of_a_long_answer_are_finite_and_discount_from_their_token(normalised, make):
    """At 4,096 tokens of reward 1, padded on either side, at any width."""
    trainer = make(gamma=0.95, length_normalization=normalised)
    for left, right in ((0, 0), (5, 0), (0, 5), (100, 3)):
        width = left + 4096 + right
        mask = torch.zeros(1, width, dtype=torch.long)
        mask[0, left : left + 4096] = 1
        numbers = torch.full((1, width, 5), 7.0)  # what stands at padding is not read
        numbers[..., 3] = torch.where(mask > 0, numbers[..., 2] + 1, 3e4)
        inputs = {"completion_mask": mask, "completion_ids": torch.zeros_like(mask)}
        found = log_ratio_returns(numbers, inputs, trainer.args)
        kept = found[mask > 0]
        first, last = (1.0, 1.0) if normalised else (20.0, 1.0)
        assert kept.isfinite().all()
        assert kept[[0, -1]].tolist() == pytest.approx([first, last], rel=1e-5)
        assert (found[mask == 0] == 0).all()


def test_returns_have_no_gradient(make):
    numbers = torch.randn(2, 4, 5, requires_grad=True)
    inputs = {"completion_mask": torch.ones(2, 4), "completion_ids": torch.zeros(2, 4)}
    assert not log_ratio_returns(numbers, inputs, make(gamma=0.9).args).requires_grad


def test_rewards_are_compared_in_groups_beside_the_teacher(make):
    def long(completion_ids, **_):
        return [float(len(ids)) for ids in completion_ids]

    trainer = make(reward_funcs=long, num_generations=4, temperature=1.3)
    trainer.train()
    rows = [row for row in trainer.state.log_history if "loss" in row]
    assert len(rows) == 3
    names = {"rewards/long/mean", "reward_std", "entropy", "reverse_kl", "clip_ratio/low_mean"}
    assert all(row.keys() >= names for row in rows)


@pytest.mark.parametrize("alpha", [0.2, 0.7])
def test_tokens_are_drawn_from_the_mixture(alpha, build_llama):
    """First tokens of one prompt have the frequencies of the mixture, and report them."""
    pair, count = (build_llama(), build_llama(seed=1)), 4000
    engine = MixedEngine(*pair, alpha)
    sampling = Sampling(max_tokens=1, ends=frozenset(), temperature=1.5)
    drawn = dict(engine.sample([[5, 6, 7]] * count, sampling, list(range(count))))
    with torch.no_grad():
        logps = [m(torch.tensor([[5, 6, 7]])).logits[0, -1].div(1.5).log_softmax(-1) for m in pair]
    stated = mixture(*(x.unsqueeze(0) for x in logps), alpha)[0].exp()
    tokens = torch.tensor([drawn[i].tokens[0] for i in range(count)])
    shares = torch.bincount(tokens, minlength=64) / count
    assert (shares - stated).abs().max() < 5 * (stated.max() / count).sqrt()
    reported = torch.tensor([drawn[i].logps[0] for i in range(count)])
    assert torch.allclose(reported, stated[tokens].log(), atol=1e-5)


def test_a_loss_of_mixed_samples_has_the_weight_of_the_student(make, build_llama):
    rollouts, alpha = [], 0.6
    settings = {"single_step_decomposition": False, "max_steps": 1, "teacher_mix_alpha": alpha}
    trainer = make(rollouts=rollouts, **settings)
    trainer.train()
    student, teacher = build_llama(), build_llama(seed=1)
    with torch.no_grad():
        found = by_hand(student, teacher, rollouts[0], lambda s, t: torch.stack([s, t], 1))
    tokens = [token for ids in rollouts[0].completion_ids for token in ids]
    own, other = found[range(len(tokens)), :, tokens].unbind(1)
    weight = own.exp() / ((1 - alpha) * own.exp() + alpha * other.exp())
    parts = -weight * (other - own)
    assert weight.max() <= 1 / (1 - alpha)
    assert (weight - 1).abs().mean() > 0.05
    assert logs(trainer, "loss") == [pytest.approx(parts.mean().item(), rel=1e-3)]
    ratio = logs(trainer, "sampling/importance_sampling_ratio/mean")
    assert ratio == [pytest.approx(weight.mean().item(), rel=1e-4)]


def test_a_mixture_is_not_sampled_in_evaluation(make):
    trainer = make(teacher_mix_alpha=0.9, per_device_eval_batch_size=4)
    plain = make(per_device_eval_batch_size=4)
    data = sums(4)
    ours, theirs = (t.evaluate(data)["eval_reverse_kl"] for t in (trainer, plain))
    assert ours == pytest.approx(theirs, rel=1e-5)


def stated_likelihood(model, tokenizer, *pairs):
    """The mean cross-entropy of the tokens of completions, one completion at a time."""
    losses = []
    for pair in pairs:
        prompt, answer = tokenizer(list(pair))["input_ids"]
        ids = [*answer, tokenizer.eos_token_id]
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *ids]])).logits
        logps = logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        losses += (-logps[range(len(ids)), ids]).tolist()
    return sum(losses) / len(losses)


def test_the_cross_entropy_is_of_the_data_and_of_all_its_tokens(make, build_llama, tiny_tokenizer):
    data = Dataset.from_dict({"prompt": ["1+1=", "2+2="] * 4, "completion": ["2", "4444"] * 4})
    settings = {"max_steps": 1, "data": data, "shuffle_dataset": False}
    plain = make(**settings)
    plain.train()
    trainer = make(lm_coef=0.3, **settings)
    trainer.train()
    mean = stated_likelihood(build_llama(), tiny_tokenizer, ("1+1=", "2"), ("2+2=", "4444"))
    assert logs(trainer, "lm_loss") == [pytest.approx(mean, rel=1e-5)]
    assert logs(plain, "lm_loss") == []
    gap = logs(trainer, "loss")[0] - logs(plain, "loss")[0]
    assert gap == pytest.approx(0.3 * mean, rel=1e-4)


def test_rows_that_fill_micro_batches_have_no_cross_entropy(make, build_llama, tiny_tokenizer):
    """Three of four prompts are selected, whose six rows are no multiple of four micro-batches."""
    pairs = [("1+1=", "2"), ("2+2=", "4444"), ("3+3=", "66"), ("4+4=", "888888")]
    data = Dataset.from_list([{"prompt": p, "completion": c} for p, c in pairs])

    def all_but_the_last(prompts, **_):
        return [float(p != pairs[-1][0] and i % 2) for i, p in enumerate(prompts)]

    settings = {
        "data": data,
        "reward_funcs": all_but_the_last,
        "num_generations": 2,
        "rollout_selection": "varied",
        "max_steps": 1,
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 4,
    }
    trainers = [make(lm_coef=weight, **settings) for weight in (0.3, 0.0)]
    for trainer in trainers:
        trainer.train()
    (with_it,), (without,) = (logs(trainer, "loss") for trainer in trainers)
    mean = stated_likelihood(build_llama(), tiny_tokenizer, *pairs[:-1])
    assert with_it - without == pytest.approx(0.3 * mean, rel=1e-4)


def test_a_resumed_training_reads_the_data_it_would_have_read(make, tmp_path):
    """A rollout of two updates is interrupted between them."""
    settings = {"lm_coef": 0.5, "num_iterations": 2, "max_steps": 4, "gamma": 0.9}
    whole = make(**settings)
    whole.train()
    make(**settings, save_strategy="steps", save_steps=3).train()
    again = make(**settings)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert torch.equal(weights(whole.model), weights(again.model))


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"gamma": 1.5}, "gamma=1.5: expected 0 to 1"),
        ({"kd_temperature": 0.0}, "expected above 0"),
        ({"return_from": "next"}, "return_from='next' has no effect with gamma=0"),
        ({"length_normalization": False}, "no later reward counts"),
        ({"rkl_advantage": False, "gamma": 0.5}, "gamma=0.5 has no effect with rkl_advantage"),
        ({"rkl_advantage": False, "single_step_decomposition": False}, "reads no teacher"),
        ({"teacher_mix_alpha": 1.0}, "expected 0 to below 1"),
        ({"teacher_mix_alpha": 0.2, "rollout_lag": 4}, "two models sample together"),
        ({"teacher_mix_alpha": 0.2, "use_vllm": True}, "two models sample together"),
        ({"lm_coef": -1.0}, "lm_coef"),
        ({"router_aux_loss_coef": 0.1}, "no load-balancing term"),
        ({"keep_sampling_mask": True}, "over all tokens"),
        ({"max_tool_calling_iterations": 2}, "no tools are called"),
        ({"return_from": "last"}, "'current', 'next'"),
    ],
    ids=str,
)
def test_settings_without_an_effect_are_refused(settings, line, tmp_path):
    changes = {"num_generations": 2} | settings
    with pytest.raises(BadValue, match=line):
        core.MiniLLMConfig(str(tmp_path), use_cpu=True, bf16=False, **changes)


def test_bad_input_is_refused_before_anything_is_loaded(make, build_llama):
    prompts = sums().remove_columns("completion")
    with pytest.raises(BadValue, match="and lm_coef above 0 trains on completions"):
        make("nowhere/student", "nowhere/teacher", data=prompts, lm_coef=0.5)
    with pytest.raises(BadValue, match=r"reward_weights=.* without reward_funcs"):
        make(reward_weights=[2.0])
    with pytest.raises(BadValue, match="compares completions of a prompt"):
        make(reward_funcs=lambda completions, **_: [0.0] * len(completions))
    model = build_llama()
    with pytest.raises(BadValue, match="cannot be the same object"):
        make(model, model)
    with pytest.raises(BadValue, match="teacher_mix_alpha cannot act"):
        make(rollout_func=dict, teacher_mix_alpha=0.2)


STUDENT, TEACHER, GAMMA = [-0.5, -1.2, -0.3], [-0.7, -0.4, -1.3], 0.95


def row(values):
    return torch.tensor([values], dtype=torch.float64)


def test_the_worked_example_of_returns():
    """Those of TRL, of the official code (before its scale and whitening) and of the paper."""
    rewards = row(TEACHER) - row(STUDENT)
    assert rewards[0].tolist() == pytest.approx([-0.2, 0.8, -1.0])
    ones, places = torch.ones_like(rewards), torch.arange(3)
    mean = mean_of_later_rewards(rewards, ones, gamma=GAMMA, has_own=True)
    assert mean[0].tolist() == pytest.approx([-0.12007, -0.076923, -1.0], abs=1e-6)
    total = later_rewards(rewards, ones, gamma=GAMMA, has_own=True)
    assert total[0].tolist() == pytest.approx([-0.3425, -0.15, -1.0])
    of_trl, official = total * GAMMA**places, total / (3 - places)
    assert of_trl[0].tolist() == pytest.approx([-0.3425, -0.1425, -0.9025])
    assert official[0].tolist() == pytest.approx([-0.114167, -0.075, -1.0], abs=1e-6)
    own = mean_of_later_rewards(rewards, ones, gamma=0.0, has_own=True)
    assert own[0].tolist() == pytest.approx([-0.2, 0.8, -1.0])
    later = mean_of_later_rewards(rewards, ones, gamma=1.0, has_own=False)
    assert later[0].tolist() == pytest.approx([-0.1, -1.0, 0.0])


def test_the_worked_example_of_a_mixture_and_of_single_steps(tmp_path):
    config = core.MiniLLMConfig(str(tmp_path), use_cpu=True, bf16=False, teacher_mix_alpha=0.2)
    student, teacher = row(STUDENT), row(TEACHER)
    sampled = mixture(student, teacher, 0.2)
    weight = sampling_ratio(student, sampled, torch.ones(1, 3), config.correction)
    assert weight[0].tolist() == pytest.approx([1.037618, 0.803143, 1.14472], abs=1e-6)
    logits = [[1.0, 0.0, -1.0], [0.2, 0.3, 0.5]], [[0.5, 1.0, -0.5], [2.0, 0.0, -1.0]]
    pair = (torch.tensor(x, dtype=torch.float64).log_softmax(-1) for x in logits)
    assert kl(*pair).tolist() == pytest.approx([0.239401, 0.891038], abs=1e-6)
