"""Laws of ZeRO, arXiv 1910.02054: simulated processes that share Adam, and the planned bytes.

A stage spreads over N processes the optimiser state (1), the gradients too (2), the weights too
(3). A tensor of P numbers is padded to a multiple of N; process i owns slice i.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from core.settings.memory import states

PARAMETERS = 7_500_000_000  # the model of table 1
STAGES: Mapping[str, int] = {"ddp": 0, "zero1": 1, "zero2": 2, "zero3": 3}
COUNTS = (2, 4, 8)  # of simulated processes
MANY = 1024
PLANNED = (*COUNTS, 64, MANY)
LIMITS = (4.0, 2.0, 0.0)  # bytes of a parameter for ever more processes, stages 1 to 3
STEPS, RATE = 10, 1e-2
SIZES = (7, 12, 1)  # of the layers of a network with 109 parameters, which no count divides
BATCH = 16


def parameter_bytes(launch: str) -> list[float]:
    """Return the planned bytes of a parameter and its states, for each number of `PLANNED`."""
    return [_planned(launch, PARAMETERS, n) / PARAMETERS for n in PLANNED]


def bytes_of_many() -> list[float]:
    """Return the planned bytes of a parameter on one of `MANY` processes, for stages 1 to 3."""
    return [_planned(launch, PARAMETERS, MANY) / PARAMETERS for launch in STAGES if STAGES[launch]]


def limits() -> list[float]:
    """Return the bytes that `bytes_of_many` tends to, by arXiv 1910.02054 s5."""
    return [*LIMITS]


def alone_spread() -> int:
    """Return the largest difference between the planned bytes of the launches on one process."""
    planned = [_planned(launch, PARAMETERS, 1) for launch in STAGES]
    return max(planned) - min(planned)


def _planned(launch: str, parameters: int, processes: int) -> int:
    return sum(states(launch, parameters, processes, bf16=True))


@dataclass(eq=False)
class Process:
    """State of one simulated process between steps: whole tensors, or its slices of them.

    Attributes:
        weights: what the network computes with.
        gradients: of the last step, in the type of the weights.
        master: the weights that Adam updates.
        optimizer: Adam of `master`.
    """

    weights: Tensor
    gradients: Tensor
    master: Tensor
    optimizer: torch.optim.Adam

    @property
    def held_bytes(self) -> int:
        """Bytes of weights, gradients, master weights and moments."""
        state = self.optimizer.state[self.master]
        moments = (state["exp_avg"], state["exp_avg_sq"])
        tensors = (self.weights, self.gradients, self.master, *moments)
        return sum(tensor.nbytes for tensor in tensors)


class Processes:
    """Simulated processes that train one network, each on its share of a batch.

    `moved` counts the numbers that each process sends. In a ring, a reduce-scatter and an
    all-gather send (N - 1) / N of the padded tensor each.

    Args:
        stage: ZeRO's stage, 0 for plain data parallelism.
        count: the number of processes.
        narrow: type of weights and gradients.
        wide: type of the optimiser's state.
    """

    def __init__(self, stage: int, count: int, narrow: torch.dtype, wide: torch.dtype):
        self.stage, self.count, self.moved = stage, count, 0
        self.narrow, self.wide = narrow, wide
        self.start = start_weights()
        self.all = [self._process(part) for part in self.slices(self.start)]

    def _process(self, part: Tensor) -> Process:
        master = (part if self.stage >= 1 else self.start).to(self.wide).clone()
        return Process(
            weights=(part if self.stage >= 3 else self.start).to(self.narrow),
            gradients=(part if self.stage >= 2 else self.start).to(self.narrow),
            master=master,
            optimizer=torch.optim.Adam([master], lr=RATE),
        )

    def slices(self, whole: Tensor) -> tuple[Tensor, ...]:
        """Return the slices of the processes, padded to one length."""
        return nn.functional.pad(whole, (0, -len(whole) % self.count)).chunk(self.count)

    def all_gather(self, parts: Sequence[Tensor]) -> Tensor:
        """Return the tensor that the slices of all processes make."""
        self.moved += (self.count - 1) * len(parts[0])
        return torch.cat([*parts])[: len(self.start)]

    def reduce_scatter(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the slices of the mean of one tensor of each process."""
        parts = self.slices(torch.stack([*tensors]).mean(0))
        self.moved += (self.count - 1) * len(parts[0])
        return parts

    def network_weights(self) -> list[Tensor]:
        """Return the whole weights on each process; stage 3 gathers them."""
        held = [process.weights for process in self.all]
        return [self.all_gather(held)] * self.count if self.stage >= 3 else held

    def step(self) -> None:
        """Update the weights once, by the mean gradient of the shares of the batch."""
        self.network_weights()  # for the forward pass
        weights = self.network_weights()  # again for the backward pass
        shares = torch.arange(BATCH).chunk(self.count)
        local = [gradient(w, share) for w, share in zip(weights, shares, strict=True)]
        parts = self.reduce_scatter(local)
        reduced = parts if self.stage >= 1 else [self.all_gather(parts)] * self.count
        for process, whole, own in zip(self.all, local, reduced, strict=True):
            process.gradients = (own if self.stage >= 2 else whole).to(self.narrow)
            process.master.grad = own.to(self.wide)
            process.optimizer.step()  # pyright: ignore[reportUnknownMemberType]
        updated = [process.master.to(self.narrow) for process in self.all]
        whole_again = [self.all_gather(updated)] * self.count if self.stage in (1, 2) else updated
        for process, new in zip(self.all, whole_again, strict=True):
            process.weights = new


def start_weights() -> Tensor:
    """Return the flat weights of the network, in 64 bits."""
    draw = torch.Generator().manual_seed(0)
    count = sum(a * b + b for a, b in pairwise(SIZES))
    return torch.randn(count, generator=draw, dtype=torch.float64) / 3


def gradient(weights: Tensor, share: Tensor) -> Tensor:
    """Return the gradient of the network's mean squared error on some rows of the batch.

    Args:
        weights: flat, of any type; the gradient is computed in 64 bits.
        share: the numbers of the rows.
    """
    flat = weights.detach().double().requires_grad_()
    draw = torch.Generator().manual_seed(1)
    hidden = torch.randn(BATCH, SIZES[0], generator=draw, dtype=torch.float64)[share]
    target, place = hidden.sin().sum(1, keepdim=True), 0
    for width, out in pairwise(SIZES):
        matrix = flat[place : place + width * out].view(out, width)
        bias = flat[place + width * out :][:out]
        hidden, place = torch.tanh(hidden @ matrix.T + bias), place + width * out + out
    loss = (hidden - target).square().mean()
    return torch.autograd.grad(loss, flat)[0]


def trained(stage: int, count: int, narrow: torch.dtype, wide: torch.dtype) -> Processes:
    """Return simulated processes after `STEPS` steps."""
    processes = Processes(stage, count, narrow, wide)
    for _ in range(STEPS):
        processes.step()
    return processes


def allocation_errors() -> list[int]:
    """Return |bytes that a process holds - planned bytes|, for each launch and number."""
    return [
        abs(process.held_bytes - _planned(launch, len(start_weights()), count))
        for launch, stage in STAGES.items()
        for count in (1, *COUNTS)
        for process in trained(stage, count, torch.bfloat16, torch.float32).all
    ]


def update_errors() -> list[float]:
    """Return max |weights - those of Adam on one process|, for each launch and number."""
    exact = torch.float64
    (alone,) = trained(0, 1, exact, exact).all
    errors: list[float] = []
    for stage in STAGES.values():
        for count in COUNTS:
            shared = trained(stage, count, exact, exact)
            different = [
                (weights - alone.weights).abs().max() for weights in shared.network_weights()
            ]
            errors.append(float(torch.stack(different).max()))
    return errors


def moved_numbers(launch: str) -> list[int]:
    """Return the numbers that a process sends in a step, for each number of `COUNTS`."""
    exact = torch.float64
    totals = [trained(STAGES[launch], count, exact, exact).moved for count in COUNTS]
    return [total // STEPS for total in totals]
