"""With the engine that draws as transformers does, our trainer and TRL's sample the same run."""

import pytest
import torch
import trl
from peers import build, prompts
from test_replay import COMMON, curve, digit_reward, logs_differ

import core

RUNS = {
    "dapo": {},
    "grpo, two updates, truncated sampling": {
        "loss_type": "grpo",
        "beta": 0.04,
        "steps_per_generation": 4,
        "temperature": 0.8,
        "top_p": 0.9,
        "top_k": 20,
    },
}


@pytest.mark.parametrize("run", RUNS)
def test_both_sample_the_same_tokens(run, saved_llama, tiny_tokenizer, tmp_path, measured):
    options = COMMON | RUNS[run] | {"rewards": digit_reward, "rows": prompts(14)}
    ours = build(
        core, saved_llama, tiny_tokenizer, tmp_path / "a", rollout_engine="equal", **options
    )
    ours.train()
    theirs = build(trl, saved_llama, tiny_tokenizer, tmp_path / "b", **options)
    theirs.train()
    logs = [logs_differ(a, b) for a, b in zip(curve(ours), curve(theirs), strict=True)]
    end, peer = (
        torch.cat([p.detach().flatten() for p in m.parameters()])
        for m in (ours.model, theirs.model)
    )
    assert measured(f"own samples, {run}: weights", (end - peer).abs().max().item()) < 1e-5
    assert measured(f"own samples, {run}: all logs", max(logs)) < 1e-4
