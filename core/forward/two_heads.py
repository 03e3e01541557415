"""Numbers of completion tokens under a student and its teacher, by the output heads of both."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers import PreTrainedModel

from core.forward.batches import Batch
from core.forward.head import add_product, chunk_size, in_autocast
from core.forward.logps import (
    CPU_ROWS,
    Rows,
    completion_outputs,
    evaluating,
    flush_left,
    read_packed,
)
from core.forward.micro_pieces import take
from core.forward.packing import can_pack, pack
from core.rollout.wide_head import WideHead, upcast

# Maps the log-probabilities (N, V) of both models, -inf for an impossible token, and the tokens
# (N,) that follow to K numbers of each token (N, K).
Measure = Callable[[Tensor, Tensor, Tensor], Tensor]


def entropy_of(logps: Tensor, *, learned: bool = False) -> Tensor:
    """Return the entropy (N,) of log-probabilities (N, V), with a gradient if it is learned."""
    known = logps if learned else logps.detach()
    return -(known.exp() * known.masked_fill(known.isneginf(), 0.0)).sum(-1)


class Head(NamedTuple):
    """Hidden states (N, D) of one model at N tokens, and the weight (V, D) of its output head."""

    hidden: Tensor
    weight: Tensor

    def logits(self, part: slice) -> Tensor:
        """Return logits of some tokens, in 32 bits or more."""
        logits = self.hidden[part] @ self.weight.T
        return logits.to(torch.promote_types(logits.dtype, torch.float32))


class HeadNumbers(torch.autograd.Function):
    """Autograd function for a `Measure` of two models, with a gradient by the student alone.

    The logits (N, V) of both exist for some tokens at a time, and are computed again for the
    gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,  # Any: torch types it so
        hidden: Tensor,
        weight: Tensor,
        teacher: Head,
        tokens: Tensor,
        temperature: float,
        measure: Measure,
    ) -> Tensor:
        """Return the numbers (N, K) from hidden states (N, D), weight (V, D) and tokens (N,)."""
        ctx.save_for_backward(hidden, weight, *teacher, tokens)
        ctx.temperature, ctx.measure = temperature, measure
        student = Head(hidden, weight)
        return torch.cat(
            [
                measured(student.logits(part), teacher, part, tokens, temperature, measure)
                for part in parts_of(student)
            ]
        )

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - torch's own has no names
        ctx: Any, gradient: Tensor
    ) -> tuple[Tensor | None, ...]:
        """Return the gradients of the student's hidden states and weight."""
        hidden, weight, teacher_hidden, teacher_weight, tokens = ctx.saved_tensors
        student, teacher = Head(hidden, weight), Head(teacher_hidden, teacher_weight)
        by_hidden = torch.empty_like(hidden)
        by_weight = torch.zeros_like(weight, dtype=torch.promote_types(weight.dtype, torch.float32))
        for part in parts_of(student):
            logits = student.logits(part).requires_grad_()
            with torch.enable_grad():
                numbers = measured(logits, teacher, part, tokens, ctx.temperature, ctx.measure)
            (wide,) = torch.autograd.grad(numbers, logits, gradient[part])
            by_logits = wide.to(hidden.dtype)
            by_hidden[part] = by_logits @ weight
            add_product(by_weight, by_logits.T, hidden[part])
        return by_hidden, by_weight.to(weight.dtype), None, None, None, None


def parts_of(head: Head) -> list[slice]:
    """Return the tokens whose logits are in memory at a time."""
    rows = max(1, chunk_size(head.hidden.device) // len(head.weight))
    return [slice(start, start + rows) for start in range(0, len(head.hidden), rows)]


def measured(
    logits: Tensor,
    teacher: Head,
    part: slice,
    tokens: Tensor,
    temperature: float,
    measure: Measure,
) -> Tensor:
    """Return the numbers of some tokens from the student's logits (n, V)."""
    logps, other = ((x / temperature).log_softmax(-1) for x in (logits, teacher.logits(part)))
    return measure(logps, other, tokens[part])


def head_numbers(
    student: Head, teacher: Head, tokens: Tensor, temperature: float, measure: Measure
) -> Tensor:
    """Return a `Measure` (N, K) of two models at N tokens.

    If the heads differ in size, both distributions are over the tokens that both have.

    Args:
        student: The student, which has a gradient.
        teacher: The teacher at the same tokens, perhaps of another width.
        tokens: The tokens (N,) that follow.
        temperature: Divides the logits of both.
        measure: The numbers.
    """
    shared = min(len(student.weight), len(teacher.weight))
    hidden, weight = in_autocast(student.hidden), in_autocast(student.weight[:shared])
    own = Head(*(in_autocast(x.detach()) for x in (teacher.hidden, teacher.weight[:shared])))
    return HeadNumbers.apply(hidden, weight, own, tokens, temperature, measure)


def token_numbers(
    student: nn.Module,
    teacher: PreTrainedModel,
    batch: Batch,
    teacher_batch: Batch,
    temperature: float,
    measure: Measure,
) -> Tensor:
    """Return a `Measure` of each completion token (B, T, K), 0 on padding.

    The teacher is in evaluation mode and has no gradient. Rows are packed if the attention of both
    models allows it, and their logits are never all in memory. Otherwise completions of similar
    length go through the models together, with all logits of these.

    Args:
        student: The model with a gradient, perhaps wrapped.
        teacher: The teacher, whole.
        batch: Prompts and completions.
        teacher_batch: The same completions, perhaps after other prompts.
        temperature: Divides the logits of both.
        measure: The numbers.
    """
    policy = next((m for m in student.modules() if isinstance(m, PreTrainedModel)), None)
    both_pack = can_pack(teacher, teacher_batch)
    if policy is not None and both_pack and can_pack(policy, batch):
        return packed_numbers(student, policy, teacher, batch, teacher_batch, temperature, measure)
    read = partial(padded_numbers, student, teacher, temperature=temperature, measure=measure)
    on_cpu = batch["completion_ids"].device.type == "cpu"
    order = batch["completion_mask"].sum(-1).argsort(stable=True)
    parts = order.split(CPU_ROWS if on_cpu else len(order))
    numbers = [read(take(batch, rows), take(teacher_batch, rows)) for rows in parts]
    return torch.cat(numbers)[order.argsort()]


def packed_numbers(
    student: nn.Module,
    policy: PreTrainedModel,
    teacher: PreTrainedModel,
    batch: Batch,
    teacher_batch: Batch,
    temperature: float,
    measure: Measure,
) -> Tensor:
    """Compute `token_numbers` from packed rows; `policy` is the model inside of wrappers."""
    with torch.no_grad(), evaluating(teacher):
        own = packed_head(teacher, teacher_batch)
    packed, head = pack(batch), cast(nn.Linear, policy.get_output_embeddings())

    def read_heads(hidden: Tensor) -> tuple[Tensor, ...]:
        pair = Head(hidden[0], head.weight), own
        if not isinstance(head, WideHead):
            return head_numbers(*pair, packed.targets, temperature, measure).unbind(-1)
        student_head, teacher_head = (Head(*map(upcast, read)) for read in pair)
        with torch.autocast(hidden.device.type, enabled=False):
            numbers = head_numbers(student_head, teacher_head, packed.targets, temperature, measure)
        return numbers.unbind(-1)

    return torch.stack(read_packed(student, policy, batch, packed, read_heads), dim=-1)


def packed_head(model: PreTrainedModel, batch: Batch) -> Head:
    """Return the hidden states that predict the completion tokens, row after row, and the head."""
    states: list[Tensor] = []

    def keep(hidden: Tensor) -> tuple[Tensor, ...]:
        states.append(hidden[0])
        return (hidden[0, :, 0],)

    read_packed(model, model, batch, pack(batch), keep)
    return Head(states[0], cast(nn.Linear, model.get_output_embeddings()).weight)


def padded_numbers(
    student: nn.Module,
    teacher: PreTrainedModel,
    batch: Batch,
    teacher_batch: Batch,
    *,
    temperature: float,
    measure: Measure,
) -> Tensor:
    """Compute `token_numbers` from rows that are padded on the right."""
    mask = batch["completion_mask"].bool()
    logits = padded_logits(student, batch)
    with torch.no_grad(), evaluating(teacher):
        teacher_logits = padded_logits(teacher, teacher_batch)
    shared = min(logits.size(-1), teacher_logits.size(-1))
    logps, other = ((x[:, :shared] / temperature).log_softmax(-1) for x in (logits, teacher_logits))
    numbers = measure(logps, other, batch["completion_ids"][mask])
    whole = numbers.new_zeros(*mask.shape, numbers.size(-1))
    return whole.masked_scatter(mask.unsqueeze(-1), numbers)


def padded_logits(model: nn.Module, batch: Batch) -> Tensor:
    """Return the logits (N, V) of completion tokens, row after row, in 32 bits or more."""
    rows: Rows = flush_left(batch)
    logits = completion_outputs(model, rows, with_router=False).logits
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    row, place = batch["completion_mask"].nonzero(as_tuple=True)
    return wide[row, place + rows.begins[row, 0] - rows.first]
