"""Parts of TRL's releases, from the source in their wheels: nothing of them is installed."""

import ast
import math
import os
import zipfile
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from core.configs.releases import RELEASES

FOLDER = Path(os.environ.get("REPRO_WHEELS", "wheels"))  # where `make wheels` puts them
KEPT = ("staticmethod", "torch.no_grad()")  # of decorators
KINDS = ("base", "grpo")
OF_A_LOSS = (
    "_compute_loss",
    "get_high_entropy_mask",
    "get_sapo_token_loss",
    "get_off_policy_mask",
    "get_gamma_weights",
)
OF_A_MODULE = ("nanmin", "nanmax", "nanstd", "pad", "get_high_entropy_mask", "get_gamma_weights")
OF_PPO = ("masked_mean", "masked_var", "masked_whiten")
KNOWN = {"torch": torch, "math": math, "np": np, "defaultdict": defaultdict}


def wheel(release):
    """The wheel of a release, or a skip that says how to get it."""
    for name in (release, f"{release}.0"):
        for found in FOLDER.glob(f"trl-{name}-*none-any.whl"):
            return found
    return pytest.skip(f"no wheel of TRL {release} in {FOLDER.resolve()}: run `make wheels`")


@cache
def parsed(path, member):
    """A file of a wheel as a syntax tree."""
    with zipfile.ZipFile(path) as archive:
        return ast.parse(archive.read(member))


def plain(function):
    """A function without decorators and annotations, which name what is not installed."""
    function.decorator_list, function.returns = [], None
    for argument in [*function.args.args, *function.args.kwonlyargs]:
        argument.annotation = None
    return function


def functions(tree, names):
    """Some functions of a file, or methods of a class in it, which then need nothing else."""
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in names]
    for each in found:
        kept = [d for d in each.decorator_list if ast.unparse(d) in KEPT]
        plain(each).decorator_list = kept
    return found


def run(body, path, **known):
    """The names that statements bind, among what is known to them."""
    names = {**KNOWN, **known}
    module = ast.fix_missing_locations(ast.Module(body, []))
    exec(compile(module, str(path), "exec"), names)
    return names


def class_of(
    path,
    member="trl/trainer/grpo_trainer.py",
    name="GRPOTrainer",
    methods=OF_A_LOSS,
    parent=object,
    **known,
):
    """A class of a file with some of its methods alone, and what else is known to them."""
    tree = parsed(path, member)
    helpers = parsed(path, "trl/trainer/utils.py")
    (found,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name]
    made = ast.ClassDef(
        name=name,
        bases=[ast.Name("parent", ast.Load())],
        keywords=[],
        body=functions(found, methods),
        decorator_list=[],
        type_params=[],
    )
    body = [*functions(helpers, OF_A_MODULE), *functions(tree, OF_A_MODULE), made]
    return run(body, f"{path}/{member}", parent=parent, **known)[name]


def passage(path, member, first, last):
    """What a file does from its first assignment to one name to its last to another.

    A function of the names that this reads, which returns all that are bound then.
    """
    tree = parsed(path, member)
    helpers = functions(tree, OF_PPO)
    bodies = [n.body for n in ast.walk(tree) if isinstance(getattr(n, "body", None), list)]
    (found,) = [body for body in bodies if first in bound(body) and last in bound(body)]
    names = bound(found)
    end = len(names) - names[::-1].index(last)
    statements = [*helpers, *found[names.index(first) : end]]
    return lambda **known: run(statements, f"{path}/{member}", **known)


def bound(body):
    """What each statement of a body assigns to, None if it is no assignment to a single name."""
    targets = [n.targets[0] if isinstance(n, ast.Assign) else None for n in body]
    return [target.id if isinstance(target, ast.Name) else None for target in targets]


def defaults(path):
    """The defaults of a release's GRPO settings that its own file states."""
    with zipfile.ZipFile(path) as archive:
        files = {*archive.namelist()} & {f"trl/trainer/{kind}_config.py" for kind in KINDS}
    found = {}
    for name in sorted(files):
        for node in parsed(path, name).body:
            if isinstance(node, ast.ClassDef):
                found |= dict(stated(node))
    return found


def stated(node):
    """The fields of a dataclass with the default that `field` gives them."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.value, ast.Call):
            for keyword in each.value.keywords:
                if keyword.arg == "default":
                    yield each.target.id, ast.literal_eval(keyword.value)


OLDER = RELEASES[1:]
