"""Our trainers of a student that is its own teacher and TRL's, on the same completions."""

import copy
from inspect import signature

import pytest
import torch
from datasets import Dataset
from peers import difference, double
from teacher_peers import QUIET, STEPS, conversations, defaults, of_weights
from trl.experimental import sdft, sdpo
from trl.experimental.sdft import loss_utils, sdft_trainer
from trl.experimental.sdpo import sdpo_trainer

import core
from core.distillation.own_teacher_config import self_measure
from core.losses.token_weights import clipped_ratio

LIMIT = 1e-10
GROUP = 4
SHORT = QUIET | {
    "max_completion_length": 12,
    "num_generations": GROUP,
    "temperature": 0.8,
    "learning_rate": 0.01,  # at 0.05 rounding grows 1e5 times in 20 steps
    # TRL logs a mean over micro-batches, however many tokens they have
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
}


@pytest.fixture
def start(build_llama):
    return double(build_llama())


def train_both(start, tokenizer, folder, monkeypatch, trainers, configs, settings, data, **more):
    """Our trainer samples, and TRL's, whose teacher is a copy of the start, replays."""
    rollouts = []

    class Ours(trainers[0]):
        def generate(self, prompts):
            rollouts.append(super().generate(prompts))
            return rollouts[-1]

    class Theirs(trainers[1]):
        def _generate(self, prompt_ids):
            played = rollouts[self.state.global_step // self.num_iterations]
            if not self.args.__dict__.get("generate_from_teacher"):
                assert prompt_ids == [list(ids) for ids in played.prompt_ids]
            return prompt_ids, [list(ids) for ids in played.completion_ids]

    trained = []
    for module in (sdft_trainer, sdpo_trainer):
        monkeypatch.setattr(module, "create_model_from_path", lambda *_, **__: copy.deepcopy(start))
    for kind, config in zip((Ours, Theirs), configs, strict=True):
        trainer = kind(
            copy.deepcopy(start),
            args=config(output_dir=str(folder), **SHORT | settings),
            train_dataset=data,
            processing_class=copy.deepcopy(tokenizer),
            **more,
        )
        trainer.train()
        trained.append(trainer)
    return trained


def compare(trained, start, measured, names):
    own, other = ([row for row in t.state.log_history if "loss" in row] for t in trained)
    assert len(own) == len(other) == STEPS
    for mine, row in zip(own, other, strict=True):
        for name in names:  # lengths are logged once for each rollout
            assert (name in mine) is (name in row)
            assert name not in row or measured(name, difference(mine[name], row[name])) < LIMIT, (
                name
            )
    assert (of_weights(trained[0].model) - of_weights(start)).abs().max() > 1e-3
    gap = difference(*(of_weights(trainer.model) for trainer in trained))
    assert measured("weights after 20 steps", gap) < LIMIT


LENGTHS = tuple(f"completions/{n}_length" for n in ("mean", "min", "max", "mean_terminated"))
LOSS = ("loss", "grad_norm")
DISTILLED = "self_distillation/distillation_loss"
FORMS = {
    "TRL's": {"distillation_topk": 5},
    "the paper's": {
        "distillation_alpha": 1.0,
        "distillation_mode": "full_logits",
        "teacher_model_kind": "ema",
    },
    "the repository's": {
        "distillation_alpha": 0.0,
        "distillation_mode": "full_logits",
        "teacher_model_kind": "ema",
        "teacher_update_rate": 0.3,
        "teacher_sync_steps": 2,
        "num_loss_tokens_to_skip": 3,
    },
    "sampled tokens of a live teacher": {
        "distillation_alpha": 1.0,
        "distillation_mode": "sampled_token",
        "teacher_model_kind": "live",
    },
    "samples of the teacher": {
        "distillation_topk": 3,
        "distillation_add_tail": True,
        "generate_from_teacher": True,
    },
    "two passes": {"distillation_topk": 5, "num_iterations": 2, "distillation_is_clip": 1.01},
}


@pytest.mark.parametrize("form", FORMS)
def test_twenty_steps_of_sdft(form, start, tiny_tokenizer, tmp_path, monkeypatch, measured):
    rows = conversations(16)
    data = {"prompt": rows, "privileged_context": [f"see {i}" for i in range(10, 26)]}
    settings = FORMS[form]
    trained = train_both(
        start,
        tiny_tokenizer,
        tmp_path,
        monkeypatch,
        (core.SDFTTrainer, sdft.SDFTTrainer),
        (core.SDFTConfig, sdft.SDFTConfig),
        settings,
        Dataset.from_dict(data),
    )
    compare(trained, start, measured, (*LOSS, *LENGTHS, DISTILLED, "sdft/distillation_loss"))


def even_sum(completion_ids, **_):
    return [float(sum(ids) % 3 == 0) for ids in completion_ids]


HINTS = {
    "TRL's": {},
    "feedback": {
        "include_environment_feedback": True,
        "distillation_alpha": 0.5,
        "distillation_mode": "topk_logits",
        "distillation_topk": 5,
        "distillation_add_tail": True,
        "teacher_update_rate": 0.3,
    },
    "feedback where nothing succeeded": {
        "include_environment_feedback": True,
        "environment_feedback_only_without_solution": True,
        "dont_reprompt_on_self_success": False,
        "distillation_mode": "full_logits",
        "teacher_model_kind": "base",
    },
    "beside a policy loss": {"distillation_weight": 0.3, "loss_type": "grpo"},
    "a policy loss alone": {"distillation_weight": 0.0, "loss_type": "grpo"},
}
POLICY = "self_distillation/policy_loss"
SHARES = tuple(
    f"self_distillation/{name}"
    for name in (
        "success_group_fraction",
        "success_sample_fraction",
        "feedback_available_fraction",
        "feedback_used_fraction",
        "reprompt_sample_fraction",
        "reward_mean",
        "reward_std",
        "reward_min",
        "reward_max",
        "group_reward_std_mean",
        "flat_group_fraction",
        "rewards/even_sum",
    )
)


@pytest.mark.parametrize("form", HINTS)
def test_twenty_steps_of_sdpo(form, start, tiny_tokenizer, tmp_path, monkeypatch, measured):
    settings = HINTS[form]
    told = [f"see {i}" if i % 3 else None for i in range(10, 26)]
    data = {"prompt": conversations(16), "privileged_context": told}
    weight = settings.get("distillation_weight", 1.0)
    trained = train_both(
        start,
        tiny_tokenizer,
        tmp_path,
        monkeypatch,
        (core.SDPOTrainer, sdpo.SDPOTrainer),
        (core.SDPOConfig, sdpo.SDPOConfig),
        settings,
        Dataset.from_dict(data),
        reward_funcs=even_sum,
    )
    losses = {0.0: (POLICY,), 1.0: (DISTILLED,)}.get(weight, (POLICY, DISTILLED))
    compare(trained, start, measured, (*LOSS, *LENGTHS, *SHARES, *losses))


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("mode", ["sampled_token", "topk_logits", "full_logits"])
@pytest.mark.parametrize("tail", [False, True])
def test_losses_of_tokens(alpha, mode, tail, measured):
    if mode == "sampled_token" and alpha != 1:
        return
    torch.manual_seed(0)
    student, teacher = torch.randn(2, 7, 11, dtype=torch.float64)
    tokens = torch.randint(0, 11, (7,))
    settings = {"distillation_alpha": alpha, "distillation_mode": mode}
    if mode == "topk_logits":
        settings |= {"distillation_topk": 4, "distillation_add_tail": tail}
    args = core.SDPOConfig(output_dir="unused", report_to="none", use_cpu=True, **settings)
    theirs = {
        "sampled_token": lambda s: loss_utils.compute_sampled_token_self_distillation_loss(
            s, teacher, tokens, distillation_alpha=alpha
        ),
        "topk_logits": lambda s: loss_utils.compute_topk_self_distillation_loss(
            s,
            teacher,
            distillation_topk=4,
            distillation_alpha=alpha,
            distillation_add_tail=tail,
        ),
        "full_logits": lambda s: loss_utils.compute_full_logit_self_distillation_loss(
            s, teacher, distillation_alpha=alpha
        ),
    }[mode]
    both = []
    for loss in (
        lambda s: self_measure(s.log_softmax(-1), teacher.log_softmax(-1), tokens, args)[:, 1],
        theirs,
    ):
        own = student.clone().requires_grad_()
        value = loss(own)
        value.sum().backward()
        both.append((value.detach(), own.grad))
    for mine, other in zip(*both, strict=True):
        assert measured(f"{mode}, loss and gradient", difference(mine, other)) < LIMIT


def test_clipped_ratios(measured):
    torch.manual_seed(0)
    logps, old = 15 * torch.randn(2, 4, 5, dtype=torch.float64)
    mine = clipped_ratio(logps, old, 2.0)
    theirs = loss_utils.apply_importance_sampling_clipping(torch.ones_like(logps), logps, old, 2.0)
    assert measured("ratio", difference(mine, theirs)) < LIMIT


CONFIGS = {
    "SDFT": (sdft.SDFTConfig, sdft.SDFTTrainer, [], set()),
    "SDPO": (sdpo.SDPOConfig, sdpo.SDPOTrainer, ["feedback_funcs"], set()),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_names_and_defaults(name):
    config, trainer, ours_alone, others = CONFIGS[name]
    ours, theirs = defaults(getattr(core, f"{name}Config")), defaults(config)
    assert {key for key in theirs if key not in ours or ours[key] != theirs[key]} == others
    mine, other = (signature(kind.__init__) for kind in (getattr(core, f"{name}Trainer"), trainer))
    assert list(mine.parameters) == [*other.parameters, *ours_alone]
