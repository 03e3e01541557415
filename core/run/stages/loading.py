"""How a model is loaded to answer: in which precision, where, and how many answers at a time."""

import gc
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from core.models.load import ADAPTERS, load_policy, load_tokenizer, locate
from core.rollout.samplers.on_vllm import VllmSampler
from core.rollout.samplers.policy import LocalSampler, PolicySampler
from core.run.resolve import Resolved
from core.run.settings import EVAL_ENGINES
from eval.errors import BadValue, UnknownName

DTYPES = ("auto", "bfloat16", "float16", "float32")


@dataclass(frozen=True, kw_only=True)
class Loading:
    """The precision of the weights, the device, and how many completions are decoded at a time.

    "auto" is the precision of the model's files; without a device it is the GPU if there is one.
    What is decoded beside a completion changes it by no more than rounding, so `batch_size` is no
    part of a question: after memory ran out, fewer at a time go on with the same one. Without it
    they are as many as the free memory of a GPU holds, see `rows_in_memory`.
    `engine` answers benchmarks; vLLM takes the GPUs that it sees, `tensor_parallel` of them.

    Raises:
        UnknownName, BadValue: no such precision or engine, no such device here, fewer than 1 at a
            time, or what this engine does not look at.
    """

    dtype: str = "float32"
    device: str | None = None
    batch_size: int | None = None
    engine: str = "native"
    tensor_parallel: int = 1

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise UnknownName("dtype", self.dtype, DTYPES)
        if self.batch_size is not None and self.batch_size < 1:
            raise BadValue(f"batch_size={self.batch_size}: expected at least 1")
        if self.engine not in EVAL_ENGINES:
            raise UnknownName("engine", self.engine, EVAL_ENGINES)
        if self.tensor_parallel < 1:
            raise BadValue(f"tensor_parallel={self.tensor_parallel}: expected at least 1")
        if self.engine == "native" and self.tensor_parallel > 1:
            raise BadValue(
                f"tensor_parallel={self.tensor_parallel} is for vLLM: our own engine answers on "
                "one device; leave it out, or give --engine vllm"
            )
        if self.engine == "vllm" and self.device is not None:
            raise BadValue(
                f"device={self.device}: vLLM takes the GPUs that it sees; choose them with "
                "CUDA_VISIBLE_DEVICES, or leave --engine out"
            )
        if self.device is not None:
            check_device(self.device)

    @property
    def place(self) -> torch.device:
        """The device here."""
        return torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))

    def __str__(self) -> str:
        return f"{self.dtype} on {self.place.type}" + (" by vLLM" if self.engine == "vllm" else "")

    @property
    def recorded(self) -> dict[str, object]:
        """What answers depend on, beside the precision, where it is not the usual."""
        if self.engine == "native":
            return {}
        return {"engine": self.engine, "tensor_parallel": self.tensor_parallel}

    def answerer(self, model: str) -> LocalSampler:
        """The model of this name or folder in the engine that answers benchmarks.

        Raises:
            BadValue: vLLM is to answer, and the model is adapters of another one.
        """
        if self.engine == "native":
            return self.sampler(model)
        place = locate(model)
        if (Path(place) / ADAPTERS).is_file():
            raise BadValue(
                f"{model} holds adapters, which vLLM does not add to their model here: merge them "
                "(peft's merge_and_unload), or evaluate with the engine native"
            )
        self.make_room()
        return VllmSampler(
            place,
            load_tokenizer(model),
            dtype=self.dtype,
            tensor_parallel=self.tensor_parallel,
            rows=self.batch_size,
        )

    def sampler(self, model: str) -> PolicySampler:
        """The model of this name or folder as a sampler."""
        self.make_room()
        policy: Any = load_policy(model, self.dtype).eval()  # Any: its methods are half typed
        return PolicySampler(policy.to(self.place), load_tokenizer(model), rows=self.batch_size)

    def make_room(self) -> None:
        """Give back the memory of a trainer that has ended."""
        if self.place.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()


def check_device(name: str) -> None:
    """Try a device before anything loads.

    Raises:
        BadValue: it is none, or not here.
    """
    try:
        if torch.device(name).type not in ("cpu", "cuda"):
            raise BadValue(f"device={name}: expected cpu, cuda or cuda:N")
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).split("\n")[0]
        raise BadValue(f"device={name}: {reason}; expected cpu, or cuda:N with that GPU") from error


def loading_of(resolved: Resolved) -> Loading:
    """How a run's policies are scored: where it trains, in the precision that it trains with."""
    config = resolved.config
    dtype = "float32" if config.get("bf16") is False else "bfloat16"  # unset is on, as in TRL
    return Loading(
        dtype="float16" if config.get("fp16") else dtype,
        device="cpu" if config.get("use_cpu") else None,
    )


def scoring_of(resolved: Resolved) -> Loading:
    """How a run's policies answer benchmarks: the same, in the engine that is asked for.

    vLLM computes where it is built for, whatever the training does.
    """
    run, loading = resolved.run, loading_of(resolved)
    if run.eval_engine == "native":
        return loading
    asked = {"engine": run.eval_engine, "tensor_parallel": run.eval_tensor_parallel}
    return replace(loading, device=None, **asked)
