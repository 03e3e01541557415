"""What a mode of answering makes of a sampler: in some, programs of an answer are run."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

from core.rollout.samplers.journal import Journal, JournaledExecutor
from core.run.stages.stage import say
from eval.samples.evaluation import Sampler
from eval.samples.pal import ProgramSampler
from eval.samples.tir import ToolSampler
from eval.sandbox import Sandbox
from eval.sets.fewshot import PAL

Tools: TypeAlias = Callable[[Sampler, Journal | None], Sampler]


def no_tools(sampler: Sampler, journal: Journal | None) -> Sampler:  # noqa: ARG001 - one of Tools
    """The sampler as it is."""
    return sampler


@contextmanager
def tools(mode: str) -> Generator[Tools]:
    """What a mode makes of a sampler: with tools, answers whose programs run in a sandbox.

    With a journal, programs whose results are in it are not run again.

    Raises:
        SandboxUnavailable: no backend works here.
    """
    kinds = {"tir": ToolSampler, PAL: ProgramSampler}
    if mode not in kinds:
        yield no_tools
        return
    with Sandbox() as sandbox:
        say(f"programs run in the sandbox {sandbox.backend}")
        yield lambda sampler, journal: kinds[mode](
            sampler, sandbox if journal is None else JournaledExecutor(sandbox, journal)
        )
