"""Rewards by name, as in `rewards=Accuracy,LengthWithin(limit=64)`."""

import ast
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint
from inspect import Parameter, isfunction, signature
from types import ModuleType
from typing import Any, cast  # Any: of anybody's module

from core import rewards
from core.paper import Paper, Reward
from core.paper.overrides import BadOverride
from core.paper.registry import entries
from eval.errors import BadValue, UnknownName, error_line
from eval.plugins import modules
from eval.registered import group_entry_points

GROUP = "repro.rewards"  # of entry points: name = "package.module:reward"
Loaders = dict[str, Callable[[], object]]


def parse_rewards(text: str, paper: Paper) -> tuple[Reward, ...]:
    """Return the rewards that a text names, separated by commas.

    A name belongs to `core.rewards`, to the paper's own module, to a plug-in file, or to an entry
    point of the group `repro.rewards`. A class is called with the arguments in the text, which are
    plain values or rewards, or with its defaults.

    Raises:
        BadOverride: the text is no list of names and calls.
        UnknownName: there is no reward of that name; the nearest names are given.
        BadValue: a reward refuses its arguments.
    """
    try:
        listed = ast.parse(f"[{text}]", mode="eval").body
        nodes = cast(ast.List, listed).elts
        parts = [part for node in nodes for part in getattr(node, "elts", [node])]
        loaders = named_rewards(paper)
        return tuple(cast(Reward, build_reward(part, loaders)) for part in parts)
    except (SyntaxError, ValueError) as error:
        if isinstance(error, BadValue | UnknownName):
            raise
        raise BadOverride(
            f"rewards={text}: expected names of rewards with commas between them, e.g. "
            "Accuracy,LengthWithin(limit=64)"
        ) from error


def named_rewards(paper: Paper) -> Loaders:
    """Return a loader for each name of a reward; the paper's own rewards win over all others."""
    entry = entries().get(paper.slug)
    places = [rewards, *modules(), *([import_module(entry.module)] if entry else [])]
    return {
        **{point.name: partial(load, point) for point in group_entry_points(GROUP)},
        **{
            name: partial(getattr, module, name) for module in places for name in rewards_of(module)
        },
    }


def load(point: EntryPoint) -> object:
    """Return the object of an entry point.

    Raises:
        BadValue: the import fails.
    """
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # anybody's module: what it raises is named
        raise BadValue(
            f"reward {point.name!r} ({point.value}): import failed with {error_line(error)}"
        ) from error


def rewards_of(module: ModuleType) -> Iterator[str]:
    """Yield the public names in a module of objects that take `completions` by name."""
    for name, value in vars(module).items():
        if not name.startswith("_") and callable(value) and takes_completions(value):
            yield name


def takes_completions(value: Callable[..., object]) -> bool:
    """Return whether a function, or an instance of a class, can be called with `completions`."""
    call: Any = value.__call__ if isinstance(value, type) else value
    if isinstance(value, type) and not isfunction(call):  # that of its metaclass
        return False
    try:
        parameters = signature(call).parameters
    except (TypeError, ValueError):  # of what is not written in Python
        return False
    open_ended = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values())
    return "completions" in parameters or (isinstance(value, type) and open_ended)


def build_reward(node: ast.expr, loaders: Loaders) -> object:
    """Return the value of an expression: a reward by its name, or a plain value.

    Raises:
        UnknownName, BadValue: see `parse_rewards`.
        ValueError: the expression is neither, or an argument has no name.
    """
    function = node.func if isinstance(node, ast.Call) else node
    name = getattr(
        function, "attr", getattr(function, "id", None)
    )  # a function has its module before
    if name is None:
        return ast.literal_eval(node)
    if name not in loaders:
        raise UnknownName("reward", name, loaders)
    reward: Any = loaders[name]()
    if isinstance(node, ast.Call):
        if node.args:
            raise ValueError("arguments without their names")
        keywords = {
            str(keyword.arg): build_reward(keyword.value, loaders) for keyword in node.keywords
        }
    elif isinstance(reward, type):
        keywords = {}
    else:
        return reward
    try:
        return reward(**keywords)
    except (TypeError, ValueError) as error:
        raise BadValue(f"rewards: {ast.unparse(node)}: {error}") from error
