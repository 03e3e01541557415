"""Memory per GPU of a training under each of our launches, before anything is loaded.

Psi parameters on N processes, bytes per parameter after arXiv 1910.02054 s3:

    launch   weights   gradients   optimiser
    ddp      w         g           K
    fsdp2    w / N     g / N       K / N
    zero2    w         g / N       K / N         (P_os+g)
    zero3    w / N     g / N       K / N         (P_os+g+p)

PyTorch's own keep the weights in 32 bits and no second copy: w = g = 4, K = 8. DeepSpeed keeps 32
bits beside the working weights in any case: w = g = 2, K = 12 with bf16, and w = g = 4, K = 12
without.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from core.models.shapes import Shape
from core.rollout.native import ROWS
from core.run.resolve import Resolved, divided
from core.run.settings import LAUNCHES
from eval.errors import BadValue, UnknownName

GB = 10**9
# Memory in GB as in the makers' data sheets.
GPUS: Mapping[str, int] = {
    "A100": 80,
    "A100-40GB": 40,
    "B200": 180,
    "H100": 80,
    "H200": 141,
    "L4": 24,
    "L40S": 48,
    "RTX4090": 24,
    "V100": 32,
}
USABLE = 0.9  # what fragments, buffers and the libraries themselves leave of it
PROMPT_TOKENS = 256  # assumed where the data is not at hand


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """GPUs of one kind."""

    count: int
    gpu: str

    @property
    def bytes(self) -> int:
        """Memory of one GPU."""
        return GPUS[self.gpu] * GB

    @staticmethod
    def parse(text: str) -> "Cluster":
        """Read `8xH100`.

        Raises:
            BadValue: it is not of that form.
            UnknownName: no such GPU is known.
        """
        found = re.fullmatch(r"([1-9]\d*)x(\S+)", text)
        if found is None:
            raise BadValue(f"--gpus {text}: expected a number and a kind, such as 8xH100")
        if found[2] not in GPUS:
            raise UnknownName("GPU", found[2], GPUS)
        return Cluster(count=int(found[1]), gpu=found[2])


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one process computes at a time, in tokens, and in which precision.

    `micro_batch` completions are trained on together, and `rows` are sampled together.
    """

    micro_batch: int
    rows: int
    prompt: int
    completion: int
    bf16: bool
    checkpointing: bool
    reference: bool

    @staticmethod
    def of(resolved: Resolved, processes: int, *, prompt: int = PROMPT_TOKENS) -> "Work":
        """The share of one process in what the settings say.

        Raises:
            BadValue: the processes do not divide the batch.
        """
        config, given = resolved.preview(), resolved.config
        share = divided(given, processes)
        batch = share.get("per_device_train_batch_size") or config.per_device_train_batch_size
        return Work(
            micro_batch=batch,
            rows=min(config.rollout_size // processes, ROWS),
            prompt=prompt,
            completion=config.max_completion_length,
            bf16=given.get("bf16") is not False and not given.get("fp16"),
            checkpointing=bool(config.activation_checkpointing),
            reference=config.beta != 0.0 or config.rollout_policy == "reference",
        )


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes on one GPU. `gathered` are whole weights, there while sampling if they are spread."""

    launch: str
    weights: int
    gradients: int
    optimiser: int
    reference: int
    activations: int
    gathered: int
    kv_cache: int

    @property
    def training(self) -> int:
        """At the end of a forward pass."""
        states = self.weights + self.gradients + self.optimiser + self.reference
        return states + self.activations

    @property
    def sampling(self) -> int:
        """While the longest completions are sampled; there are no gradients then."""
        states = self.weights + self.optimiser + self.reference
        return states + self.gathered + self.kv_cache

    @property
    def peak(self) -> int:
        """The larger of the two."""
        return max(self.training, self.sampling)

    def fits(self, cluster: Cluster) -> bool:
        """Whether the peak leaves a tenth of the GPU free."""
        return self.peak <= USABLE * cluster.bytes


def estimate_memory(shape: Shape, work: Work, launch: str, processes: int) -> Memory:
    """The memory of one process under one of our launches."""
    weights, gradients, optimiser = states(launch, shape.parameters, processes, bf16=work.bf16)
    spread = launch in ("fsdp2", "zero3")
    whole = weights * processes if spread else weights
    return Memory(
        launch=launch,
        weights=weights,
        gradients=gradients,
        optimiser=optimiser,
        reference=weights if work.reference else 0,
        activations=activations(shape, work),
        gathered=whole if spread else 0,
        kv_cache=kv_cache(shape, work, width=ceil(whole / shape.parameters)),
    )


def all_launches(shape: Shape, work: Work, processes: int) -> list[Memory]:
    """The memory under each of our launches."""
    return [estimate_memory(shape, work, launch, processes) for launch in LAUNCHES]


def states(launch: str, parameters: int, processes: int, *, bf16: bool) -> tuple[int, int, int]:
    """Bytes of weights, gradients and optimiser state on one process; see the module's table."""
    deepspeed = launch.startswith("zero")
    width, optimiser = (2 if deepspeed and bf16 else 4), (12 if deepspeed else 8)
    part = ceil(parameters / processes)
    spread = {
        "ddp": (parameters, parameters, parameters),
        "fsdp2": (part, part, part),
        "zero2": (parameters, part, part),
        "zero3": (part, part, part),
    }
    weights, gradients, moments = spread[launch]
    return width * weights, width * gradients, optimiser * moments


def activations(shape: Shape, work: Work) -> int:
    """Bytes that a forward pass keeps for its backward pass, and the gradient of the logits.

    With checkpointing a layer keeps its input alone, and one at a time is computed again.
    """
    tokens = work.micro_batch * (work.prompt + work.completion)
    layers = shape.layers * layer_activations(shape, work)
    if work.checkpointing:
        layers = shape.layers * 4 * tokens * shape.hidden + layer_activations(shape, work)
    logits = work.micro_batch * (work.completion + 1) * shape.vocabulary
    return layers + 2 * 4 * tokens * shape.hidden + 2 * 4 * logits


def layer_activations(shape: Shape, work: Work) -> int:
    """Bytes that one layer keeps for its backward pass.

    Of each token these are both norms' inputs and normalised states, in 32 bits; what goes into
    the projections, queries, keys, values and the attention's output, and four states of the
    feed-forward block.
    """
    tokens = work.micro_batch * (work.prompt + work.completion)
    q, kv = shape.heads * shape.head, shape.kv_heads * shape.head
    narrow = 2 * shape.hidden + 2 * q + 2 * kv + 4 * shape.intermediate
    width = 2 if work.bf16 else 4
    return tokens * (4 * 4 * shape.hidden + width * narrow + 4 * (2 + shape.heads))


def kv_cache(shape: Shape, work: Work, *, width: int) -> int:
    """Bytes of the keys and values of all rows at their full length."""
    tokens = work.rows * (work.prompt + work.completion)
    return 2 * shape.layers * shape.kv_heads * shape.head * tokens * width
