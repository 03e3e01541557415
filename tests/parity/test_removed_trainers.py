"""Trainers that TRL had once, from the source of the last release with each: where ours differ."""

import random
from collections import defaultdict
from contextlib import nullcontext
from itertools import chain
from types import SimpleNamespace

import pytest
import torch
from accelerate import Accelerator
from peers import build, difference, repeated
from releases import class_of, wheel
from test_loss_grid import batch
from test_releases import config, ours, peer, theirs

import core
from core.losses.kl import k3
from core.losses.perception import perception_kl, perception_objective

TOLERANCE = 1e-12
GSPO_TOKEN, GFPO, PAPO = "1.13", "1.7.1", "1.7.1"
THEN = "1.7"  # the semantics of GFPO's and PAPO's last release
EXPERIMENTAL = "trl/experimental"
LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo")
OF_TOKENS = ("bnpo", "dapo")  # means over tokens; the others are over completions


def with_gradients(side, *tensors):
    """A loss of some tensors, and its gradients to each of them."""
    leaves = [x.clone().requires_grad_() for x in tensors]
    loss = side(*leaves)
    return loss.detach(), *torch.autograd.grad(loss, leaves, materialize_grads=True)


def worst(mine, other):
    """The largest difference of a loss or gradient."""
    return max(difference(a, b) for a, b in zip(mine, other, strict=True))


def given(shape="row"):
    """The log-probabilities of a micro-batch, and what else a loss reads of it."""
    inputs = batch(shape)
    del inputs["sampling_per_token_logps"]
    return inputs.pop("logps"), inputs


@pytest.mark.parametrize("changes", [{}, {"beta": 0.1}, {"delta": 1.5}, {"epsilon_high": 0.4}])
@pytest.mark.parametrize("shape", ["row", "tokens"])
@pytest.mark.parametrize("loss_type", LOSSES)
def test_gspo_token(loss_type, shape, changes, tmp_path, measured):
    """The same with advantages of completions and of tokens."""
    path, level = wheel(GSPO_TOKEN), {"importance_sampling_level": "sequence_token"}
    settings = {"loss_type": loss_type, "use_bias_correction_kl": False, "epsilon": 0.1}
    c = config(GSPO_TOKEN, tmp_path, **level, **settings | changes)
    accelerator, (logps, inputs) = Accelerator(cpu=True), given(shape)
    member = f"{EXPERIMENTAL}/gspo_token/grpo_trainer.py"
    kind = class_of(path, member, parent=class_of(path))

    def other(x):
        return peer(GSPO_TOKEN, c, inputs, x, accelerator, kind)._compute_loss(None, inputs)

    mine = with_gradients(lambda x: ours(c, inputs, x, accelerator), logps)
    assert measured("gspo_token 1.13", worst(mine, with_gradients(other, logps))) < TOLERANCE
    assert mine[1].any()


LENGTHS = (3, 8, 1, 6, 7, 2, 5, 4)  # of two groups
SCORES = {
    "shortest": lambda rewards: [-length for length in LENGTHS],  # noqa: ARG005
    "efficient": lambda rewards: [r / n for r, n in zip(rewards, LENGTHS, strict=True)],
}


def paid(completion_ids, **_):
    """A reward that differs within a group, and so does what it is per token."""
    return [sum(ids) / 100 for ids in completion_ids]


def dictated(tokenizer):
    """A rollout function with completions of known lengths."""
    draw, end = random.Random(3), [tokenizer.eos_token_id]
    completions = [[draw.randrange(5, 64) for _ in range(n - 1)] + end for n in LENGTHS]

    def rollout(prompts, trainer):  # noqa: ARG001 - the caller's signature
        return {"prompt_ids": [[7]] * 8, "completion_ids": completions, "logprobs": None}

    return rollout


def gfpo(c, tokenizer, completions, asked):
    """TRL's rollout of completions, filtered; what its filter is asked is appended to `asked`."""
    rewards, kept = paid(completions), c.selection_kept
    scores = torch.tensor(SCORES[c.rollout_selection](rewards)).view(-1, c.num_generations)

    def judge(group_completions, group_rewards):
        asked.append((group_completions, group_rewards))
        return scores.tolist()

    kind = class_of(
        wheel(GFPO),
        f"{EXPERIMENTAL}/gfpo/gfpo_trainer.py",
        "GFPOTrainer",
        methods=("_generate_and_score_completions",),
        gather_object=list,
        is_conversational=lambda row: False,  # noqa: ARG005
        disable_gradient_checkpointing=lambda *_: nullcontext(),
    )
    trainer = object.__new__(kind)
    said = ([[7]] * 8, completions, None, completions, sum(LENGTHS), None, {}, None, None)
    vars(trainer).update(
        {name: value for name, value in vars(c).items() if not name.startswith("_")},
        args=c,
        accelerator=SimpleNamespace(device="cpu", process_index=0, gather=lambda x: x),
        model=SimpleNamespace(training=True),
        _tokenizer=tokenizer,
        processing_class=tokenizer,
        _generate=lambda prompts: said,  # noqa: ARG005
        _calculate_rewards=lambda *_: torch.tensor(rewards).unsqueeze(1),
        reward_weights=torch.ones(1),
        reward_func_names=["length"],
        num_remains_in_group=kept,
        group_filter_func=judge,
        _metrics={"train": defaultdict(list)},
        _logs=defaultdict(list, rewards=defaultdict(list)),
    )
    return trainer._generate_and_score_completions([{"prompt": "7"}] * 8)


def advantages_of(found):
    """The advantage of each completion of a rollout."""
    pairs = zip(found["completion_ids"], found["completion_mask"].bool(), strict=True)
    rows = [tuple(ids[mask].tolist()) for ids, mask in pairs]
    return dict(zip(rows, found["advantages"].tolist(), strict=True))


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
@pytest.mark.parametrize("selection", SCORES)
def test_gfpo_keeps_the_same_with_the_same_advantages(
    selection, scale, saved_llama, tiny_tokenizer, tmp_path
):
    """Ours has the others too, with advantage 0; TRL's filter got the texts of other groups."""
    settings = {"rollout_selection": selection, "selection_kept": 2, "scale_rewards": scale}
    settings |= {"rewards": paid, "rollout": (rollout := dictated(tiny_tokenizer))}
    trainer = build(core, saved_llama, tiny_tokenizer, tmp_path, **settings)
    trainer.model.train()
    found = trainer.rollout(repeated(trainer, 8))
    completions, asked = rollout(None, None)["completion_ids"], []
    other = gfpo(trainer.args, tiny_tokenizer, completions, asked)
    mine, kept = advantages_of(found), advantages_of(other)
    assert len(mine) == 8
    assert len(kept) == 4
    assert {ids: mine[ids] for ids in kept} == pytest.approx(kept, rel=1e-6)
    assert all(mine[ids] == 0 for ids in mine.keys() - kept)
    assert trainer.count_tokens(found) == sum(LENGTHS)
    assert other["num_items_in_batch"] == sum(len(ids) for ids in kept) < sum(LENGTHS)
    texts = tiny_tokenizer.batch_decode(completions, skip_special_tokens=True)
    ((groups, rewards),) = asked
    assert groups == [texts[:4], texts[1:5]] != [texts[:4], texts[4:]]
    assert [*chain(*rewards)] == pytest.approx(paid(completions))


@pytest.mark.parametrize("beta", [0.0, 0.1])
@pytest.mark.parametrize("loss_type", LOSSES)
def test_gfpo_divided_by_what_it_kept_and_ours_by_all(loss_type, beta, tmp_path, measured):
    """Ours is the mean of TRL's of the kept and of the rejected, whose advantages are 0.

    Without a KL those add nothing, so that ours is as much smaller as fewer were kept.
    """
    kl = {"beta": beta, "use_bias_correction_kl": False}
    c = config(THEN, tmp_path, loss_type=loss_type, epsilon=0.1, **kl)
    accelerator, (logps, inputs) = Accelerator(cpu=True), given()
    kept = torch.tensor([True, False, True, False])
    inputs["advantages"] = inputs["advantages"] * kept

    def part(side, rows, x):
        taken = {key: v[rows] for key, v in inputs.items() if v.dim()}
        taken["num_items_in_batch"] = taken["completion_mask"].sum()
        return side(c, taken, x[rows], accelerator)

    def peers(c, taken, x, accelerator):
        return theirs(THEN, c, taken, x, accelerator)

    def share(rows):
        tokens = inputs["completion_mask"].sum(1).double()
        weight = tokens if loss_type in OF_TOKENS else torch.ones_like(tokens)
        return weight[rows].sum() / weight.sum()

    whole = with_gradients(lambda x: part(ours, torch.ones(4, dtype=torch.bool), x), logps)
    taken, left = (with_gradients(lambda x, r=r: part(peers, r, x), logps) for r in (kept, ~kept))
    parts = [share(kept) * a + share(~kept) * b for a, b in zip(taken, left, strict=True)]
    assert measured("gfpo 1.7.1, by what was kept", worst(whole, parts)) < TOLERANCE
    assert left[1].any() == (beta > 0)
    assert whole[1].any()


def papo(c, inputs, logps, masked, accelerator, weights):
    """TRL's loss, whose passes with the picture and with a masked one say what is given."""
    kind = class_of(
        wheel(PAPO),
        f"{EXPERIMENTAL}/papo/papo_trainer.py",
        "PAPOTrainer",
        methods=("_compute_loss", "_mask_image"),
    )
    trainer = peer(THEN, c, inputs, logps, accelerator, kind)
    picture = torch.ones(4, 3, 8, 8)

    def said(*_, pixel_values, **__):
        x = logps if pixel_values is picture else masked
        return x, -x, None  # the entropy of PAPO's own code

    names = ("perception_loss_weight", "der_loss_weight1", "der_loss_weight2")
    vars(trainer).update(zip(names, weights, strict=True), mask_ratio=0.6, mask_type="random")
    trainer._get_per_token_logps_and_entropies = said
    return trainer._compute_loss(None, {**inputs, "pixel_values": picture})


def passes(width):
    """Log-probabilities with the picture and without it, `width` apart, and the other inputs."""
    logps, inputs = given()
    noise = torch.randn(4, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return logps, logps + width * noise, inputs


@pytest.mark.parametrize("loss_type", ["grpo", "dapo"])
def test_papo(loss_type, tmp_path, measured):
    """The policy loss and the entropies are ours, in answers without padding.

    The KL of TRL was of the inverse ratio, and had a gradient to both passes; the terms were not
    divided by the accumulation, as the loss was.
    """
    c = config(THEN, tmp_path, loss_type=loss_type, epsilon=0.1)
    accelerator, (logps, masked, inputs) = Accelerator(cpu=True), passes(0.2)
    mask = inputs["completion_mask"] = torch.ones(4, 5)
    entropies = {"gamma": 0.0, "eta": 0.03, "eta_masked": 0.05}

    def mine(x, y):
        terms = perception_objective(x, y, mask, **entropies)
        return ours(c, inputs, x, accelerator) - terms.mean() - 0.1 * k3(x, y).mean()

    def other(x, y):
        return papo(c, inputs, x, y, accelerator, (0.1, 0.03, 0.05))

    error = worst(with_gradients(mine, logps, masked), with_gradients(other, logps, masked))
    assert measured("papo 1.7.1, with its KL", error) < TOLERANCE
    torch.testing.assert_close(perception_kl(logps, masked), k3(masked, logps))
    assert k3(logps, masked).max() < 0.2  # beyond which TRL bounded it


def test_papo_bounded_the_kl_and_took_padding_in(tmp_path):
    c = config(THEN, tmp_path, loss_type="grpo")
    accelerator, (logps, masked, inputs) = Accelerator(cpu=True), passes(2.0)
    plain, found = (papo(c, inputs, logps, masked, accelerator, (w, 0.0, 0.0)) for w in (0.0, 1.0))
    kl, mask = k3(logps, masked), inputs["completion_mask"].bool()
    assert (plain - found).item() == pytest.approx(kl.clamp(max=0.2).mean().item(), rel=1e-12)
    assert kl[mask].max() > 0.2
    assert kl[~mask].any()
