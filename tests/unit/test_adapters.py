"""LoRA: what is trained and saved, the reference with adapters off, rollouts, and exact resume."""

import json

import pytest
import torch
from datasets import Dataset
from grpo_runs import digits, logs, prompts
from lora_models import lora, stirred
from peft import PeftModel, PromptTuningConfig, get_peft_model

from core import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
from core.forward.logps import frozen_logps, token_logps
from core.models.load import load_policy
from core.rollout.native.plain_forward import plain_forward_needs
from eval.errors import BadValue, DamagedFile

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
ROWS = [{"prompt": f"{a}+{b}=", "completion": f"{a + b} is it"} for a in range(4) for b in range(3)]


@pytest.fixture
def make_lora(build_llama, tiny_tokenizer, tmp_path):
    """Build a GRPO trainer with new LoRA adapters."""

    def build(folder="out", config=None, model=None, **changes):
        settings = {
            "output_dir": str(tmp_path / folder),
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 2,
            "num_generations": 4,
            "max_completion_length": 8,
            "max_steps": 3,
            "logging_steps": 1,
            "learning_rate": 1e-2,
            "beta": 0.1,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
        }
        return GRPOTrainer(
            model or build_llama(seed=1),
            digits,
            GRPOConfig(**settings | changes),
            prompts(6),
            processing_class=tiny_tokenizer,
            peft_config=config or (None if model else lora()),
        )

    return build


def batch():
    """Three completions with padding on both sides."""
    random = torch.Generator().manual_seed(1)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]])
    return {
        "prompt_ids": torch.randint(5, 60, (3, 3), generator=random),
        "prompt_mask": torch.tensor([[1, 1, 1], [0, 1, 1], [0, 0, 1]]),
        "completion_ids": torch.randint(5, 60, (3, 4), generator=random),
        "completion_mask": mask,
    }


def test_only_adapters_are_trained(make_lora, build_llama):
    trainer = make_lora()
    trainer.train()
    start = build_llama(seed=1).state_dict()
    plain = {
        name.replace("base_model.model.", "").replace(".base_layer", ""): value
        for name, value in trainer.model.state_dict().items()
        if "lora_" not in name
    }
    assert plain.keys() == start.keys()
    assert all(torch.equal(value, start[name]) for name, value in plain.items())
    moved = [w for n, w in trainer.model.named_parameters() if "lora_B" in n]
    assert all(weight.abs().max() > 0 for weight in moved)


@pytest.mark.parametrize("init", [True, False])
def test_the_reference_is_the_policy_with_adapters_off(init, make_lora, build_llama):
    """In numbers the starting model's, whatever the adapters are, and in memory the policy's."""
    trainer = make_lora(config=lora(init_lora_weights=init, lora_dropout=0.5))
    stirred(trainer.model)
    found = frozen_logps(trainer.ref_model, batch(), 1.0, [range(3)]).logps
    expected = frozen_logps(build_llama(seed=1), batch(), 1.0, [range(3)]).logps
    assert torch.equal(found, expected)
    assert not torch.allclose(
        frozen_logps(trainer.policy(), batch(), 1.0, [range(3)]).logps, expected, atol=0.1
    )
    own = {w.data_ptr() for w in trainer.ref_model.parameters()}
    shared = {w.data_ptr() for n, w in trainer.model.named_parameters() if "lora_" not in n}
    assert shared <= own
    assert not any(w.requires_grad for w in trainer.ref_model.parameters())


def test_a_model_with_adapters_is_its_own_reference(make_lora, build_llama):
    """Adapters that were trained before are the starting policy, as in TRL."""
    model = stirred(get_peft_model(build_llama(seed=1), lora()))
    expected = frozen_logps(model, batch(), 1.0, [range(3)]).logps
    trainer = make_lora(model=model)
    stirred(trainer.model, scale=0.6)
    assert torch.equal(frozen_logps(trainer.ref_model, batch(), 1.0, [range(3)]).logps, expected)


def test_offline_samples_come_from_the_model_below(make_lora, build_llama):
    trainer = make_lora(rollout_policy="reference", beta=0.0)
    stirred(trainer.model)
    rows = [row["prompt"] for row in prompts(4)]
    plain = make_lora(model=build_llama(seed=1), beta=0.0)
    found, expected = trainer.generate(rows), plain.generate(rows)
    assert found.completion_ids == expected.completion_ids
    trainer.args.rollout_policy = "policy"
    assert trainer.generate(rows).completion_ids != expected.completion_ids


@pytest.mark.parametrize("use_dora", [False, True])
@pytest.mark.parametrize("engine", ["native", "equal", "hf"])
def test_every_engine_samples_from_the_adapted_policy(engine, use_dora, make_lora):
    """Log-probabilities under the policy, not under the model below, as its samples show."""
    trainer = make_lora(rollout_engine=engine, top_k=1, config=lora(use_dora=use_dora))
    stirred(trainer.model)
    generated = trainer.generate([row["prompt"] for row in prompts(4)])
    tensors = trainer.tensors(generated)
    with torch.no_grad():
        trainer.model.eval()
        logps = token_logps(trainer.model, tensors, 0.01).logps
    assert logps.exp()[tensors["completion_mask"].bool()].min() > 0.4  # of likeliest tokens


@pytest.mark.parametrize(
    "settings",
    [{}, {"num_iterations": 3}, {"gradient_checkpointing": True, "config": lora(lora_dropout=0.3)}],
)
def test_a_resumed_run_is_the_same_run(settings, make_lora):
    steps = {"max_steps": 5, "save_strategy": "steps", "save_steps": 2, **settings}
    whole, resumed = make_lora("a", **steps), make_lora("b", **steps)
    whole.train()
    resumed.train(resume_from_checkpoint=f"{whole.args.output_dir}/checkpoint-2")
    ours, theirs = whole.model.state_dict(), resumed.model.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    for name in ("loss", "kl", "reward", "grad_norm", "num_tokens"):
        assert logs(whole, name) == logs(resumed, name)
    assert len(logs(whole, "loss")) == 5


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_below_adapters_changes_no_bit(reentrant, make_lora):
    keywords = {"use_reentrant": reentrant}
    settings = {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": keywords}
    runs = []
    for changes in (settings, {}):  # one after the other: draws come from the global generator
        runs.append(make_lora(max_steps=2, rollout_engine="equal", **changes))
        runs[-1].train()
    ours, theirs = (trainer.model.state_dict() for trainer in runs)
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    assert logs(runs[0], "grad_norm") == logs(runs[1], "grad_norm")
    assert min(logs(runs[0], "grad_norm")) > 0


@pytest.mark.parametrize("use_dora", [False, True])
def test_a_checkpoint_is_pefts_and_loads_as_one_model(use_dora, make_lora, build_llama, tmp_path):
    build_llama(seed=1).save_pretrained(tmp_path / "base")
    config = lora(use_dora=use_dora)
    trainer = make_lora(model=load_policy(str(tmp_path / "base")), config=config, max_steps=1)
    trainer.train()
    stirred(trainer.model)
    trainer.save_model(str(tmp_path / "saved"))
    files = {path.name for path in (tmp_path / "saved").iterdir()}
    assert {"adapter_config.json", "adapter_model.safetensors"} <= files
    assert "model.safetensors" not in files
    again = PeftModel.from_pretrained(build_llama(seed=1), tmp_path / "saved").eval()
    expected = frozen_logps(trainer.policy(), batch(), 1.0, [range(3)]).logps
    assert torch.equal(frozen_logps(again, batch(), 1.0, [range(3)]).logps, expected)
    merged = load_policy(str(tmp_path / "saved"))
    assert plain_forward_needs(merged.eval()) is None
    torch.testing.assert_close(frozen_logps(merged, batch(), 1.0, [range(3)]).logps, expected)


def test_damaged_adapters_are_named(build_llama, tmp_path):
    build_llama().save_pretrained(tmp_path / "base")
    model = get_peft_model(load_policy(str(tmp_path / "base")), lora())
    model.save_pretrained(tmp_path / "saved")
    weights = tmp_path / "saved" / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(DamagedFile, match="saved: unreadable"):
        load_policy(str(tmp_path / "saved"))
    (tmp_path / "saved" / "adapter_config.json").write_text(json.dumps({}))
    with pytest.raises(DamagedFile, match="saved: unreadable"):
        load_policy(str(tmp_path / "saved"))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"r": 4}, "peft_config is a dict: expected a peft.PeftConfig"),
        (PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2), "virtual tokens"),
        (lora(target_modules=["no_such"]), "does not fit the model"),
        (lora(target_modules=["lm_head"]), "'lm_head', whose weight is that of the embeddings"),
        (lora(r=17), "r=17: .*k_proj is a matrix of 16 x 32, whose rank is at most 16"),
    ],
)
@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`")
def test_configs_that_cannot_be_used_are_refused(config, message, make_lora):
    with pytest.raises(BadValue, match=message):
        make_lora(config=config)


def test_adapters_upon_adapters_and_a_moving_reference_are_refused(make_lora, build_llama):
    with pytest.raises(BadValue, match="the model has adapters"):
        make_lora(model=get_peft_model(build_llama(), lora()), config=lora())
    with pytest.raises(BadValue, match="sync_ref_model=True moves a reference"):
        make_lora(sync_ref_model=True)


def test_supervised_runs_resume_exactly(build_llama, tiny_tokenizer, tmp_path):
    def build(folder):
        args = SFTConfig(
            output_dir=str(tmp_path / folder),
            max_steps=4,
            save_steps=2,
            learning_rate=1e-2,
            use_cpu=True,
            bf16=False,
            report_to="none",
            disable_tqdm=True,
            logging_steps=1,
        )
        return SFTTrainer(
            build_llama(seed=1),
            args,
            train_dataset=Dataset.from_list(ROWS),
            processing_class=tiny_tokenizer,
            peft_config=lora(lora_dropout=0.2),
        )

    whole, resumed = build("a"), build("b")
    whole.train()
    resumed.train(resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-2"))
    ours, theirs = whole.model.state_dict(), resumed.model.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    assert logs(whole, "loss") == logs(resumed, "loss")
    assert logs(whole, "loss")[-1] < logs(whole, "loss")[0]
