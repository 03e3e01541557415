"""Memory per GPU of a training under each of our launches, before anything is loaded.

Psi parameters on N processes, bytes per parameter after arXiv 1910.02054 s3:

    launch   weights   gradients   optimiser
    ddp      w         g           K
    fsdp2    w / N     g / N       K / N
    zero1    w         g           K / N         (P_os)
    zero2    w         g / N       K / N         (P_os+g)
    zero3    w / N     g / N       K / N         (P_os+g+p)

PyTorch's own keep the weights in 32 bits and no second copy: w = g = 4, K = 8. DeepSpeed keeps 32
bits beside the working weights in any case: w = g = 2, K = 12 with bf16, and w = g = 4, K = 12
without.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

from core.families.family import Work
from core.forward.head import CHUNK, GPU_CHUNK, KEPT
from core.forward.micro_pieces import MANY_TOKENS, TOKENS
from core.models.shapes import Shape
from core.settings.resolved import Resolved, divide_batch
from core.settings.run_settings import LAUNCHES
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
OF_VALUES = 4 + 4 + 8  # bytes of each parameter of a value model: all in 32 bits
USABLE = 0.9  # what fragments, buffers and the libraries themselves leave of it


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A number of GPUs of one kind."""

    count: int
    gpu: str

    @property
    def bytes(self) -> int:
        """The memory of one GPU in bytes."""
        return GPUS[self.gpu] * GB

    @staticmethod
    def parse(text: str) -> "Cluster":
        """Return the cluster of a text such as `8xH100`.

        Raises:
            BadValue: the text does not have that form.
            UnknownName: no such GPU is known.
        """
        match = re.fullmatch(r"([1-9]\d*)x(\S+)", text)
        if match is None:
            raise BadValue(f"--gpus {text}: expected a number and a kind, such as 8xH100")
        if match[2] not in GPUS:
            raise UnknownName("GPU", match[2], GPUS)
        return Cluster(count=int(match[1]), gpu=match[2])


def work_of(resolved: Resolved, processes: int) -> Work:
    """Return the sizes of what one process computes at a time.

    Raises:
        BadValue: the processes do not divide the batch, or the family trains nothing.
    """
    family, config = resolved.family, resolved.config
    share = divide_batch(config, processes, family.micro_batches)
    work = family.work(resolved.preview(), processes, share)
    if work is None:
        raise BadValue(f"--gpus: papers of the family {family.name} train nothing; leave it out")
    return replace(work, bf16=config.get("bf16") is not False and not config.get("fp16"))


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The memory that a training takes on one GPU, in bytes by its use.

    `autocast` is autocast's copy of the weights in 16 bits, which lasts for one pass or rollout.
    `gathered` are the whole weights while sampling, if the launch shards them. `values` are the
    weights, gradients and AdamW states of a value model, which no launch shards.
    """

    launch: str
    weights: int
    gradients: int
    optimiser: int
    reference: int
    activations: int
    autocast: int
    gathered: int
    kv_cache: int
    values: int = 0

    @property
    def training(self) -> int:
        """The memory at the end of a forward pass with gradients of an earlier micro-batch."""
        states = self.weights + self.gradients + self.optimiser + self.reference
        return states + self.values + self.activations + self.autocast

    @property
    def sampling(self) -> int:
        """The memory while the longest completions are sampled, without gradients."""
        states = self.weights + self.optimiser + self.reference + self.values
        return states + self.gathered + self.autocast + self.kv_cache

    @property
    def peak(self) -> int:
        """The larger of the memory of training and of sampling."""
        return max(self.training, self.sampling)

    def fits(self, cluster: Cluster) -> bool:
        """Return whether the peak leaves a tenth of the GPU free."""
        return self.peak <= USABLE * cluster.bytes


def estimate_memory(shape: Shape, work: Work, launch: str, processes: int) -> Memory:
    """Return the estimated memory of one process under one launch."""
    weights, gradients, optimiser = states(launch, shape.parameters, processes, bf16=work.bf16)
    spread = launch in ("fsdp2", "zero3")
    gathered_weights = weights * processes if spread else weights
    return Memory(
        launch=launch,
        weights=weights,
        gradients=gradients,
        optimiser=optimiser,
        reference=weights if work.reference else 0,
        activations=activations(shape, work, launch) * (2 if work.values else 1),
        autocast=narrow_copy(shape, work, launch),
        gathered=gathered_weights if spread else 0,
        kv_cache=kv_cache(shape, work, width=ceil(gathered_weights / shape.parameters)),
        values=OF_VALUES * shape.parameters if work.values else 0,
    )


def all_launches(shape: Shape, work: Work, processes: int) -> list[Memory]:
    """Return the estimated memory of one process under each launch."""
    return [estimate_memory(shape, work, launch, processes) for launch in LAUNCHES]


def states(launch: str, parameters: int, processes: int, *, bf16: bool) -> tuple[int, int, int]:
    """Return the bytes of weights, gradients and optimiser state on one process.

    The table of this module has the formulas.
    """
    deepspeed = launch.startswith("zero")
    width, optimiser = (2 if deepspeed and bf16 else 4), (12 if deepspeed else 8)
    part = ceil(parameters / processes)
    spread = {
        "ddp": (parameters, parameters, parameters),
        "fsdp2": (part, part, part),
        "zero1": (parameters, parameters, part),
        "zero2": (parameters, part, part),
        "zero3": (part, part, part),
    }
    weights, gradients, moments = spread[launch]
    return width * weights, width * gradients, optimiser * moments


def activations(shape: Shape, work: Work, launch: str, *, on_cpu: bool = False) -> int:
    """Return the bytes of activations when the forward pass is complete.

    DDP computes a micro-batch in pieces, see `core.forward.micro_pieces`; launches that shard the
    states compute it at once. With checkpointing each layer keeps its input only,
    and one layer at a time is computed again.
    """
    pieces = launch == "ddp"
    tokens = TOKENS["cpu"] if on_cpu else MANY_TOKENS
    piece_tokens = max(tokens, work.prompt + work.completion) if pieces else work.tokens
    part = min(1.0, piece_tokens / work.tokens)
    layer = part * layer_activations(shape, work, has_flash=work.bf16 and not on_cpu)
    head = head_activations(shape, work, part, on_cpu=on_cpu)
    width = 2 if work.bf16 else 4
    gradients = 3 * width * part * work.tokens * shape.intermediate
    total = shape.layers * layer + max(head, gradients)
    if work.checkpointing:
        inputs = 4 * part * work.tokens * shape.hidden
        total = shape.layers * inputs + max(head, layer + gradients)
    return ceil(total)


def narrow_copy(shape: Shape, work: Work, launch: str) -> int:
    """Return the bytes of autocast's 16-bit copy of the weights, which only DDP in bf16 has."""
    return 2 * shape.parameters if launch == "ddp" and work.bf16 else 0


def layer_activations(shape: Shape, work: Work, *, has_flash: bool) -> int:
    """Return the bytes that one layer keeps of a micro-batch for its backward pass.

    For each token these are the inputs and outputs of both norms in 32 bits, the inputs of the
    projections, of which autocast converts five, queries, keys and values, the output of the
    attention twice, and four states of the feed-forward block. A completion after a shared prompt
    keeps a copy of the prompt's keys and values. Without flash attention, keys and values have a
    head for each query, and each such completion has an attention mask.
    """
    q, kv = shape.heads * shape.head, shape.kv_heads * shape.head
    keys_and_values = 2 * (kv if has_flash or shape.kv_heads == shape.heads else q)
    width, inputs = (2, 5) if work.bf16 else (4, 2)
    narrow = inputs * shape.hidden + 3 * q + keys_and_values + 4 * shape.intermediate
    bytes_per_token = 4 * 4 * shape.hidden + width * narrow + 4 * (2 + shape.heads)
    attended = 0 if has_flash else work.completion * (work.prompt + work.completion)
    shared = work.micro_batch if work.prompts < work.micro_batch else 0
    return work.tokens * bytes_per_token + shared * width * (
        work.prompt * keys_and_values + attended
    )


def head_activations(shape: Shape, work: Work, part: float, *, on_cpu: bool) -> float:
    """Return the bytes of the last norm and the head for a part of a micro-batch.

    A GPU's kernels need a chunk of logits in the width of the weights, see `KernelHeadLogps`. On a
    CPU the probabilities of few logits are kept, and a chunk takes two more copies in 32 bits, or
    four if they are many, and one in the width of the weights, see `HeadLogps`. Then come the
    gradients of the states and of the weight.
    """
    read, width = part * work.micro_batch * work.completion, 2 if work.bf16 else 4
    logits, most = read * shape.vocabulary, CHUNK if on_cpu else GPU_CHUNK
    chunk = min(logits, max(most, shape.vocabulary))
    copies = width * chunk
    if on_cpu:
        copies = (4 * logits + 8 * chunk) if logits <= KEPT else 16 * chunk
        copies += 2 * chunk if work.bf16 else 0
    norm = 2 * 4 * part * work.tokens * shape.hidden
    states = 2 * width * read * shape.hidden
    return norm + states + copies + 4 * shape.vocabulary * shape.hidden


def kv_cache(shape: Shape, work: Work, *, width: int) -> int:
    """Return the bytes of the keys and values of all rows at their full length."""
    tokens = work.rows * (work.prompt + work.completion)
    return 2 * shape.layers * shape.kv_heads * shape.head * tokens * width
