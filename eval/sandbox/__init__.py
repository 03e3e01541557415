"""Runs model-written Python where it can harm nothing, and says what it printed."""

from eval.sandbox.boxes import BACKENDS
from eval.sandbox.neutral import neutral
from eval.sandbox.sandbox import Sandbox, backends
from eval.sandbox.worker import Execution, SandboxUnavailable

__all__ = ["BACKENDS", "Execution", "Sandbox", "SandboxUnavailable", "backends", "neutral"]
