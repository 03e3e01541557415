"""Runs model-written Python in isolation and returns its output."""

from eval.sandbox.boxes import BACKENDS
from eval.sandbox.neutral import neutral
from eval.sandbox.sandbox import Sandbox, backends
from eval.sandbox.worker import Execution, SandboxUnavailable

__all__ = ["BACKENDS", "Execution", "Sandbox", "SandboxUnavailable", "backends", "neutral"]
