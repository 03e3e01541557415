"""Limits of processor time for calls of reward functions, and warnings about exceeded limits."""

from collections.abc import Callable, Mapping
from typing import cast

CALL_S, COMPLETION_S = 60.0, 2.0  # of processor time: for a call, and more for each completion


def time_limit_s(function: Callable[..., object], completions: int) -> float:
    """Return the function's own `time_limit_s`, else a limit that grows with the completions."""
    limit_s = getattr(function, "time_limit_s", None)
    return CALL_S + COMPLETION_S * completions if limit_s is None else float(limit_s)


def report_overrun(
    name: str, limit_s: float, where: str, n: int, shared: Mapping[str, object]
) -> None:
    """Warn that `n` completions get no reward from a function, and log their number."""
    from transformers.utils import logging

    logging.get_logger(__name__).warning(
        f"reward {name!r} used more than {limit_s:g} s of processor time on {where}: they get no "
        "reward from it. Where it needs as long, give the function an attribute time_limit_s"
    )
    if "log_metric" in shared:
        log_metric = cast(Callable[[str, float], None], shared["log_metric"])
        log_metric(f"rewards/{name}/timeouts", n)
