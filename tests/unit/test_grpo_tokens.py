import random

import torch

from core.collect.prompt_order import GroupSampler
from core.forward.logps import frozen_logps, token_logps


def test_padding_and_grouping_of_rows_change_no_logps(build_llama):
    model = build_llama().double()
    draw = random.Random(0)
    lengths = [(draw.randrange(1, 9), draw.randrange(1, 12)) for _ in range(40)]
    batch = {
        "prompt_ids": torch.randint(5, 60, (40, 8)),
        "prompt_mask": torch.tensor([[0] * (8 - p) + [1] * p for p, _ in lengths]),
        "completion_ids": torch.randint(5, 60, (40, 11)),
        "completion_mask": torch.tensor([[1] * c + [0] * (11 - c) for _, c in lengths]),
    }
    together, entropy, _ = token_logps(model, batch, 0.7, with_entropy=True)
    alone = frozen_logps(model, batch, 0.7, [[i] for i in reversed(range(40))]).logps
    torch.testing.assert_close(together, alone, atol=1e-6, rtol=0)
    assert (together == 0).equal(batch["completion_mask"] == 0)
    assert ((entropy > 0) == (batch["completion_mask"] == 1)).all()
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    logits = model(input_ids=ids, attention_mask=mask).logits[:, 7:-1] / 0.7
    plain = logits.log_softmax(-1)
    chosen = plain.gather(-1, batch["completion_ids"].unsqueeze(-1)).squeeze(-1)
    kept = batch["completion_mask"] == 1
    torch.testing.assert_close(together[kept], chosen[kept], atol=1e-6, rtol=0)
    spread = -(plain.exp() * plain).sum(-1)
    torch.testing.assert_close(entropy[kept], spread[kept].detach(), atol=1e-6, rtol=0)


def test_sampler_repeats_whole_groups_and_rollouts():
    sampler = GroupSampler("abcdefg", group=2, prompts=3, repeats=2, shuffle=False)
    first, second = [0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5]
    assert list(sampler) == first * 2 + second * 2
    assert len(sampler) == len(list(sampler))


def test_sampler_order_depends_on_seed_and_epoch_alone():
    sampler = GroupSampler(range(50), group=1, seed=7)
    orders = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        orders.append(list(sampler))
    assert orders[0] == orders[2] != orders[1]
    generator = torch.Generator().manual_seed(7)
    drawn = [torch.randperm(50, generator=generator).tolist() for _ in range(2)]
    assert orders[:2] == drawn  # as one generator gives them epoch after epoch
