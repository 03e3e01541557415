"""A whole run: what our trainer sampled, replayed through TRL's, ends at the same weights."""

import pytest
import torch
import trl
from peers import build, difference, prompts, shared_metrics

import core

STEPS = 24
TIMES = {"step_time", "train_runtime", "train_samples_per_second", "train_steps_per_second"}
COMMON = {
    "max_steps": STEPS,
    "gradient_accumulation_steps": 2,
    "per_device_train_batch_size": 4,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "linear",
    "warmup_steps": 3,
}
RUNS = {
    "dapo, one update": {"beta": 0.04},
    "grpo, two updates": {"loss_type": "grpo", "beta": 0.04, "steps_per_generation": 4},
    "dapo, two updates, two iterations": {"steps_per_generation": 4, "num_iterations": 2},
    "dapo, the paper's clips, two iterations": {
        "steps_per_generation": 4,
        "num_iterations": 2,
        "epsilon": 0.2,
        "epsilon_high": 0.28,
    },
    "gspo, the paper's clips, two iterations": {
        "loss_type": "grpo",
        "importance_sampling_level": "sequence",
        "steps_per_generation": 4,
        "num_iterations": 2,
        "epsilon": 3e-4,
        "epsilon_high": 4e-4,
    },
    "dr_grpo, two iterations": {
        "loss_type": "dr_grpo",
        "num_iterations": 2,
        "epsilon_high": 0.28,
        "delta": 1.5,
        "scale_rewards": "none",
    },
    "bnpo, moving reference": {
        "loss_type": "bnpo",
        "beta": 0.1,
        "use_bias_correction_kl": False,
        "sync_ref_model": True,
        "ref_model_sync_steps": 5,
        "mask_truncated_completions": True,
        "max_completion_length": 32,
    },
    "cispo, masks, two iterations": {
        "loss_type": "cispo",
        "epsilon_high": 1.1,
        "steps_per_generation": 4,
        "num_iterations": 2,
        "top_entropy_quantile": 0.4,
        "off_policy_mask_threshold": 0.001,
    },
    "luspo, a steered bonus": {
        "loss_type": "luspo",
        "importance_sampling_level": "sequence",
        "steps_per_generation": 4,
        "use_adaptive_entropy": True,
        "entropy_coef": 0.02,
        "entropy_target": 3.0,
    },
    "grpo, sequence ratio, windows over two rollouts": {
        "loss_type": "grpo",
        "importance_sampling_level": "sequence",
        "steps_per_generation": 3,
        "num_generations": 6,
        "scale_rewards": "batch",
        "temperature": 0.9,
    },
}


def digit_reward(completions, **_):
    """The share of digits: something that a policy learns in a few steps."""
    texts = [c[0]["content"] for c in completions]
    return [sum(ch.isdigit() for ch in text) / (len(text) + 1) for text in texts]


def recorder(rollouts):
    """Our trainer, which keeps what it samples and what the global generator was after that."""

    class Recorder(core.GRPOTrainer):
        def generate(self, prompts):
            generated = super().generate(prompts)
            out = {
                "prompt_ids": generated.prompt_ids,
                "completion_ids": generated.completion_ids,
                "logprobs": None,
            }
            rollouts.append((prompts, out, torch.get_rng_state()))
            return generated

    return Recorder


class Player:
    """A rollout function that plays the recorded rollouts and leaves the generator as it was."""

    def __init__(self, rollouts):
        self.rollouts = iter(rollouts)

    def __call__(self, rows, trainer):  # noqa: ARG002 - the caller's signature
        expected, out, state = next(self.rollouts)
        assert rows == expected  # the same prompts in the same order
        torch.set_rng_state(state)
        return out


def curve(trainer):
    return [row for row in trainer.state.log_history if "loss" in row]


def logs_differ(mine, other):
    """The largest difference among the logged values of two steps, times left out."""
    assert shared_metrics(mine) - TIMES == set(other) - TIMES
    silent = {n for n in other if other[n] is None}  # nothing to average, as when all are masked
    assert silent == {n for n in mine if mine[n] is None}
    names = set(other) - TIMES - silent
    return max(abs(mine[n] - other[n]) / max(1.0, abs(other[n])) for n in names)


@pytest.mark.parametrize("run", RUNS)
def test_replay(run, saved_llama, tiny_tokenizer, tmp_path, measured):
    options = COMMON | RUNS[run] | {"rewards": digit_reward, "rows": prompts(14)}
    rollouts = []
    kind = recorder(rollouts)
    ours = build(core, saved_llama, tiny_tokenizer, tmp_path / "a", kind=kind, **options)
    ours.train()
    player = Player(rollouts)
    theirs = build(trl, saved_llama, tiny_tokenizer, tmp_path / "b", rollout=player, **options)
    theirs.train()
    assert next(player.rollouts, None) is None  # both used the same number of rollouts
    mine, other = curve(ours), curve(theirs)
    assert len(mine) == len(other) == STEPS
    losses = difference([row["loss"] for row in mine], [row["loss"] for row in other])
    logs = max(logs_differ(a, b) for a, b in zip(mine, other, strict=True))
    start, end, peer = (
        torch.cat([p.detach().flatten() for p in m.parameters()])
        for m in (saved_llama, ours.model, theirs.model)
    )
    assert (end - start).abs().max() > 5e-3  # it did train
    assert measured(f"run, {run}: weights", (end - peer).abs().max().item()) < 1e-5
    assert measured(f"run, {run}: loss curve", losses) < 1e-5
    assert measured(f"run, {run}: all logs", logs) < 1e-4
