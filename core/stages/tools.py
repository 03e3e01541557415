"""What a mode of answering makes of a sampler: in some, programs of an answer are run."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TypeAlias

from core.rollout.samplers.journal import Journal, JournaledExecutor
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
    """Look whether the programs of answers in these modes can be run here.

    Raises:
        SandboxUnavailable: no backend works here.
    """
    if modes & PROGRAMS.keys():
        Sandbox(workers=1).close()


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
    if mode not in PROGRAMS:
        yield no_tools
        return
    with Sandbox() as sandbox:
        say(f"programs run in the sandbox {sandbox.backend}")
        yield lambda sampler, journal: PROGRAMS[mode](
            sampler, sandbox if journal is None else JournaledExecutor(sandbox, journal)
        )
