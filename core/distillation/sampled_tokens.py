"""Checks of sampled tokens that a teacher does not have, or gives no probability."""

from torch import Tensor

from core.collect.generation import Generated
from eval.errors import BadValue


def check_head(generated: Generated, shared: int) -> None:
    """Refuse completions with a token that a smaller head of the teacher lacks.

    Args:
        generated: The completions.
        shared: Number of tokens that both heads have.

    Raises:
        BadValue: there is such a token.
    """
    greatest = max((token for ids in generated.completion_ids for token in ids), default=0)
    if greatest >= shared:
        raise BadValue(
            f"a completion has the token {greatest}, and the teacher's head has {shared} "
            "rows: take a teacher whose head is not smaller than the student's"
        )


def check_possible(teacher_logps: Tensor, tokens: Tensor, advice: str) -> None:
    """Refuse sampled tokens that are impossible for the teacher.

    Args:
        teacher_logps: The teacher's log-probabilities of the tokens.
        tokens: The tokens, of the same shape.
        advice: What else can be done than to take another teacher.

    Raises:
        BadValue: there is such a token.
    """
    impossible = tokens[teacher_logps.isneginf()]
    if len(impossible):
        raise BadValue(
            f"the teacher gives the sampled token {int(impossible[0])} no probability: take a "
            f"teacher of the same tokens, or {advice}"
        )
