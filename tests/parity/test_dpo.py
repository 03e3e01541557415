"""Our DPO trainer and TRL's take the same steps and log the same numbers."""

import copy

import pytest
import trl
from answer_peers import SHORT, SINGLE, TEXTS, ExactHead
from datasets import Dataset
from peers import difference, double

import core

TOLERANCE = 1e-12


def rows(kind):
    """Pairs as texts, as conversations, or with the prompt in both answers."""
    texts = [(p * (1 + i // 4), c, r) for i, (p, c, r) in enumerate(TEXTS * 3)]
    if kind == "texts":
        named = [{"prompt": p, "chosen": c, "rejected": r} for p, c, r in texts]
    elif kind == "implicit":
        named = [{"chosen": p + " " + c, "rejected": p + " " + r} for p, c, r in texts]
    else:
        named = [
            {
                "prompt": [{"role": "user", "content": p}],
                "chosen": [{"role": "assistant", "content": c}],
                "rejected": [{"role": "assistant", "content": r}],
            }
            for p, c, r in texts
        ]
    return Dataset.from_list(named)


def trained(package, model, reference, tokenizer, folder, kind, **changes):
    """A trainer of `package` after some optimizer steps, and what it logged."""
    args = package.DPOConfig(
        output_dir=str(folder),
        **SHORT | {"learning_rate": 1e-2, "optim": "sgd"} | changes,
    )
    trainer = package.DPOTrainer(
        model=copy.deepcopy(model),
        ref_model=copy.deepcopy(reference),
        args=args,
        train_dataset=rows(kind),
        eval_dataset=rows(kind).select(range(5)),
        processing_class=tokenizer,
    )
    trainer.train()
    return trainer, [row for row in trainer.state.log_history if "loss" in row]


CASES = {
    "defaults": {},
    "accumulated": {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 3},
    "several losses": {
        "loss_type": ["sigmoid", "bco_pair", "sft"], "loss_weights": [0.8, 0.2, 1.0],
    },
    "length-desensitised": {"ld_alpha": 0.5},
    "weighted": {"use_weighting": True, "beta": 0.01},
    "forward KL": {"f_divergence_type": "forward_kl"},
    "sorted": {"loss_type": "aot", "label_smoothing": 0.1},
    "IPO": {"loss_type": "ipo", "beta": 0.5},
    "cut": {"max_length": 7},
    "moving reference": {
        "sync_ref_model": True, "ref_model_sync_steps": 1, "ref_model_mixup_alpha": 0.5,
    },
}  # fmt: skip


RUNS = [("defaults", "texts"), ("defaults", "implicit"), *((case, "chats") for case in CASES)]
LONG = ("defaults", "several losses", "moving reference")  # also over twenty steps


@pytest.mark.parametrize(
    ("case", "kind", "steps"),
    [
        *((case, kind, 3) for case, kind in RUNS),
        *(pytest.param(case, "chats", 20, marks=pytest.mark.long) for case in LONG),
    ],
)
def test_steps_are_those_of_trl(
    case, kind, steps, build_llama, tiny_tokenizer, tmp_path, monkeypatch, measured
):
    monkeypatch.setattr(trl.trainer.utils, "_ChunkedLogProbFunction", ExactHead)
    model, reference = double(build_llama()), double(build_llama(seed=1))
    settings = {"per_device_train_batch_size": 4, "max_steps": steps, **CASES[case]}
    (ours, log), (theirs, their_log) = (
        trained(package, model, reference, tiny_tokenizer, tmp_path, kind, **settings)
        for package in (core, trl)
    )
    for row, their_row in zip(log, their_log, strict=True):
        assert their_row.keys() - {"epoch", "step"} <= row.keys()
        for name, value in their_row.items():
            assert measured(name, difference(row[name], value)) < SINGLE, name
    for (name, ours_weight), their_weight in zip(
        ours.model.named_parameters(), theirs.model.parameters(), strict=True
    ):
        assert measured("weights", difference(ours_weight, their_weight)) < TOLERANCE, name
