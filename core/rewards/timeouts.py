"""Count of completions without a verdict because the grader's deadline passed."""

from collections.abc import Callable

LogMetric = Callable[[str, float], None]


def log_timeouts(log_metric: LogMetric | None, name: str, count: int) -> None:
    """Log a count above 0 as the metric `rewards/NAME/timeouts`."""
    if log_metric is not None and count:
        log_metric(f"rewards/{name}/timeouts", count)
