"""Packed rows give the log-probabilities, entropies and gradients of padded ones, exactly."""

import random

import pytest
import torch
from grpo_runs import double
from lora_models import adapted
from torch.nn.functional import scaled_dot_product_attention
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen3Config
from transformers import Qwen2ForCausalLM as Qwen2
from transformers import Qwen3ForCausalLM as Qwen3

import core.forward.head
from core.forward import packing
from core.forward.logps import token_logps
from core.forward.packing import can_pack, pack
from core.rollout.merged_adapters import unwrap_peft

KINDS = {
    "llama": (LlamaForCausalLM, LlamaConfig),
    "qwen2": (Qwen2, Qwen2Config),
    "qwen3": (Qwen3, Qwen3Config),
}
SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}
EXACT = 1e-12
PROMPTS, COMPLETIONS = 7, 9  # longest, in tokens


def double_model(kind="llama"):
    model_class, config_class = KINDS[kind]
    config = config_class(**SMALL, head_dim=8)
    torch.manual_seed(0)
    model = model_class(config)
    return double(model)


def batch_of(groups, seed=0):
    """Groups of completions of random lengths, shuffled, padded on both sides."""
    draw = random.Random(seed)
    rows = []
    for size in groups:
        prompt = [draw.randrange(5, 64) for _ in range(draw.randint(1, PROMPTS))]
        for _ in range(size):
            length = draw.choice([1, 1, 3, COMPLETIONS - 2, COMPLETIONS])
            rows.append((prompt, [draw.randrange(5, 64) for _ in range(length)]))
    draw.shuffle(rows)
    return {
        "prompt_ids": torch.tensor([[0] * (PROMPTS - len(p)) + p for p, _ in rows]),
        "prompt_mask": torch.tensor([[0] * (PROMPTS - len(p)) + [1] * len(p) for p, _ in rows]),
        "completion_ids": torch.tensor([c + [0] * (COMPLETIONS - len(c)) for _, c in rows]),
        "completion_mask": torch.tensor(
            [[1] * len(c) + [0] * (COMPLETIONS - len(c)) for _, c in rows]
        ),
    }


def measured(model, batch, temperature, compute=token_logps):
    """Log-probabilities, entropies, and the gradient of a random combination of the former."""
    weights = torch.randn(batch["completion_ids"].shape, generator=torch.Generator().manual_seed(1))
    weights = weights.to(batch["completion_ids"].device)
    model.zero_grad()
    logps, entropy = compute(model, batch, temperature, with_entropy=True)[:2]
    (logps * weights).sum().backward()
    return logps.detach(), entropy, torch.cat([p.grad.flatten() for p in model.parameters()])


def by_definition(model, batch, temperature, **_):
    """From the logits of padded rows, whose positions count from the padded start."""
    ids, mask = (
        torch.cat([batch[f"prompt_{part}"], batch[f"completion_{part}"]], dim=1)
        for part in ("ids", "mask")
    )
    positions = torch.arange(ids.size(1), device=ids.device).expand_as(ids)
    found = model(input_ids=ids, attention_mask=mask, position_ids=positions).logits[:, :-1]
    logps = (found.to(torch.promote_types(found.dtype, torch.float32)) / temperature).log_softmax(
        -1
    )
    logps = logps[:, batch["prompt_ids"].size(1) - 1 :]
    kept = batch["completion_mask"]
    own = logps.gather(-1, batch["completion_ids"].unsqueeze(-1)).squeeze(-1)
    entropy = -(logps.exp() * logps).sum(-1).detach()
    return own * kept, entropy * kept


def padded(model, batch, temperature):
    """The same without packing."""
    return measured(model, batch, temperature, by_definition)


def assert_equal(found, expected):
    for mine, other in zip(found, expected, strict=True):
        assert (mine - other).abs().max() <= EXACT * other.abs().max()


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("kind", KINDS)
def test_packing_changes_nothing(kind, temperature):
    model = double_model(kind)
    batch = batch_of([4, 1, 3, 1, 2])
    batch["completion_mask"][2] = 0  # as of a completion that was cut
    assert can_pack(model, batch)
    expected = padded(model, batch, temperature)
    assert_equal(measured(model, batch, temperature), expected)
    assert (expected[0] == 0).equal(batch["completion_mask"] == 0)


def flash_attention_on_a_cpu(q, k, v, queries_until, keys_until, *_, scale, **__):
    """What the kernel computes: keys of fewer heads, the last query at the last key."""
    parts = []
    for i in range(len(queries_until) - 1):
        mine, keys, values = (
            x[until[i] : until[i + 1]].transpose(0, 1)
            for x, until in ((q, queries_until), (k, keys_until), (v, keys_until))
        )
        visible = torch.ones(mine.size(1), keys.size(1)).tril(keys.size(1) - mine.size(1)).bool()
        part = scaled_dot_product_attention(
            mine, keys, values, visible, scale=scale, enable_gqa=True
        )
        parts.append(part.transpose(0, 1))
    return (torch.cat(parts),)


@pytest.mark.parametrize("groups", [[4, 1, 3, 1, 2], [1, 1, 1]])
@pytest.mark.parametrize("kind", KINDS)
def test_one_call_for_all_segments_changes_nothing(kind, groups, monkeypatch):
    model, batch = double_model(kind), batch_of(groups)
    expected = padded(model, batch, 0.7)
    monkeypatch.setattr(packing, "has_flash_kernel", lambda *_: True)
    monkeypatch.setattr(packing, "flash_attention", flash_attention_on_a_cpu)
    assert_equal(measured(model, batch, 0.7), expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="NOT TESTED: the kernel needs a GPU")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_of_a_gpu_is_as_near_to_the_definition_as_padded_rows(kind, dtype):
    """Gradients and log-probabilities by float64: at most 1.25 times as far as padded rows."""
    batch = {name: rows.cuda() for name, rows in batch_of([4, 1, 3, 1, 2]).items()}
    exact = padded(double_model(kind).cuda(), batch, 0.7)
    model = double_model(kind).to("cuda", dtype)
    calls = []
    kernel = packing.flash_attention

    def counted(*arguments, **keywords):
        calls.append(1)
        return kernel(*arguments, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "flash_attention", counted)
        found = measured(model, batch, 0.7)
    assert len(calls) == SMALL["num_hidden_layers"]
    for mine, rows, truth in zip(found, padded(model, batch, 0.7), exact, strict=True):
        assert (mine - truth).norm() <= 1.25 * (rows - truth).norm()


@pytest.mark.parametrize("chunk", [1, 64, 64 * 7])
@pytest.mark.parametrize("kept", [0, 2**26])
def test_the_head_may_be_cut_anywhere(kept, chunk, monkeypatch):
    model, batch = double_model(), batch_of([3, 2])
    expected = padded(model, batch, 0.9)
    monkeypatch.setattr(core.forward.head, "CHUNK", chunk)
    monkeypatch.setattr(core.forward.head, "KEPT", kept)
    assert_equal(measured(model, batch, 0.9), expected)


def test_a_prompt_is_computed_once_and_padding_never():
    batch = batch_of([4, 1])
    packed = pack(batch)
    prompts = {
        tuple(row[mask == 1].tolist())
        for row, mask in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)
    }
    completed = batch["completion_mask"].sum() - len(batch["completion_mask"])
    assert packed.ids.numel() == sum(map(len, prompts)) + completed
    assert (
        packed.targets.tolist() == batch["completion_ids"][batch["completion_mask"] == 1].tolist()
    )


def test_checkpointed_layers_give_the_same_gradient():
    model, batch = double_model(), batch_of([3, 1])
    expected = padded(model, batch, 1.0)
    model.train()
    model.activation_checkpointing_enable({"use_reentrant": False})
    assert_equal(measured(model, batch, 1.0), expected)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapters_are_packed_unless_they_are_in_the_head():
    model, batch = adapted(lambda **_: double_model()).double(), batch_of([3, 1])
    model.requires_grad_(True)
    assert can_pack(unwrap_peft(model), batch)
    assert_equal(measured(model, batch, 0.9), padded(model, batch, 0.9))
    assert not can_pack(
        unwrap_peft(adapted(lambda **_: double_model(), target_modules=["lm_head"])), batch
    )


def test_angles_that_depend_on_the_longest_row_are_not_packed():
    """Positions count from the padded start, so that a row would seem longer than it is."""
    dynamic = {"rope_type": "dynamic", "rope_theta": 500.0, "factor": 2.0}
    model = LlamaForCausalLM(LlamaConfig(rope_parameters=dynamic, **SMALL))
    assert not can_pack(model, batch_of([2]))


def test_a_sliding_window_is_not_packed():
    config = Qwen2Config(**SMALL, use_sliding_window=True, sliding_window=4, max_window_layers=1)
    batch = batch_of([2])
    assert not can_pack(Qwen2(config), batch)
    assert can_pack(double_model("qwen2"), batch)


def test_packing_in_bfloat16_is_as_near_as_padding_is():
    model, batch = double_model().float(), batch_of([3, 1])
    exact = padded(model, batch, 0.9)
    with torch.autocast("cpu", torch.bfloat16):
        near = padded(model, batch, 0.9)
        found = measured(model, batch, 0.9)
    for mine, other, truth in zip(found, near, exact, strict=True):
        assert mine.dtype == other.dtype == torch.float32
        assert (mine - truth).norm() < 1.5 * (other - truth).norm()


@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_compiled_layers_stay_compiled_whatever_is_packed():
    """Every linear layer of every pass runs compiled; after two batches nothing is compiled."""
    ran, compiled = [], []

    def backend(graph, _):
        linear = [n for n in graph.graph.nodes if n.target is torch.nn.functional.linear]
        compiled.append(graph)
        return lambda *inputs: ran.extend(linear) or graph(*inputs)

    torch._dynamo.reset()
    model = double_model().float()
    layers = torch.compile(model, backend=backend)
    counts = []
    for seed in range(10):  # PyTorch compiles a function 8 times, then leaves it
        ran.clear()
        token_logps(layers, batch_of([3, 2], seed), 1.0)[0].sum().backward()
        counts.append(len(compiled))
        assert len(ran) == 7 * model.config.num_hidden_layers
    assert counts[1:] == [counts[1]] * 9
