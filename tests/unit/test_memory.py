"""The memory that a plan prints is what the ZeRO paper and small models say."""

import pytest
import torch

from core.models.load import CHECKPOINTS, load_policy
from core.models.shapes import KNOWN, Shape, find_shape
from core.run.memory import (
    Cluster,
    Work,
    activations,
    estimate_memory,
    kv_cache,
    layer_activations,
    states,
)
from core.run.settings import LAUNCHES
from eval.errors import BadValue, UnknownName

PSI = 7_500_000_000
# GB per device in table 1 of arXiv 1910.02054, exact where it rounds.
TABLE = [(4, 41.25, 30.0), (16, 21.5625, 7.5), (64, 16.640625, 1.875), (1024, 15.102539, 0.117188)]


@pytest.mark.parametrize(("n", "stage2", "stage3"), TABLE)
def test_deepspeed_with_bf16_is_the_papers_table(n, stage2, stage3):
    for launch, gigabytes in (("zero2", stage2), ("zero3", stage3)):
        found = sum(states(launch, PSI, n, bf16=True))
        assert found / 1e9 == pytest.approx(gigabytes, rel=1e-5)


@pytest.mark.parametrize("bf16", [True, False])
def test_spreading_saves_what_it_spreads(bf16):
    """On one process nothing; on more, all parts but those that stay whole, in the same ratio."""
    for launch in LAUNCHES:
        whole = states(launch, PSI, 1, bf16=bf16)
        parts = states(launch, PSI, 8, bf16=bf16)
        spread = {"ddp": (1, 1, 1), "zero2": (1, 8, 8)}.get(launch, (8, 8, 8))
        assert [a / b for a, b in zip(whole, parts, strict=True)] == pytest.approx(list(spread))


def test_parameters_are_those_of_the_model(build_llama, tmp_path):
    build_llama().save_pretrained(tmp_path)
    shipped = "pocket-instruct"
    assert find_shape("tiny", tmp_path).parameters == build_llama().num_parameters()
    found = find_shape(shipped, CHECKPOINTS / shipped)
    assert found.parameters == load_policy(shipped).num_parameters()


def test_known_models_have_the_size_of_their_name():
    sizes = {name: shape.parameters / 1e9 for name, shape in KNOWN.items()}
    assert sizes["deepseek-ai/deepseek-math-7b-instruct"] == pytest.approx(6.91, abs=0.005)
    assert sizes["Qwen/Qwen2.5-0.5B-Instruct"] == pytest.approx(0.494, abs=0.0005)


def kept_bytes(model, ids, completion):
    """Bytes that a forward pass keeps for its backward pass, and the gradient of the logits."""
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}  # storages by address, held so that no address comes twice

    def keep(tensor):
        if tensor.untyped_storage().data_ptr() not in parameters:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        kept_logits = completion + 1
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=kept_logits).logits[:, :-1]
        loss = (logits.gather(-1, ids[:, -completion:, None])[..., 0] - logits.logsumexp(-1)).sum()
    assert loss.requires_grad
    return sum(storage.nbytes() for storage in kept.values()) + 4 * logits.numel()


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize(
    "sizes", [{}, {"hidden_size": 64, "num_hidden_layers": 5, "intermediate_size": 256}]
)
def test_activations_are_what_autograd_keeps(sizes, checkpointing, build_llama):
    """Within 3 %: cosines, masks and the logits' last column are left out."""
    model = build_llama(vocab_size=1000, **sizes).train()
    if checkpointing:
        model.activation_checkpointing_enable()
    shape = shape_of(model.config)
    work = Work(
        micro_batch=3,
        rows=3,
        prompt=50,
        completion=30,
        bf16=False,
        checkpointing=checkpointing,
        reference=False,
    )
    measured = kept_bytes(model, torch.randint(5, 64, (3, 80)), 30)
    planned = activations(shape, work)
    if checkpointing:  # the forward pass does not compute a layer again
        planned -= layer_activations(shape, work)
    assert measured == pytest.approx(planned, rel=0.03)


def test_cache_is_what_the_model_keeps(build_llama):
    model = build_llama()
    work = Work(
        micro_batch=1,
        rows=6,
        prompt=9,
        completion=11,
        bf16=False,
        checkpointing=False,
        reference=False,
    )
    cache = model(torch.randint(5, 64, (6, 20)), use_cache=True).past_key_values
    measured = sum(t.nbytes for layer in cache.layers for t in (layer.keys, layer.values))
    assert kv_cache(shape_of(model.config), work, width=4) == measured


def shape_of(config, **changes):
    return Shape(
        **{
            "layers": config.num_hidden_layers,
            "hidden": config.hidden_size,
            "intermediate": config.intermediate_size,
            "heads": config.num_attention_heads,
            "kv_heads": config.num_key_value_heads,
            "head": config.hidden_size // config.num_attention_heads,
            "vocabulary": config.vocab_size,
            "tied": config.tie_word_embeddings,
        }
        | changes
    )


def test_sampling_needs_the_weights_whole():
    """Under FSDP2 a process holds all weights while it samples, in room that training has not."""
    shape = KNOWN["Qwen/Qwen2.5-0.5B-Instruct"]
    work = Work(
        micro_batch=2,
        rows=16,
        prompt=256,
        completion=512,
        bf16=True,
        checkpointing=True,
        reference=True,
    )
    one, eight = (estimate_memory(shape, work, "fsdp2", n) for n in (1, 8))
    assert eight.gathered == 4 * shape.parameters
    assert one.weights == pytest.approx(8 * eight.weights)
    assert eight.peak == max(eight.training, eight.sampling)


@pytest.mark.parametrize("text", ["H100", "0xH100", "8", "8*H100"])
def test_bad_clusters(text):
    with pytest.raises(BadValue, match="such as 8xH100"):
        Cluster.parse(text)


def test_an_unknown_gpu():
    with pytest.raises(UnknownName, match="H100"):
        Cluster.parse("8xH1000")
