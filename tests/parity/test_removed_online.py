"""Our XPO and Nash-MD, and those of TRL 1.13, the last release with them, from its wheel."""

from types import SimpleNamespace

import pytest
import torch
from peers import difference, double
from releases import class_of, parsed, stated, wheel
from test_online_dpo import QUIET, digits, letters, sums
from torch.nn import functional

import core

RELEASE, TOLERANCE = "1.13", 1e-10
FILES = {name: f"trl/experimental/{name}/{name}_{{}}.py" for name in ("xpo", "nash_md")}
METHODS = ("_compute_logprobs", "_compute_losses", "_log_statistics")
SINGLE = ("scores", "rewards/chosen", "rewards/rejected", "probabilities")  # rewards have 32 bits


def chosen_logps(logits, ids):
    """Log-probabilities of tokens, as the release's own function of that name computes them."""
    return logits.log_softmax(-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)


class Stats(dict):
    """Lists of numbers by name."""

    def __missing__(self, name):
        self[name] = []
        return self[name]


def peer(file, kind, model, reference, tokenizer, args, **numbers):
    known = {"F": functional, "selective_log_softmax": chosen_logps}
    trainer = object.__new__(
        class_of(wheel(RELEASE), FILES[file].format("trainer"), kind, METHODS, **known)
    )
    vars(trainer).update(
        ref_model=reference,
        accelerator=SimpleNamespace(gather_for_metrics=lambda x: x),
        processing_class=tokenizer,
        args=args,
        stats=Stats(),
        model=model,
        **numbers,
    )
    return trainer


def data(batch, rows):
    """Some completions of a micro-batch of ours as TRL's trainers read them."""
    part = {name: batch[name][rows] for name in ("prompt_ids", "completion_ids")}
    masks = [batch[name][rows] for name in ("prompt_mask", "completion_mask")]
    return {"input_ids": torch.cat([*part.values()], 1), "attention_mask": torch.cat(masks, 1)}


@pytest.fixture
def ours(build_llama, tiny_tokenizer, tmp_path):
    """A trainer of ours in double precision, and a micro-batch that it sampled."""

    def make(kind, rewards=(digits,), **changes):
        config = getattr(core, f"{kind}Config")
        settings = QUIET | {"gradient_checkpointing": False} | changes
        trainer = getattr(core, f"{kind}Trainer")(
            model=double(build_llama()),
            ref_model=double(build_llama(seed=1)),
            reward_funcs=list(rewards),
            args=config(output_dir=str(tmp_path), **settings),
            train_dataset=sums(),
            processing_class=tiny_tokenizer,
        )
        trainer.model.train()
        trainer.current_gradient_accumulation_steps = 1
        rows = [trainer.train_dataset[i // 2] for i in range(8)]
        (batch,) = trainer.optimizer_step_batches([rows])
        trainer._metrics["train"].clear()
        loss = trainer.compute_loss(trainer.model, batch)
        loss.backward()
        return trainer, batch, loss.detach()

    return make


def same(trainer, other, loss, their_loss, model, measured, left_out=()):
    their_loss.backward()
    assert measured("loss", difference(loss, their_loss.detach())) < TOLERANCE
    for mine, theirs in zip(trainer.model.parameters(), model.parameters(), strict=True):
        assert measured("gradient", difference(mine.grad, theirs.grad)) < TOLERANCE
    assert max(p.grad.abs().max() for p in model.parameters()) > 1e-4
    logged = {name: values[0] for name, values in trainer._metrics["train"].items()}
    for name, (value,) in other.stats.items():
        if name in left_out or name.startswith("val/"):
            continue
        bound = 1e-6 if any(part in name for part in SINGLE) else TOLERANCE
        assert measured(name, difference(logged[name], value)) < bound, name
    return logged


@pytest.mark.parametrize("loss_type", ["sigmoid", "ipo"])
@pytest.mark.parametrize("alpha", [0.0, 1e-5, 0.3])
def test_xpo(alpha, loss_type, ours, build_llama, tiny_tokenizer, measured):
    trainer, batch, loss = ours("XPO", alpha=alpha, loss_type=loss_type, beta=0.03)
    model, reference = double(build_llama()), double(build_llama(seed=1))
    args = SimpleNamespace(loss_type=loss_type)
    other = peer(
        "xpo", "XPOTrainer", model, reference, tiny_tokenizer, args, beta=0.03, alpha=alpha
    )
    own, others = (data(batch, slice(start, None, 2)) for start in (0, 1))
    context = batch["prompt_ids"].size(1)
    scores = batch["scores"][::2], batch["scores"][1::2]
    is_first = scores[0] >= scores[1]
    logps = other._compute_logprobs(model, own, others, context)
    their_loss, dpo, bonus = other._compute_losses(*logps, is_first)
    detached = [x.detach() for x in logps]
    ends = (dpo.detach(), bonus.detach(), context, *scores)
    other._log_statistics(own, others, *detached, is_first, *ends)
    sides = ("logps/chosen", "logps/rejected")
    logged = same(trainer, other, loss, their_loss, model, measured, sides)
    # TRL adds the log-probability under the reference to that under the policy.
    ratios = [logged[f"rewards/{side}"] / 0.03 for side in ("chosen", "rejected")]
    for name, ratio in zip(sides, ratios, strict=True):
        assert difference(2 * logged[name] - ratio, other.stats[name][0]) < TOLERANCE


@pytest.mark.parametrize("beta", [0.008, 0.4])
def test_nash_md(beta, ours, build_llama, tiny_tokenizer, measured):
    trainer, batch, loss = ours("NashMD", (letters,), beta=beta, mixture_coef=0.25)
    model, reference = double(build_llama()), double(build_llama(seed=1))
    numbers = {"beta": beta, "mixture_coef": 0.25}
    other = peer("nash_md", "NashMDTrainer", model, reference, tiny_tokenizer, None, **numbers)
    own, context = data(batch, slice(None)), batch["prompt_ids"].size(1)
    scores = batch["scores"], batch["other_scores"]
    probability = torch.sigmoid(scores[0] - scores[1])
    assert len(set(probability.tolist())) > 1
    logps = other._compute_logprobs(model, own, context)
    their_loss, score, kl = other._compute_losses(*logps, batch["advantages"].double() + 0.5)
    assert difference(batch["advantages"] + 0.5, probability) < 1e-6
    detached = [x.detach() for x in logps]
    ends = (probability, score.detach(), kl, context, *scores)
    other._log_statistics(own, own, *detached, *ends)
    same(trainer, other, loss, their_loss, model, measured)


CONFIGS = {"xpo": ("XPO", {"alpha": 1e-5}), "nash_md": ("NashMD", {"mixture_coef": 0.5})}


@pytest.mark.parametrize("file", FILES)
def test_settings_and_arguments_are_those_of_the_release(file):
    kind, own = CONFIGS[file]
    tree = parsed(wheel(RELEASE), FILES[file].format("config"))
    (node,) = [n for n in tree.body if getattr(n, "name", "") == f"{kind}Config"]
    theirs = {each.target.id for each in node.body if hasattr(each, "target")}
    ours = {f.name: f.default for f in getattr(core, f"{kind}Config").__dataclass_fields__.values()}
    assert theirs == own.keys()
    assert {name: ours[name] for name in own} == own
    assert dict(stated(node)) == {}  # they are made by functions, as lists of one number
    (made,) = [
        k.value
        for e in node.body
        if hasattr(e, "target")
        for k in e.value.keywords
        if k.arg == "default_factory"
    ]
    assert made.body.elts[0].value == next(iter(own.values()))
    found = parsed(wheel(RELEASE), FILES[file].format("trainer"))
    (node,) = [n for n in found.body if getattr(n, "name", "") == f"{kind}Trainer"]
    (init,) = [n for n in node.body if getattr(n, "name", "") == "__init__"]
    code = getattr(core, f"{kind}Trainer").__init__.__code__
    names = list(code.co_varnames[: code.co_argcount])
    if kind == "NashMD":
        names.remove("reward_processing_classes")  # TRL takes the policy's there
    assert [a.arg for a in init.args.args] == names
