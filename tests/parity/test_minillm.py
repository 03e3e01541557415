"""Our MiniLLM trainer and that of TRL 1.14, the last release with it, from its wheel.

The release's 1.14.0 has the same trainer as 1.14.2. Where its numbers are wrong, what it should
have read is handed in: the mask of trained tokens, and the divisor of the single step. Its
advantage has a gradient, whose mean is 0 over samples, and which is taken off too.
"""

import copy
import inspect
from collections import defaultdict
from contextlib import contextmanager

import pytest
import torch
from accelerate import Accelerator
from datasets import Dataset
from peers import difference, double
from releases import class_of, parsed, stated, wheel
from torch.nn import functional

import core
from core.distillation.log_ratio_returns import log_ratio_returns
from core.forward.batches import token_batch
from core.losses.divergence import kl

RELEASE, LIMIT = "1.14", 1e-10
FILE = "trl/experimental/minillm/minillm_{}.py"
METHODS = ("_single_step_decomposition_loss", "_compute_advantage", "compute_loss")
SETTINGS = ("rkl_advantage", "single_step_decomposition", "kd_temperature", "gamma")
SETTINGS += ("length_normalization", "temperature")
PARTS = 2  # micro-batches of an optimizer step
RAGGED = [[8, 9, 10, 11, 1], [12, 13, 14, 15, 16], [17, 18, 1], [20, 1]]
EQUAL = [[8, 9, 10, 11, 1], [12, 13, 14, 15, 16], [17, 18, 19, 5, 1], [20, 21, 22, 23, 1]]
SINGLE = 1e-8  # of the shares of clipped tokens, which are of single precision
LOGGED = ("entropy", "clip_ratio/low_mean", "clip_ratio/high_mean", "clip_ratio/region_mean")
QUIET = {
    "use_cpu": True,
    "bf16": False,
    "activation_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": PARTS,
    "max_completion_length": 12,
}


@pytest.fixture
def models(build_llama):
    """A student and a teacher of another width, in double precision."""
    return double(build_llama()), double(build_llama(seed=1, hidden_size=48))


def chosen_logps(model, ids, mask, kept, temperature):
    """The log-probabilities of the last tokens, and entropies, by their definitions."""
    logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
    logps = (logits[:, -kept - 1 : -1] / temperature).log_softmax(-1)
    own = logps.gather(-1, ids[:, -kept:].unsqueeze(-1)).squeeze(-1)
    return own, -(logps.exp() * logps).sum(-1).detach()


def peer(models, args, mask, tokens):
    """TRL's trainer without its constructor, whose advantages and single steps read the mask."""
    student, teacher = models
    path = wheel(RELEASE)
    known = {"F": functional, "empty_cache": lambda: None}
    plain = class_of(path)
    theirs = class_of(path, FILE.format("trainer"), "MiniLLMTrainer", METHODS, plain, **known)

    class Peer(theirs):
        def _compute_advantage(self, mask, **logps):  # noqa: ARG002 - TRL's has padding
            self.returns = super()._compute_advantage(mask=self.trained, **logps)
            return self.returns.detach()

        def _single_step_decomposition_loss(self, mask, **logps):  # noqa: ARG002 - as above
            arguments = {**logps, "mask": self.trained.bool(), "reduction": "sum"}
            return super()._single_step_decomposition_loss(**arguments) / tokens

        def _get_per_token_logps_and_entropies(self, model, ids, mask, kept, **_):
            return *chosen_logps(model, ids, mask, kept, args.temperature), None

    trainer = object.__new__(Peer)
    vars(trainer).update({name: getattr(args, name) for name in SETTINGS})
    vars(trainer).update(
        args=args,
        model=student,
        teacher_model=teacher,
        trained=mask,
        accelerator=Accelerator(cpu=True),
        loss_type=args.loss_type,
        beta=0.0,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level="token",
        epsilon_low=args.epsilon,
        epsilon_high=args.upper_epsilon,
        use_vllm=False,
        aux_loss_enabled=False,
        _entropy_bonus_enabled=False,
        max_completion_length=args.max_completion_length,
        current_gradient_accumulation_steps=PARTS,
        _metrics={"train": defaultdict(list)},
    )
    return trainer


def ours(models, tokenizer, folder, settings):
    """Our trainer, in training."""
    trainer = core.MiniLLMTrainer(
        *models,
        args=core.MiniLLMConfig(output_dir=str(folder), **QUIET | settings),
        train_dataset=Dataset.from_dict({"prompt": ["12+34="] * 8}),
        processing_class=tokenizer,
    )
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = PARTS
    return trainer


def rollout(rows, pad, *, moved=False):
    """A micro-batch, half of its optimizer step, with advantages of rewards."""
    batch = token_batch([[5, 6, 7]] * 4, rows, pad, None)
    batch["advantages"] = torch.tensor([0.7, -0.3, -1.1, 0.4], dtype=torch.float64)
    batch["num_items_in_batch"] = torch.tensor(2.0 * sum(map(len, rows)))
    if moved:
        draw = torch.Generator().manual_seed(0)
        noise = torch.randn(4, batch["completion_ids"].size(1), generator=draw)
        batch["old_per_token_logps"] = -3.0 + noise.double()
    return batch


@contextmanager
def doubles():
    """Within the context, the powers of gamma have double precision."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def gradient(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


CASES = {
    "defaults": ({}, RAGGED),
    "moved": ({}, RAGGED),
    "temperatures": ({"temperature": 0.8, "kd_temperature": 1.7}, RAGGED),
    "returns alone": ({"single_step_decomposition": False}, RAGGED),
    "single step alone": ({"rkl_advantage": False}, RAGGED),
    "a mean over completions": ({"loss_type": "grpo"}, RAGGED),
    "discounted means": ({"gamma": 0.95}, EQUAL),
}


@pytest.mark.parametrize("case", CASES)
def test_a_step_of_minillm(case, models, tiny_tokenizer, tmp_path, measured):
    """Discounted means of rows of one length alone: TRL's count 1e-4 of each token of padding."""
    settings, rows = CASES[case]
    student = copy.deepcopy(models[0])
    batch = rollout(rows, tiny_tokenizer.pad_token_id, moved=case == "moved")
    trainer = ours((models[0], copy.deepcopy(models[1])), tiny_tokenizer, tmp_path, settings)
    loss = trainer.learn(trainer.model, dict(batch), None)
    tokens = batch["num_items_in_batch"]
    other = peer((student.train(), models[1]), trainer.args, batch["completion_mask"], tokens)
    with doubles():
        theirs = other.compute_loss(student, dict(batch))
    theirs.backward()
    assert measured(f"loss, {case}", difference(loss, theirs.detach())) < LIMIT
    assert gradient(student).abs().max() > 1e-4
    gap = difference(gradient(models[0]), gradient(student))
    assert measured(f"gradient, {case}", gap) < LIMIT
    seen = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    for name in LOGGED:
        (value,) = other._metrics["train"][name]
        limit = LIMIT if name == "entropy" else SINGLE
        assert measured(f"metrics, {name}", abs(seen[name] - value)) < limit


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("gamma", [0.0, 0.95, 1.0])
def test_the_advantages_of_tokens(gamma, normalised, models, tiny_tokenizer, tmp_path, measured):
    """TRL's sums count gamma from the first token of the row, which is divided away."""
    settings = {"gamma": gamma} | ({} if normalised else {"length_normalization": False})
    if gamma == 0 and not normalised:
        settings = {}
    trainer = ours(models, tiny_tokenizer, tmp_path, settings)
    draw = torch.Generator().manual_seed(0)
    numbers = -2 * torch.rand(4, 5, 5, generator=draw, dtype=torch.float64)
    mask = torch.ones(4, 5)
    inputs = {"completion_mask": mask, "completion_ids": mask.long()}
    other = peer(models, trainer.args, mask.double(), 1.0)
    vars(other).update(length_normalization=normalised)
    logps = {"student_log_probs_on_labels": numbers[..., 2]}
    logps |= {"teacher_log_probs_on_labels": numbers[..., 3]}
    with doubles():
        theirs = other._compute_advantage(mask=None, **logps)
    powers = 1.0 if normalised or not gamma else gamma ** torch.arange(5).double()
    found = log_ratio_returns(numbers, inputs, trainer.args) * powers
    assert measured("advantages", difference(found, theirs)) < LIMIT


def test_what_trl_does_to_padding_and_to_the_gradient(models, tmp_path):
    """Its means are over padding, long returns are NaN, and its advantages have a gradient."""
    args = core.MiniLLMConfig(output_dir=str(tmp_path), gamma=0.95, **QUIET)
    other = peer(models, args, torch.ones(1, 4096), 1.0)
    reward = {
        "student_log_probs_on_labels": torch.zeros(1, 4096),
        "teacher_log_probs_on_labels": torch.ones(1, 4096),
    }
    assert other._compute_advantage(mask=None, **reward).isnan().sum() == 2068
    logps = torch.randn(1, 3, requires_grad=True)
    other.trained = torch.ones(1, 3)
    other._compute_advantage(
        mask=None, student_log_probs_on_labels=logps, teacher_log_probs_on_labels=logps.detach()
    )
    assert other.returns.requires_grad
    pair = torch.randn(2, 2, 3, 6).log_softmax(-1)
    every = torch.ones(2, 3).bool()  # `labels != -100` of token ids
    base = super(type(other), other)._single_step_decomposition_loss(*pair, mask=every)
    assert torch.allclose(base, kl(*pair.flatten(1, 2)).mean())


def test_settings_and_arguments_are_those_of_the_release():
    (node,) = [
        n
        for n in parsed(wheel(RELEASE), FILE.format("config")).body
        if getattr(n, "name", "") == "MiniLLMConfig"
    ]
    theirs, fields = dict(stated(node)), core.MiniLLMConfig.__dataclass_fields__
    assert len(theirs) == 7
    assert {name: fields[name].default for name in theirs} == theirs
    tree = parsed(wheel(RELEASE), FILE.format("trainer"))
    (node,) = [n for n in tree.body if getattr(n, "name", "") == "MiniLLMTrainer"]
    (init,) = [n for n in node.body if getattr(n, "name", "") == "__init__"]
    assert [a.arg for a in init.args.args] == list(
        inspect.signature(core.MiniLLMTrainer.__init__).parameters
    )
