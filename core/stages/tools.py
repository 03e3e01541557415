"""Modes of answering in which programs of an answer are run."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TypeAlias

from core.samplers.journal import Journal, JournaledExecutor
from eval.samples.evaluation import Sampler
from eval.samples.pal import ProgramSampler
from eval.samples.tir import ToolSampler
from eval.sandbox import Sandbox
from eval.sets.fewshot import PAL
from eval.terminal import say

Tools: TypeAlias = Callable[[Sampler, Journal | None], Sampler]
PROGRAMS: Mapping[str, type[ToolSampler | ProgramSampler]] = {
    "tir": ToolSampler,
    PAL: ProgramSampler,
}


@cache
def check_tools(modes: frozenset[str]) -> None:
    """Check that the programs of answers in these modes can be run on this machine.

    Raises:
        SandboxUnavailable: no backend of the sandbox works here.
    """
    if modes & PROGRAMS.keys():
        Sandbox(workers=1).close()


def no_tools(sampler: Sampler, journal: Journal | None) -> Sampler:  # noqa: ARG001 - one of Tools
    """Return the sampler unchanged."""
    return sampler


@contextmanager
def tools(mode: str) -> Generator[Tools]:
    """Yield a function that gives a sampler the tools of a mode: programs in an answer are run.

    Given a journal, that function does not run programs again whose outputs the journal holds.

    Raises:
        SandboxUnavailable: no backend of the sandbox works here.
    """
    if mode not in PROGRAMS:
        yield no_tools
        return
    with Sandbox() as sandbox:
        say(f"programs run in the sandbox {sandbox.backend}")
        yield lambda sampler, journal: PROGRAMS[mode](
            sampler, sandbox if journal is None else JournaledExecutor(sandbox, journal)
        )
