"""Words, warnings, attributes and refusals of TRL's that its users' scripts rely on."""

import json
import logging
from copy import deepcopy

import pytest
import torch
import trl
from accelerate import Accelerator
from datasets import Dataset
from grpo_runs import digits, prompts, weights
from hypothesis import given
from hypothesis import strategies as st
from peft import LoraConfig
from transformers import AutoModelForCausalLM, GptOssConfig, Qwen3MoeConfig

import core
from core.absent_names import ABSENT
from core.data.conversations import chat
from core.rollout.hf.loops import PagedEngine
from eval.errors import BadValue

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # of TRL's own settings
SIZES = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "num_experts_per_tok": 2,
}
EXPERTS = {
    "gpt-oss": lambda size: GptOssConfig(**SIZES, vocab_size=size, num_local_experts=4),
    "qwen3-moe": lambda size: Qwen3MoeConfig(**SIZES, vocab_size=size, num_experts=4),
}
TEXTS = Dataset.from_dict({"text": ["1+1=2", "2+2=4 or so"] * 4})
CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}


@pytest.fixture
def make_sft(build_llama, tiny_tokenizer, tmp_path):
    """Build a trainer of either library for a step."""

    def make(library, model=None, data=TEXTS, peft_config=None, **settings):
        args = {"use_cpu": True, "bf16": False, "max_steps": 1, "logging_steps": 1}
        args |= {"report_to": "none", "disable_tqdm": True, "save_strategy": "no", **settings}
        return library.SFTTrainer(
            model or build_llama(),
            args=library.SFTConfig(str(tmp_path), **args),
            train_dataset=data,
            processing_class=tiny_tokenizer,
            peft_config=peft_config,
        )

    return make


@pytest.mark.parametrize("name", [*ABSENT, "nothing_of_this_name"])
def test_a_missing_name_is_an_attribute_error_and_an_import_error(name):
    assert not hasattr(core, name)
    assert getattr(core, name, None) is None
    with pytest.raises(AttributeError, match=name) as read:
        getattr(core, name)
    with pytest.raises(ImportError, match=name) as imported:
        exec(f"from core import {name}")
    if name in ABSENT:
        assert str(read.value) == str(imported.value)


@pytest.mark.parametrize("count", [0, 2, 3])
def test_each_reward_has_its_own_tokenizer_or_none(count, make_grpo, build_llama, tiny_tokenizer):
    args = make_grpo().args
    for given_classes in ([tiny_tokenizer] * count, tuple([tiny_tokenizer] * count)):
        with pytest.raises(ValueError, match="reward_processing_classes has"):
            core.GRPOTrainer(
                build_llama(),
                digits,
                args,
                prompts(),
                processing_class=tiny_tokenizer,
                reward_processing_classes=given_classes,
            )


def test_one_tokenizer_is_not_that_of_two_rewards(make_grpo, build_llama, tiny_tokenizer):
    with pytest.raises(ValueError, match="reward_processing_classes has 1 entries for 2"):
        core.GRPOTrainer(
            build_llama(),
            [digits, digits],
            make_grpo().args,
            prompts(),
            processing_class=tiny_tokenizer,
            reward_processing_classes=tiny_tokenizer,
        )


def test_words_that_scripts_match_on_are_trls(build_llama, tiny_tokenizer, make_grpo):
    tokenizer = {"processing_class": tiny_tokenizer}
    args = make_grpo().args
    with pytest.raises(ValueError, match="`train_dataset` is required"):
        core.SFTTrainer(build_llama(), **tokenizer)
    with pytest.raises(ValueError, match="`train_dataset` is required"):
        core.GRPOTrainer(build_llama(), digits, args, **tokenizer)
    for rewards in (None, [], ()):
        with pytest.raises(ValueError, match="No reward source provided"):
            core.GRPOTrainer(build_llama(), rewards, args, prompts(), **tokenizer)


REFUSALS_OF_SFT = {
    "not a Mixture-of-Experts model": {"router_aux_loss_coef": 0.5},
    "`max_length` is not enforced": {"padding_free": True, "max_length": 4},
    r"Dataset\.with_transform\(\).*skip_prepare_dataset.*trainer-ready": {
        "data": TEXTS.with_transform(lambda batch: batch)
    },
    "Add a 'labels' column": {
        "data": Dataset.from_dict({"input_ids": [[5, 6]], "assistant_masks": [[0, 1]]}),
        "dataset_kwargs": {"skip_prepare_dataset": True},
    },
    "vision-related.*vision-language model": {
        "data": Dataset.from_dict({"text": ["1+1=2"], "image": ["a.png"]})
    },
}


@pytest.mark.parametrize("library", [core, trl])
@pytest.mark.parametrize("words", REFUSALS_OF_SFT)
def test_refusals_of_fine_tuning_have_trls_words(words, library, make_sft):
    with pytest.raises(ValueError, match=words):
        make_sft(library, **REFUSALS_OF_SFT[words])


def one_reward(**_):
    return [1.0]


REFUSALS_OF_GRPO = {
    r"reward weights.*must match|reward_weights.*must match": {"reward_weights": [1.0, 2.0]},
    r"processing.classes.*must match": {"reward_processing_classes": [None, None]},
    "'one_reward' returned 1 rewards, but 4 were expected": {"reward_funcs": one_reward},
    r"rollout_func must return keys \['logprobs'\] in its output dict": {
        "rollout_func": lambda prompts, _: {
            name: [[5]] * len(prompts) for name in ("prompt_ids", "completion_ids")
        }
    },
}


@pytest.mark.filterwarnings("ignore:You are using 'rollout_func'")  # of TRL's
@pytest.mark.parametrize("library", [core, trl])
@pytest.mark.parametrize("words", REFUSALS_OF_GRPO)
def test_refusals_of_grpo_have_trls_words(words, library, build_llama, tiny_tokenizer, tmp_path):
    arguments = {"reward_funcs": digits, **REFUSALS_OF_GRPO[words]}
    settings = {name: arguments.pop(name) for name in ("reward_weights",) if name in arguments}
    args = library.GRPOConfig(
        str(tmp_path),
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=4,
        max_steps=1,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        **settings,
    )
    with pytest.raises(ValueError, match=words):
        library.GRPOTrainer(
            build_llama(),
            args=args,
            train_dataset=prompts(),
            processing_class=tiny_tokenizer,
            **arguments,
        ).train()


def test_a_row_without_any_reward_is_shown_with_its_columns(make_grpo, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)

    def never(completions, **_):
        return [None] * len(completions)

    def half(completions, **_):
        return [None if i % 2 else 1.0 for i in range(len(completions))]

    words = "All reward functions returned None for the following kwargs"
    make_grpo([half, digits], max_steps=1).train()
    assert words not in caplog.text
    make_grpo([half, never], max_steps=1).train()
    line = next(each for each in caplog.messages if words in each)
    assert "'answer': '" in line
    assert "'prompts': [{" in line


@pytest.mark.parametrize("loss_type", ["bnpo", "dr_grpo", "dapo", "cispo"])
def test_a_sequence_ratio_in_a_sum_of_tokens_is_warned_of(
    loss_type, make_grpo, caplog, monkeypatch
):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    options = {"loss_type": loss_type, "epsilon_high": 5.0}
    make_grpo(importance_sampling_level="token", **options)
    assert "completion length" not in caplog.text
    make_grpo(importance_sampling_level="sequence", **options)
    assert "weights each sequence by its completion length" in caplog.text


@pytest.mark.parametrize("loss_type", ["grpo", "sapo", "luspo"])
def test_a_sequence_ratio_in_its_own_loss_is_not_warned_of(loss_type, make_grpo):
    trainer = make_grpo(loss_type=loss_type, importance_sampling_level="sequence")
    assert trainer.args.length_weighting is None


@given(
    seed=st.integers(0, 2**16),
    rows=st.integers(1, 4),
    width=st.integers(1, 6),
    threshold=st.floats(0, 1),
)
def test_the_masks_that_scripts_call_are_trls(seed, rows, width, threshold):
    generator = torch.Generator().manual_seed(seed)
    mask = (torch.rand(rows, width, generator=generator) < 0.7).float()
    first, second = torch.rand(2, rows, width, generator=generator)
    second[0, 0] = torch.nan
    advantages = torch.randn(rows, 1, generator=generator)
    both = [
        trainer.get_off_policy_mask(advantages, first, second, mask, threshold)
        for trainer in (core.GRPOTrainer, trl.GRPOTrainer)
    ]
    assert torch.equal(*both)

    ratio = torch.where(mask.bool(), second.nan_to_num(1.0) + 0.5, 1.0)
    for sampling_ratio in (None, ratio):
        weights = [
            trainer.get_gamma_weights(advantages, first, mask, sampling_ratio, k_neg=2.5)
            for trainer in (core.GRPOTrainer, trl.GRPOTrainer)
        ]
        torch.testing.assert_close(*weights)

    class Alone:
        """A trainer of one process."""

        accelerator = Accelerator(cpu=True)

    high = [
        trainer.get_high_entropy_mask(Alone(), first, mask, threshold)
        for trainer in (core.GRPOTrainer, trl.GRPOTrainer)
    ]
    assert torch.equal(*high)


def test_the_entropy_mask_calls_its_accelerator_as_trl_does():
    class Stub:
        """An accelerator of one process, as tests of TRL's users replace it."""

        num_processes = 1
        gather = staticmethod(lambda tensor: tensor)
        pad_across_processes = staticmethod(lambda tensor, dim, pad_index: tensor)  # noqa: ARG005 - called by name

    class Alone:
        accelerator = Stub()

    entropies = torch.tensor([[0.1, 0.4, 0.3], [0.2, 0.9, 0.8]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    both = [
        t.get_high_entropy_mask(Alone(), entropies, mask, 0.5)
        for t in (core.GRPOTrainer, trl.GRPOTrainer)
    ]
    assert torch.equal(*both)


def test_continuous_batching_samples_for_a_policy_under_autocast(make_grpo):
    trainer = make_grpo(
        use_transformers_continuous_batching=True,
        transformers_continuous_batching_config={"use_cuda_graph": False, "num_blocks": 64},
        bf16=True,
        max_steps=1,
    )
    engine = trainer.engine(trainer.model)
    assert type(engine) is PagedEngine
    assert engine.batching_config([10]).num_blocks == 64
    before = weights(trainer.model)
    trainer.train()
    forward = trainer.model.forward
    assert forward != trainer.model._original_forward  # accelerate's, with autocast
    assert not torch.equal(weights(trainer.model), before)


def test_liger_with_adapters_on_the_head_is_refused(make_sft):
    head = LoraConfig(target_modules=["q_proj", "lm_head"], ensure_weight_tying=True)
    with pytest.raises(ValueError, match="adapters on `lm_head`"):
        make_sft(core, peft_config=head, use_liger_kernel=True)
    make_sft(core, peft_config=head)


def test_a_length_limit_of_rows_without_padding_is_refused_as_in_trl(make_sft):
    for library in (core, trl):
        with pytest.raises(ValueError, match="max_length"):
            make_sft(library, padding_free=True, max_length=4)
    make_sft(core, padding_free=True, max_length=None)
    make_sft(core, packing=True, padding_free=True, max_length=4)


@pytest.mark.parametrize("coefficient", [None, 0.0, 0.02])
@pytest.mark.parametrize("kind", EXPERTS)
def test_experts_say_as_in_trl_whether_their_balance_is_trained(
    kind, coefficient, make_sft, tiny_tokenizer
):
    said = []
    for library in (core, trl):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(EXPERTS[kind](len(tiny_tokenizer)))
        trainer = make_sft(library, model, router_aux_loss_coef=coefficient)
        trainer.train()
        logs = trainer.state.log_history[0]
        said.append((trainer.aux_loss_enabled, trainer.router_aux_loss_coef, "aux_loss" in logs))
        assert trainer.aux_loss_enabled == (coefficient != 0.0 and said[-1][1] > 0)
    assert said[0] == said[1]


@pytest.mark.parametrize("peft_config", [None, LoraConfig(target_modules=["q_proj"])])
def test_the_model_has_the_tags_of_its_method(peft_config, make_sft):
    trainer = make_sft(core, peft_config=peft_config)
    assert "sft" in trainer.model.model_tags
    assert set(trainer.model.model_tags) <= set(make_sft(trl, peft_config=peft_config)._tag_names)


@pytest.mark.parametrize("arguments", ["arguments | tojson", "arguments | items | list"])
def test_tool_calls_kept_as_json_text_read_like_those_that_are_not(arguments, tiny_tokenizer):
    tokenizer = deepcopy(tiny_tokenizer)
    tokenizer.chat_template = (
        "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
        "{{ c.function." + arguments + " }}{% endfor %}{{ m.content }}{% endfor %}"
    )

    function = {**CALL["function"], "arguments": json.dumps(CALL["function"]["arguments"])}
    plain = [{"role": "assistant", "content": "", "tool_calls": [CALL]}]
    texts = [
        [{**plain[0], "tool_calls": json.dumps([CALL])}],
        [{**plain[0], "tool_calls": [json.dumps(CALL)]}],
    ]
    if "items" in arguments:
        texts.append([{**plain[0], "tool_calls": [{**CALL, "function": function}]}])
    for turns in texts:
        assert chat(tokenizer, turns, {}) == chat(tokenizer, plain, {})
    with pytest.raises(BadValue, match="expected JSON"):
        chat(tokenizer, [{**plain[0], "tool_calls": "{"}], {})
