"""Leave-one-out advantages are those of TRL's RLOO, from the same rewards."""

import pytest
import torch
import trl
from peers import QUIET, canned, difference, length_reward, prompts

from core.losses.advantages import leave_one_out

GROUP, ROWS, TOLERANCE = 4, 8, 1e-12
WEIGHTS = [1.0, -0.3]


@pytest.fixture
def peer(saved_llama, tiny_tokenizer, tmp_path):
    """TRL's trainer with given completions."""
    options = {"beta": 0.0, "reward_weights": WEIGHTS, **QUIET}
    trainer = trl.RLOOTrainer(
        model=saved_llama,
        reward_funcs=[length_reward] * len(WEIGHTS),
        args=trl.RLOOConfig(output_dir=str(tmp_path), **options),
        train_dataset=prompts(),
        processing_class=tiny_tokenizer,
    )
    completions = canned(tiny_tokenizer)

    def generate(rows):
        found = completions(rows, trainer)
        said = [[{"role": "assistant", "content": ""}] for _ in rows]
        return found["prompt_ids"], found["completion_ids"], said

    trainer._generate = generate
    trainer.model.train()
    return trainer


def rewards_of(seed, missing):
    """Rewards in double precision, of which a share is missing."""
    draw = torch.Generator().manual_seed(seed)
    found = torch.randn(ROWS, len(WEIGHTS), generator=draw, dtype=torch.float64)
    found[torch.rand(found.shape, generator=draw) < missing] = torch.nan
    return found


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.5])
@pytest.mark.parametrize(("normalised", "scale"), [(False, "none"), (True, "centred_batch")])
def test_advantages(normalised, scale, missing, peer, measured):
    peer.normalize_advantages = normalised
    weights = torch.tensor(WEIGHTS, dtype=torch.float64)
    peer.reward_weights = weights
    rows = [dict(peer.train_dataset[i // GROUP]) for i in range(ROWS)]
    for seed in range(5):
        rewards = rewards_of(seed, missing)
        peer._calculate_rewards = lambda *_, given=rewards: given
        theirs = peer._generate_and_score_completions(rows)["advantages"]
        ours = leave_one_out(rewards, weights, GROUP, scale).values
        assert ours.abs().max() > 0.1
        assert measured("leave-one-out: advantages", difference(ours, theirs)) < TOLERANCE
