"""Optimal advantage regression as TRL's: a whole run on what our trainer sampled."""

import copy

import torch
from datasets import Dataset
from peers import QUIET, double
from test_replay import curve, digit_reward
from trl.experimental.a2po import A2POConfig, A2POTrainer

import core

STEPS = 10
COMMON = {
    **{name: value for name, value in QUIET.items() if name != "num_generations"},
    "max_steps": STEPS,
    "per_device_train_batch_size": 4,
    "learning_rate": 1e-3,
    "beta2": 0.05,
}


def sums():
    """Prompts of one length, with values."""
    texts = [f"{i:02}+{i:02}=" for i in range(12)]
    rows = [[{"role": "user", "content": text}] for text in texts]
    return Dataset.from_dict({"prompt": rows, "optimal_value": [i / 20 for i in range(12)]})


class Recorder(core.A2POTrainer):
    """Our trainer, which keeps its micro-batches."""

    def cut_rollout(self, batch):
        parts = super().cut_rollout(batch)
        self.kept.extend(copy.deepcopy(parts.micro_batches))
        return parts


class Player(A2POTrainer):
    """TRL's, which plays them."""

    def _estimate_optimal_values(self):
        self._optimal_values = {}

    def _prepare_inputs(self, inputs):
        del inputs
        batch = self.kept.pop(0)
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
        width = batch["completion_ids"].size(1)
        with torch.no_grad():
            logps = self._get_sequence_logps(self.ref_model, ids, mask, width)
        return {
            "input_ids": ids,
            "attention_mask": mask,
            "logits_to_keep": width,
            "ref_logps": logps,
            "rewards": batch["advantages"],  # less no value: their difference is the same
            "v_star": torch.zeros_like(batch["advantages"]),
        }


def test_replay(saved_llama, tiny_tokenizer, tmp_path, measured):
    model = double(copy.deepcopy(saved_llama))
    common = {"train_dataset": sums(), "processing_class": tiny_tokenizer}
    args = core.A2POConfig(str(tmp_path / "a"), **COMMON)
    ours = Recorder(copy.deepcopy(model), digit_reward, args, **common)
    ours.kept = []
    ours.train()
    args = A2POConfig(str(tmp_path / "b"), **COMMON)
    theirs = Player(copy.deepcopy(model), digit_reward, args, **common)
    theirs.kept = ours.kept
    theirs.train()
    assert not theirs.kept
    start, end, peer = (
        torch.cat([p.detach().flatten() for p in m.parameters()])
        for m in (model, ours.model, theirs.model)
    )
    assert (end - start).abs().max() > 1e-3  # it did train
    assert measured("a2po: weights", (end - peer).abs().max().item()) < 1e-12
    pairs = list(zip(curve(ours), curve(theirs), strict=True))
    assert len(pairs) == STEPS
    names = ("loss", "implicit_reward", "advantage")
    logs = max(abs(a[n] - b[n]) / max(1.0, abs(b[n])) for a, b in pairs for n in names)
    assert measured("a2po: logs", logs) < 1e-7  # the loss is summed in 32 bits
