"""Settings of a student that is its own teacher: with a hint in its prompt, and older weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from core.distillation.divergence_config import MEANS
from core.losses.divergence import check_top_k, divergence, on_top_k, sampled_reverse_kl
from core.losses.masked import masked_mean
from core.losses.token_weights import clipped_ratio
from core.option import choice, option
from core.shapes import BT, NV, Mask, N
from eval.errors import BadValue

SERVER = "the teacher is computed in this process"


class Mode(NamedTuple):
    """A row of `MODES`: the loss of each token from log-probabilities of both models.

    If it is `of_completion`, `of` is an advantage instead: each token's loss is its
    log-probability times the mean of a completion.
    """

    of: "Callable[[NV, NV, Tensor, OwnTeacherConfig], N]"
    doc: str
    parameters: tuple[str, ...] = ()
    of_completion: bool = False


def of_tokens(logps: NV, tokens: Tensor) -> N:
    """Return the log-probabilities of the sampled tokens."""
    return logps.gather(-1, tokens[:, None])[:, 0]


def sampled_token(logps: NV, teacher_logps: NV, tokens: Tensor, args: "OwnTeacherConfig") -> N:  # noqa: ARG001 - a table row
    """Return `sampled_reverse_kl` of the sampled tokens."""
    return sampled_reverse_kl(of_tokens(logps, tokens), of_tokens(teacher_logps, tokens))


def sampled_completion(logps: NV, teacher_logps: NV, tokens: Tensor, args: "OwnTeacherConfig") -> N:  # noqa: ARG001 - as above
    """Return log S - log T of the sampled tokens, without a gradient."""
    return (of_tokens(logps, tokens) - of_tokens(teacher_logps, tokens)).detach()


def topk_logits(logps: NV, teacher_logps: NV, tokens: Tensor, args: "OwnTeacherConfig") -> N:  # noqa: ARG001 - as above
    """Return D_alpha on the student's most likely tokens, see `on_top_k`."""
    k, has_tail = args.distillation_topk or 0, args.distillation_add_tail
    pair = on_top_k(logps, teacher_logps, k, has_tail=has_tail)
    return divergence(*pair, args.distillation_alpha)


def full_logits(logps: NV, teacher_logps: NV, tokens: Tensor, args: "OwnTeacherConfig") -> N:  # noqa: ARG001 - as above
    """Return D_alpha over the vocabulary."""
    return divergence(logps, teacher_logps, args.distillation_alpha)


MODES = {
    "sampled_token": Mode(sampled_token, "the reverse KL by the sampled token"),
    "sampled_completion": Mode(
        sampled_completion,
        "the mean of log S - log T over a completion times the log-probability of each token, "
        "which TRL has not",
        of_completion=True,
    ),
    "topk_logits": Mode(
        topk_logits,
        "a divergence on the student's most likely tokens",
        ("distillation_topk", "distillation_add_tail"),
    ),
    "full_logits": Mode(full_logits, "a divergence over the vocabulary"),
}
SAMPLED = ("sampled_token", "sampled_completion")  # which read the student's sampled tokens alone


def self_measure(logps: NV, teacher_logps: NV, tokens: Tensor, args: "OwnTeacherConfig") -> Tensor:
    """Return entropy, loss and log-probability of the student's tokens (N, 3)."""
    from core.forward.two_heads import entropy_of  # torch, which declarations are without

    own = of_tokens(logps, tokens)
    apart = MODES[args.distillation_mode].of(logps, teacher_logps, tokens, args)
    return torch.stack([entropy_of(logps), apart, own], dim=-1)


def token_losses(numbers: Tensor, old_logps: BT | None, mask: Mask, args: "OwnTeacherConfig") -> BT:
    """Return the loss of each token, weighted by its ratio to the student that sampled.

    Args:
        numbers: The numbers of `self_measure` (B, T, 3).
        old_logps: The log-probabilities of that student; None for the present one.
        mask: Which tokens are trained on; an advantage is the mean over those of a completion.
        args: The settings.
    """
    _, apart, logps = numbers.unbind(-1)
    if MODES[args.distillation_mode].of_completion:
        apart = masked_mean(apart, mask).unsqueeze(1) * logps
    return apart * clipped_ratio(logps, old_logps, args.distillation_is_clip)


class Kind(NamedTuple):
    """A row of `KINDS`: which weights a student's own teacher has."""

    doc: str
    parameters: tuple[str, ...] = ()


KINDS = {
    "base": Kind("those at the start"),
    "live": Kind("those of the student, without dropout"),
    "ema": Kind(
        "their moving average from the start on", ("teacher_update_rate", "teacher_sync_steps")
    ),
}


@dataclass
class OwnTeacherConfig:
    """Settings of a student's own teacher; the config of a trainer inherits them.

    `normalize` is no setting of TRL.
    """

    OWN_CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "distillation_mode": tuple(MODES),
        "teacher_model_kind": tuple(KINDS),
        "normalize": tuple(MEANS),
    }
    OWN_AT_LEAST: ClassVar[Mapping[str, float]] = {
        "distillation_topk": 1,
        "distillation_is_clip": 0.0,
        "teacher_sync_steps": 1,
        "max_prompt_length": 1,
    }

    learning_rate: float = option(5e-5, "Initial learning rate of AdamW.")
    disable_dropout: bool = option(True, "Train without dropout.")
    num_generations: int = option(8, "Completions of one prompt.")
    max_completion_length: int = option(256, "Longest completion in tokens.")
    max_prompt_length: int | None = option(
        512, "Longest prompt in tokens; a longer one loses its beginning. Unset, none does."
    )
    distillation_alpha: float = option(0.5, "Divergence: 0 is the forward KL, 1 the reverse KL.")
    distillation_mode: str = choice("topk_logits", MODES, "The loss of a token")
    distillation_topk: int | None = option(None, "Number of most likely tokens.")
    distillation_is_clip: float | None = option(
        2.0, "Greatest ratio to the student that sampled, by which losses are weighted; unset, 1."
    )
    distillation_add_tail: bool = option(False, "Count the mass of all other tokens as one more.")
    teacher_model_kind: str = choice("base", KINDS, "Weights of the teacher")
    teacher_update_rate: float = option(0.05, "Share of the student in each move of the teacher.")
    teacher_sync_steps: int = option(1, "Optimizer steps between two moves of the teacher.")
    use_teacher_server: bool = option(False, "Ask a server for the teacher's probabilities.")
    normalize: str = choice("sequence", MEANS, "What the loss is")

    @property
    def shares(self) -> tuple[str, ...]:
        """Names of the settings that are a share."""
        return ("distillation_alpha", "teacher_update_rate")

    @property
    def longest_prompt(self) -> int | None:
        """Number of tokens to which prompts are cut, from the left."""
        return self.max_prompt_length

    def check_own_teacher(self: Any) -> None:  # Any: of both classes that a config inherits
        """Refuse settings of the loss or of the teacher that have no effect, or no meaning.

        Raises:
            BadValue: there are such settings.
        """
        self.refuse_idle("distillation_mode", MODES)
        self.refuse_idle("teacher_model_kind", KINDS)
        alpha, mode = self.distillation_alpha, self.distillation_mode
        if mode in SAMPLED and alpha != 1:
            raise BadValue(
                f"distillation_mode={mode!r} with distillation_alpha={alpha!r}: sampled "
                "tokens give the reverse KL; set distillation_alpha=1.0 or another mode"
            )
        if mode == "topk_logits" and self.distillation_topk is None:
            raise BadValue("distillation_mode='topk_logits' needs distillation_topk, such as 100")

    def check_tokens(self, vocabulary: int) -> None:
        """Refuse a number of most likely tokens on which no divergence can be, see `on_top_k`.

        Raises:
            BadValue: it is above the size of the vocabulary, or 1 without a tail.
        """
        if self.distillation_mode == "topk_logits":
            has_tail = self.distillation_add_tail
            check_top_k(self.distillation_topk or 0, vocabulary, has_tail=has_tail)


def check_template(name: str, template: str, *fields: str) -> None:
    """Refuse a template of a prompt that lacks a field, or that has others.

    Raises:
        BadValue: it does, or it is no format string.
    """
    expected = " and ".join(f"{{{field}}}" for field in fields)
    try:
        found = {field for _, field, _, _ in Formatter().parse(template) if field is not None}
    except ValueError as error:
        raise BadValue(f"{name}={template!r}: {error}; expected {expected} in it") from error
    if found != set(fields):
        raise BadValue(f"{name}={template!r}: expected {expected} in it, and no other field")
