"""A device of its own whose tensors are computed on the CPU, and which refuses those of the CPU.

It refuses what CUDA refuses: a tensor of the CPU among its own, unless it is a single number, an
index, or the other side of a copy. Run as a script, for a process has one such device at most.
"""

import gc
import os
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "apart"
COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
INDEXED = ("index", "index_put", "index_put_", "_unsafe_index", "_index_put_impl_")


class Backend:
    """What torch asks of a kind of device: there is one, and it draws nothing itself."""

    def is_available(self):
        return True

    is_initialized = is_available

    def device_count(self):
        return 1

    def current_device(self):
        return 0

    def get_rng_state(self, *_):
        return torch.empty(0, dtype=torch.uint8)

    def get_amp_supported_dtype(self):
        return [torch.bfloat16, torch.float16]

    def nothing(self, *_):
        return None

    _is_in_bad_fork = set_device = synchronize = empty_cache = nothing
    manual_seed = manual_seed_all = set_rng_state = nothing


class Apart(torch.Tensor):
    """A tensor of this device; `held` is its content, on the CPU."""

    @staticmethod
    def __new__(cls, held):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=torch.device(NAME, 0),
        )
        made.held = held
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __repr__(self, **_):
        return f"{self.held}, {NAME}"

    @classmethod
    def __torch_dispatch__(cls, operation, _types, args=(), options=None):
        return computed(operation, args, options or {})


class Operations(TorchDispatchMode):
    """Takes the operations that make tensors too, whose arguments are none."""

    def __torch_dispatch__(self, operation, _types, args=(), options=None):
        return computed(operation, args, options or {})


class Reading(TorchFunctionMode):
    """Lists from tensors of this device, which torch makes of no class but its own."""

    def __torch_function__(self, function, _types, args=(), options=None):
        if function is torch.Tensor.tolist and isinstance(args[0], Apart):
            args = (args[0].detach().held,)
        return function(*args, **options or {})


def computed(operation, args, options):
    """An operation on what tensors hold, after a look at where they lie.

    Raises:
        RuntimeError: one lies on the CPU and another one here.
    """
    tensors = tensors_of((args, options))
    ours = [t for t in tensors if isinstance(t, Apart)]
    if ours and operation not in COPIES:
        index = operation.overloadpacket.__name__ in INDEXED
        allowed = {id(t) for t in tensors_of(args[1])} if index else set[int]()
        if any(t.dim() for t in tensors if not isinstance(t, Apart) and id(t) not in allowed):
            raise RuntimeError(f"{operation}: a tensor of the CPU among those of {NAME}")
    asked = options.get("device")
    here = bool(ours) if asked is None else torch.device(asked).type == NAME
    found = operation(*mapped(content, args), **mapped(content, options))
    if operation is torch.ops.aten.copy_.default:
        return args[0]
    known = {id(t.held): t for t in ours}

    def wrapped(one):
        if not (here and isinstance(one, torch.Tensor)):
            return one
        return known[id(one)] if id(one) in known else Apart(one)

    return mapped(wrapped, found)


def mapped(change, value):
    """The value with each thing in its lists, tuples and dictionaries changed; torch's own function
    for this, which knows more classes, takes a third of the time of all trainings."""
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)([mapped(change, v) for v in value])
    if isinstance(value, dict):
        return {name: mapped(change, v) for name, v in value.items()}
    return change(value)


def tensors_of(value):
    """All tensors in lists, tuples and dictionaries."""
    found = []
    mapped(lambda one: found.append(one) if isinstance(one, torch.Tensor) else None, value)
    return found


def content(value):
    """What an argument is on the CPU."""
    if isinstance(value, Apart):
        return value.held
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == NAME else value


def empty_strided(size, stride, dtype=None, **_):
    return Apart(torch.empty_strided(size, stride, dtype=dtype))


def copied(to, source, _non_blocking=False):
    to.held.copy_(content(source))
    return to


@contextmanager
def device_apart():
    """The device, as that of every trainer."""
    _setup_privateuseone_for_python_backend(NAME, Backend())
    inside = torch.library.Library("aten", "IMPL")  # what torch calls past every mode
    inside.impl("empty_strided", empty_strided, "PrivateUse1")
    inside.impl("copy_", copied, "PrivateUse1")
    os.environ["ACCELERATE_TORCH_DEVICE"] = f"{NAME}:0"
    with Operations(), Reading():
        yield torch.device(NAME, 0)


def trainings(folder, out):
    """Steps and final weights of every training that two processes can share.

    No checkpoint is written: that reads memory, and a tensor of this device has none.
    """
    from same_batch import GRPO, QUIET, steps_of, weights_of
    from two_processes import CASES

    use_cpu = "ACCELERATE_TORCH_DEVICE" not in os.environ
    for settings in (QUIET, GRPO):
        settings |= {"use_cpu": use_cpu, "dataloader_pin_memory": False}
    for case, build in CASES.items():
        if case == "resumed":  # without a checkpoint it is the case before it
            continue
        trainer = build(folder, out, 1)
        trainer.args.save_strategy = "no"
        if case != "sampled":  # whose reference moves after two steps
            trainer.args.max_steps = 2
        trainer.train()
        numbers = steps_of(trainer).flatten(), weights_of(trainer.model).cpu()
        yield f"training: {case}", torch.cat(numbers)


def completions(folder, device):
    """Tokens and their log-probabilities, by each of the decoders."""
    from transformers import AutoModelForCausalLM

    from core.rollout.engine import Sampling, in_order
    from core.rollout.native import native, plain_forward, static

    model = AutoModelForCausalLM.from_pretrained(folder).eval().to(device)
    prompts = [[5, 6, 7], [8, 9], [5, 6, 7], list(range(5, 30))]
    options = {
        "greedy": {"temperature": 0.0},
        "drawn": {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "min_p": 0.01},
        "without repeats": {"repetition_penalty": 1.3},
        "stopped": {"stop": lambda tokens: len(tokens) > 3},
    }
    sharded = "weights that are not sharded"  # what tensors of a class of their own look like
    for decoder, lacks in {"plain": False, "static": False, "cached": True}.items():
        needs = {sharded: lambda _, lacks=lacks: not lacks}
        with patch.dict(plain_forward.NEEDS, needs), patch.dict(static.NEEDS, needs):
            engine = native.NativeEngine(model, 3, static=decoder == "static")
            for name, option in options.items():
                asked = Sampling(max_tokens=12, ends=frozenset({1}), **option)
                rows = in_order(engine.sample(prompts, asked, range(len(prompts))), len(prompts))
                numbers = [[*row.tokens, *row.logps] for row in rows]
                yield (
                    f"{decoder} decoder: {name}",
                    torch.tensor([x for row in numbers for x in row]),
                )


def misplaced(folder, out):
    """What is said of reward weights that are left on the CPU."""
    from two_processes import CASES

    from core import GRPOTrainer

    right = GRPOTrainer.advantage_settings.fget
    wrong = property(lambda self: replace(right(self), weights=right(self).weights.cpu()))
    try:
        with patch.object(GRPOTrainer, "advantage_settings", wrong):
            CASES["best"](folder, out, 1).train()
    except RuntimeError as error:
        return str(error)
    return "nothing"


def everything(folder, out, device):
    """All numbers that must be those of the CPU."""
    return dict(trainings(folder, out)) | dict(completions(folder, device))


def main(folder, out):
    """Write what this device computes, and what it says of a tensor that was left behind."""
    gc.collect()
    gc.freeze()  # else the full collection that ends each training takes most of its time
    with device_apart() as device:
        found = everything(folder, out, device)
        torch.save({"numbers": found, "misplaced": misplaced(folder, out)}, out / "apart.pt")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main(*map(Path, sys.argv[1:]))
