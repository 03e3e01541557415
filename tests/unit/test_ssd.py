"""Self-distillation: what is sampled and left out, from which model, and splits of a batch."""

import pytest
import torch
from datasets import Dataset
from grpo_runs import double, logs, weights
from hypothesis import given
from hypothesis import strategies as st
from lora_models import lora

from core import SSDConfig, SSDTrainer
from core.collect.generation import Generated
from core.distillation.ssd import is_stub
from core.forward import micro_pieces
from eval.errors import BadValue

QUIET = {
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
    "max_steps": 3,
    "per_device_train_batch_size": 8,
    "max_completion_length": 12,
    "learning_rate": 1e-2,
    "lr_scheduler_type": "constant",
    "optim": "sgd",
    "filter_empty": False,
}
METRICS = {
    *("ssd/cross_entropy_loss", "ssd/active_sample_ratio", "num_tokens"),
    *(f"completions/{name}_length" for name in ("mean", "min", "max")),
}


def sums(count=16):
    return Dataset.from_dict({"prompt": [f"{i:02}+{i:02}=" for i in range(count)]})


@pytest.fixture
def make_ssd(build_llama, tiny_tokenizer, tmp_path):
    """Make a trainer; `rollouts` receives what it samples, `plays` is what it has instead."""

    def make(model=None, *, rollouts=None, plays=None, data=None, peft_config=None, **changes):
        class Ours(SSDTrainer):
            def generate(self, prompts):
                generated = super().generate(prompts) if plays is None else next(played)
                if rollouts is not None:
                    rollouts.append(generated)
                return generated

        played = iter(plays or ())
        return Ours(
            model=model or build_llama(),
            args=SSDConfig(output_dir=str(tmp_path), **QUIET | changes),
            train_dataset=sums() if data is None else data,
            processing_class=tiny_tokenizer,
            peft_config=peft_config,
        )

    return make


def test_training_moves_the_policy_and_logs_what_trl_logs(make_ssd):
    trainer = make_ssd(gradient_accumulation_steps=2)
    start = weights(trainer.model).clone()
    trainer.train()
    assert (weights(trainer.model) - start).abs().max() > 1e-3
    rows = [row for row in trainer.state.log_history if "loss" in row]
    assert len(rows) == 3
    for row in rows:
        assert row.keys() >= METRICS
        assert row["loss"] == pytest.approx(row["ssd/cross_entropy_loss"], rel=0.05)


def test_samples_become_likelier(make_ssd):
    """Trained on again and again, the completions of one rollout lose their surprise."""
    rollouts = []
    make_ssd(rollouts=rollouts, max_steps=1).train()
    again = make_ssd(plays=rollouts * 12, max_steps=12, learning_rate=0.05)
    again.train()
    losses = logs(again, "ssd/cross_entropy_loss")
    assert losses[-1] < losses[0] - 0.3


def test_the_loss_is_the_mean_over_tokens(make_ssd, build_llama):
    rollouts = []
    trainer = make_ssd(rollouts=rollouts, max_steps=1, temperature=1.7, top_k=9, max_grad_norm=0.0)
    trainer.train()
    (generated,), model, values = rollouts, build_llama(), []
    for prompt, ids in zip(generated.prompt_ids, generated.completion_ids, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
        values += logits.log_softmax(-1)[range(len(ids)), list(ids)].neg().tolist()
    expected = sum(values) / len(values)
    assert logs(trainer, "loss") == [pytest.approx(expected, rel=1e-4)]


SPLITS = {
    "in four micro-batches": {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 4},
    "padded": {"pad_to_multiple_of": 32},
    "in pieces": {},
}


def of_lengths(tokenizer, *lengths):
    """Completions of these lengths for prompts of one length; those below 10 are stubs."""
    completions = [[7 + (3 * row + i) % 50 for i in range(n)] for row, n in enumerate(lengths)]
    prompts = [[6, 8 + row, 9] for row in range(len(lengths))]
    texts = tokenizer.batch_decode(completions)
    return Generated(prompt_ids=prompts, completion_ids=completions, completions=texts)


@pytest.mark.parametrize("split", SPLITS)
def test_a_split_changes_no_update(split, make_ssd, build_llama, tiny_tokenizer, monkeypatch):
    rollouts = [of_lengths(tiny_tokenizer, 12, 3, 11, 12, 5, 10, 2, 12)]
    settings = {"max_steps": 1, "filter_empty": True}
    whole = make_ssd(double(build_llama()), plays=rollouts, **settings)
    whole.train()
    assert logs(whole, "ssd/active_sample_ratio") == [5 / 8]
    if split == "in pieces":
        monkeypatch.setitem(micro_pieces.TOKENS, "cpu", 1)
    other = make_ssd(double(build_llama()), plays=rollouts, **settings | SPLITS[split])
    other.train()
    assert (weights(whole.model) - weights(other.model)).abs().max() < 1e-8
    assert (weights(whole.model) - weights(double(build_llama()))).abs().max() > 1e-4
    assert logs(other, "loss") == pytest.approx(logs(whole, "loss"), rel=1e-6)


@pytest.mark.parametrize("adapters", [False, True])
@pytest.mark.parametrize("policy", ["policy", "reference"])
@pytest.mark.filterwarnings("ignore")  # peft's, about a config without a name
def test_the_frozen_start_samples_if_asked(policy, adapters, make_ssd):
    """A training at rate 0 has the samples of the start."""
    rollouts = []
    trainer = make_ssd(
        rollouts=rollouts,
        rollout_policy=policy,
        learning_rate=0.5,
        temperature=0.5,
        peft_config=lora() if adapters else None,
    )
    trainer.train()
    frozen = []
    still = make_ssd(rollouts=frozen, rollout_policy=policy, learning_rate=0.0, temperature=0.5)
    still.train()
    same = [a.completion_ids == b.completion_ids for a, b in zip(rollouts, frozen, strict=True)]
    assert same[0]
    assert all(same) == (policy == "reference")


def test_a_resumed_run_is_the_unbroken_one(make_ssd, tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 3, "max_steps": 5}
    settings |= {"steps_per_generation": 2, "rollout_policy": "reference"}
    ends = []
    for start in (None, str(tmp_path / "checkpoint-3")):
        trainer = make_ssd(**settings)
        trainer.train(resume_from_checkpoint=start)
        ends.append((weights(trainer.model).tolist(), logs(trainer, "loss")))
    assert ends[1] == ends[0]


def test_long_prompts_keep_their_end(make_ssd):
    rollouts, whole = [], []
    make_ssd(rollouts=rollouts, max_prompt_length=4, max_steps=1).train()
    make_ssd(rollouts=whole, max_prompt_length=None, max_steps=1).train()
    assert {len(ids) for ids in whole[0].prompt_ids} == {6}
    assert rollouts[0].prompt_ids == [ids[-4:] for ids in whole[0].prompt_ids]


def test_evaluation_weighs_tokens(make_ssd, tiny_tokenizer):
    lengths = [12, 3, 5, 2], [11, 12, 9, 12]
    rollouts = [of_lengths(tiny_tokenizer, *each) for each in lengths]
    trainer = make_ssd(plays=rollouts, per_device_eval_batch_size=4)
    metrics, losses = trainer.evaluate(sums(8)), []
    for generated in rollouts:
        batch = trainer.tensors(generated)
        batch["num_items_in_batch"] = trainer.count_tokens(batch)
        losses.append(trainer.loss(trainer.model.eval(), batch).item())
    counts = [sum(each) for each in lengths]
    mean = sum(a * b for a, b in zip(losses, counts, strict=True)) / sum(counts)
    assert abs(losses[0] - losses[1]) > 1e-3
    assert metrics["eval_loss"] == pytest.approx(mean, rel=1e-5)
    assert metrics["eval_ssd/cross_entropy_loss"] == pytest.approx(mean, rel=1e-5)


def test_a_rollout_of_stubs_is_said_and_changes_nothing(make_ssd, caplog):
    trainer = make_ssd(max_completion_length=4, filter_empty=True, max_steps=1)
    start = weights(trainer.model).clone()
    trainer.train()
    assert torch.equal(weights(trainer.model), start)
    assert logs(trainer, "ssd/active_sample_ratio") == [0.0]
    assert "none of 8 completions is trained on" in caplog.text


@given(st.text(alphabet="ab \n", max_size=14))
def test_a_stub_is_empty_or_a_short_line(text):
    lines = text.strip().split("\n")
    assert is_stub(text) == (len(lines) == 1 and len(lines[0]) < 10)
    assert is_stub([{"role": "assistant", "content": text}]) == is_stub(text)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"num_generations": 4}, "num_generations=4 is not supported: each prompt has one"),
        ({"reward_weights": [1.0]}, "completions have no rewards"),
        ({"rollout_selection": "varied"}, "completions have no rewards"),
        ({"sync_ref_model": True}, "the frozen starting model"),
        ({"log_multimodal": False}, "images are not supported"),
        ({"max_prompt_length": 0}, "max_prompt_length=0: expected at least 1"),
        ({"top_p": 0.0}, "top_p=0.0"),
        ({"temperature": -1.0}, "temperature=-1.0"),
        ({"rollout_policy": "teacher"}, "expected one of 'policy', 'reference'"),
        ({"generation_batch_size": 8, "steps_per_generation": 1}, "are both set"),
        ({"rollout_policy": "reference", "rollout_lag": 2}, "rollout_lag"),
    ],
    ids=str,
)
def test_settings_without_an_effect_are_refused(settings, line, tmp_path):
    with pytest.raises(BadValue, match=line):
        SSDConfig(output_dir=str(tmp_path), **QUIET | settings)
