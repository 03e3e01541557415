"""What tests of trainers on given answers share: texts, settings, TRL's head in any precision."""

from contextlib import contextmanager

import torch
from datasets import Dataset
from peers import QUIET

SINGLE = 2e-7  # transformers logs the loss, and TRL token statistics, in single precision
TEXTS = [("1+2=", "3", "4"), ("12+34=", "46 is it", "45"), ("x", "y z", "w"), ("7*8-9=", "47", "5")]
SHORT = {name: value for name, value in QUIET.items() if "completion" not in name}
SHORT = {name: value for name, value in SHORT.items() if name != "num_generations"}


class ExactHead:
    """What TRL's fused head computes, by definition, in the precision of the hidden states."""

    @staticmethod
    def apply(hidden, weight, bias, targets, temperature, _chunk, softcap, scale, outputs):
        assert bias is None
        assert softcap is None
        logits = hidden @ weight.T * scale / temperature
        logps = logits.log_softmax(-1)
        entropy = -(logps.exp() * logps).sum(-1) if "entropy" in outputs else None
        means = logits.mean(-1) if "mean_logits" in outputs else None
        squares = (2 * logps).logsumexp(-1) if "log_sum_sq_probs" in outputs else None
        right = logps.argmax(-1) == targets if "is_top1" in outputs else None
        return logps.gather(-1, targets[:, None])[:, 0], entropy, squares, means, right


def labelled_rows(kind="texts", count=12):
    """Labelled answers as texts or conversations, most of them desirable."""
    texts = [
        (p * (1 + i // 4), (c, r)[i % 3 == 0 or i == 1], not (i % 3 == 0 or i == 1))
        for i, (p, c, r) in enumerate(TEXTS * 5)
    ][:count]
    if kind == "texts":
        named = [{"prompt": p, "completion": c, "label": label} for p, c, label in texts]
    else:
        named = [
            {
                "prompt": [{"role": "user", "content": p}],
                "completion": [{"role": "assistant", "content": c}],
                "label": label,
            }
            for p, c, label in texts
        ]
    return Dataset.from_list(named)


@contextmanager
def in_double():
    """Numbers become tensors of 64 bits, those of a reference that is computed beforehand too."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
