"""A recorded step gives what the model's own forward pass gives, and never asks for a value."""

from functools import partial

import pytest
import torch
from lora_models import adapted
from test_engines import OTHERS, PROMPTS, complete, tokens
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import DynamicCache, LlamaForCausalLM, StaticCache

from core.rollout.cached import CachedDecoder
from core.rollout.merged_adapters import unwrap_peft
from core.rollout.native.native import NativeEngine
from core.rollout.native.plain_forward import PlainDecoder, plain_forward_needs
from core.rollout.native.static import COLUMNS, StaticDecoder, run_eagerly, static_needs
from eval.errors import BadValue

KINDS = ["llama", "qwen2", "qwen3", "gpt2"]
FORBIDDEN = {
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.nonzero.default,
    torch.ops.aten.lift_fresh.default,
}


@pytest.fixture(params=KINDS)
def model(request, build_llama):
    return built(request.param, build_llama)


def built(kind, build_llama):
    """A model whose norms are not the ones with which they begin."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        found = (build_llama(seed=3) if kind == "llama" else OTHERS[kind]()).eval()
        for name, weight in found.named_parameters():
            if "norm" in name:
                torch.nn.init.uniform_(weight, 0.5, 1.5)
    return found


class Tape(TorchDispatchMode):
    """Keeps the operations that are done, as a capture keeps kernels."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert func not in FORBIDDEN, f"{func} waits for a value, or brings one from the host"
        found = func(*args, **(kwargs or {}))
        self.kept.append((func, args, kwargs or {}, found))
        return found


def taped(step):
    """What `cuda_graph` does, on a CPU: the same operations on the same memory, without Python."""
    step()
    with Tape() as tape:
        found = step()

    def replay():
        for func, args, kwargs, before in tape.kept:
            now = func(*args, **kwargs)
            for old, new in zip(tree_leaves(before), tree_leaves(now), strict=True):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)
        return found

    return replay


class TapedEngine(NativeEngine):
    """The native engine with recorded steps on a CPU."""

    def make_decoder(self, **_):
        assert static_needs(self.model) is None
        return StaticDecoder(self.model, taped)


@torch.no_grad()
def logits_of(decoder, device="cpu"):
    """Of a group and others; a row ends, two are taken by a new prompt; past the first columns."""
    random = torch.Generator().manual_seed(0)

    def ids(count):
        return torch.randint(2, 60, (count,), generator=random).to(device)

    prompts = [[5, 6, 7], [8, 9], ids(COLUMNS - 12).tolist(), [20]]
    alive = torch.ones(5, dtype=torch.bool, device=device)
    found = [decoder.admit(prompts, [[0, 1], [2], [3], [4]])[[0, 0, 1, 2, 3]]]
    for step in range(16):
        alive[3] = not 4 <= step < 9
        logits = decoder.step(ids(5), alive)
        found.append(logits[alive].clone())
        if step == 8:
            found.append(decoder.admit([[30, 31, 32, 33]], [[1, 3]]))
    return torch.cat(found)


@pytest.mark.parametrize("record", [run_eagerly, taped])
def test_every_step_gives_the_logits_of_the_modules(model, record):
    decoder = StaticDecoder(model, record)
    mine, theirs = logits_of(decoder), logits_of(CachedDecoder(model))
    assert len(decoder.columns) == 2 * COLUMNS
    torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-4)
    if plain_forward_needs(model) is None:
        torch.testing.assert_close(mine, logits_of(PlainDecoder(model)), rtol=1e-5, atol=1e-4)


def test_a_replayed_step_is_the_step_itself(build_llama):
    model = build_llama(seed=1, num_key_value_heads=4).eval()
    taking = [logits_of(StaticDecoder(model, record)) for record in (run_eagerly, taped)]
    assert torch.equal(*taking)


@pytest.mark.parametrize(
    "engine", [TapedEngine, lambda *a, **k: NativeEngine(*a, **k, static=True)]
)
def test_completions_are_those_of_the_growing_caches_whatever_is_beside_them(model, engine):
    prompts = [prompt for prompt in PROMPTS * 2 for _ in range(4)]
    options = {"temperature": 1.3, "ends": frozenset(range(1, 9))}
    whole = complete(NativeEngine(model, static=False), prompts, **options)
    assert len({len(row.tokens) for row in whole}) > 3
    for rows in (1, 7, 64):
        found = complete(engine(model, rows=rows), prompts, **options)
        assert tokens(found) == tokens(whole)
        assert [row.finish for row in found] == [row.finish for row in whole]
        for mine, other in zip(found, whole, strict=True):
            torch.testing.assert_close(mine.logps, other.logps, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("steps", [3, 8, 64])
@pytest.mark.parametrize("static", [False, True])
def test_finished_rows_may_be_checked_for_rarely(static, steps, build_llama):
    """As on a GPU, where each check waits for it: finished rows wait, and nothing else changes."""
    model = built("llama", build_llama)
    prompts = [prompt for prompt in PROMPTS * 2 for _ in range(4)]
    options = {"temperature": 1.3, "ends": frozenset(range(1, 9)), "max_tokens": 20}
    whole = complete(NativeEngine(model, static=False), prompts, **options)
    engine = NativeEngine(model, rows=7, static=static)
    engine.check_every = steps
    assert tokens(complete(engine, prompts, **options)) == tokens(whole)


def test_a_stop_function_and_a_penalty_reach_recorded_steps(build_llama):
    model = built("qwen2", build_llama)
    options = {"stop": lambda row: row[-1] > 61, "repetition_penalty": 1.8, "ends": frozenset()}
    found = complete(TapedEngine(model, rows=2), **options)
    whole = complete(NativeEngine(model, static=False), **options)
    assert tokens(found) == tokens(whole)
    assert {row.finish for row in whole} == {"stop", "length"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_asks_for_no_value_and_touches_no_other_device(kind, build_llama):
    """Meta tensors have no values, and do not mix with those that have."""
    decoder = StaticDecoder(built(kind, build_llama).to("meta"), run_eagerly)
    cache, mask = DynamicCache(), torch.ones(3, 10, dtype=torch.long, device="meta")
    config = decoder.model.config
    heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    keys = torch.zeros(3, heads, 10, config.hidden_size // config.num_attention_heads)
    for layer in range(config.num_hidden_layers):
        cache.update(keys.to("meta"), keys.to("meta"), layer)
    decoder.enter(cache, mask, [0, 1, 2])
    with torch.no_grad():
        assert decoder.decode().shape == (3, config.vocab_size)


def test_buffers_stay_where_they_are_while_they_suffice(build_llama):
    """Rows that enter again and again need no more columns than one of them."""
    decoder = StaticDecoder(build_llama(seed=1).eval(), taped)
    alive, places = torch.ones(2, dtype=torch.bool), set()
    with torch.no_grad():
        for _ in range(4):
            decoder.admit([[5] * (COLUMNS // 2)], [[0, 1]])
            for _ in range(COLUMNS // 2):
                decoder.step(torch.tensor([7, 8]), alive)
            places |= {keys.data_ptr() for keys, _ in decoder.row_cache.buffers}
    assert len(decoder.columns) == COLUMNS
    assert len(places) == 2


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_in_bfloat16_it_is_as_near_to_the_forward_pass_as_caches_of_transformers(kind, build_llama):
    """The root mean square of the distance is at most 1.25 times that of the farther of the two."""
    model = built(kind, build_llama).bfloat16()
    assert static_needs(model) is None
    ids = torch.randint(2, 60, (32, 60), generator=torch.Generator().manual_seed(0))

    def logps(logits):
        return logits.float().log_softmax(-1).gather(-1, ids[:, 20:, None]).squeeze(-1)

    def stepwise(cache):
        parts = [ids[:, :20], *ids[:, 20:-1].split(1, dim=1)]
        found = [model(part, past_key_values=cache, use_cache=True).logits[:, -1] for part in parts]
        return logps(torch.stack(found, dim=1))

    with torch.no_grad():
        whole = logps(model(ids).logits[:, 19:-1])
        decoder, alive = StaticDecoder(model, taped), torch.ones(32, dtype=torch.bool)
        found = [decoder.admit(ids[:, :20].tolist(), [[row] for row in range(32)])]
        found += [decoder.step(token, alive).clone() for token in ids[:, 20:-1].unbind(1)]
        caches = DynamicCache(config=model.config), StaticCache(model.config, max_cache_len=60)
        mine, *theirs = (
            (side - whole).square().mean().sqrt().item()
            for side in (logps(torch.stack(found, dim=1)), *map(stepwise, caches))
        )
    assert 0 < mine <= 1.25 * max(theirs)


def test_a_long_prompt_that_enters_late_finds_room(build_llama):
    model, alive = build_llama(seed=1).eval(), torch.ones(2, dtype=torch.bool)
    both = StaticDecoder(model, taped), CachedDecoder(model)
    found = []
    with torch.no_grad():
        for decoder in both:
            decoder.admit([[5, 6], [7]], [[0], [1]])
            decoder.step(torch.tensor([8, 9]), alive)
            decoder.admit([[10] * (COLUMNS - 1)], [[1]])
            steps = torch.arange(10, 16).view(3, 2)
            found.append(torch.cat([decoder.step(step, alive).clone() for step in steps]))
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-4)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapters_are_recorded(build_llama):
    model = unwrap_peft(adapted(build_llama))
    mine, theirs = logits_of(StaticDecoder(model, taped)), logits_of(CachedDecoder(model))
    torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=2e-4)


def test_autocast_within_the_forward_pass_is_recorded(build_llama):
    """As accelerate has it: no farther from float32 than 1.25 times what the growing cache is."""
    model = build_llama(seed=1).eval()
    whole = logits_of(CachedDecoder(model))
    model.forward = torch.autocast("cpu", torch.bfloat16)(partial(LlamaForCausalLM.forward, model))
    assert static_needs(model) is None
    mine, theirs = (
        (logits_of(decoder) - whole).norm()
        for decoder in (StaticDecoder(model, taped), CachedDecoder(model))
    )
    assert 0 < mine <= 1.25 * theirs


@pytest.mark.parametrize("wrapped", [False, True])
def test_autocast_around_the_steps_is_recorded(wrapped, build_llama):
    """With a forward pass that has it too, as a trainer's, or without, as a reference's.

    Weights that autocast keeps in its type are those of the recorded step: the very bits.
    """
    model = build_llama(seed=1).eval()
    if wrapped:
        forward = partial(LlamaForCausalLM.forward, model)
        model.forward = torch.autocast("cpu", torch.bfloat16)(forward)
    plain = logits_of(CachedDecoder(build_llama(seed=1).eval()))
    with torch.autocast("cpu", torch.bfloat16):
        assert static_needs(model) is None
        mine, unrecorded_step = (
            logits_of(StaticDecoder(model, record)) for record in (taped, run_eagerly)
        )
        theirs = logits_of(CachedDecoder(model))
    assert torch.equal(mine, unrecorded_step)
    assert 0 < (mine - plain).norm() <= 1.25 * (theirs - plain).norm()


def test_what_a_replay_would_leave_out_is_not_recorded(build_llama):
    assert static_needs(build_llama()) is None
    assert static_needs(build_llama(attn_implementation="eager")) == "attn_implementation='sdpa'"
    assert "all tokens" in static_needs(OTHERS["window"]())
    dynamic = {"rope_type": "dynamic", "rope_theta": 500.0, "factor": 2.0}
    assert "longest row" in static_needs(build_llama(rope_parameters=dynamic))
    hooked = build_llama()
    hooked.model.layers[1].mlp.register_forward_hook(lambda *_: None)
    assert static_needs(hooked) == "no hooks"
    with pytest.raises(BadValue, match="cannot be recorded: needs no hooks"):
        NativeEngine(hooked, static=True)
    complete(NativeEngine(hooked, static=None), max_tokens=2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="NOT TESTED: CUDA graphs need a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_graph_replays_what_the_step_computes(model, dtype):
    model = model.to("cuda", dtype)
    graphed, eager = (
        logits_of(decoder, "cuda")
        for decoder in (StaticDecoder(model), StaticDecoder(model, run_eagerly))
    )
    torch.testing.assert_close(graphed, eager)
    if dtype == torch.float32:
        options = {"temperature": 1.3, "ends": frozenset(range(1, 9))}
        ours = (
            complete(NativeEngine(model, static=on), PROMPTS * 4, **options) for on in (True, False)
        )
        assert tokens(next(ours)) == tokens(next(ours))
