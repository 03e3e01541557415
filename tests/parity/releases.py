"""The losses of TRL's releases, from the source in their wheels: nothing of them is installed."""

import ast
import math
import os
import zipfile
from collections import defaultdict
from functools import cache
from pathlib import Path

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
OF_A_MODULE = ("nanmin", "nanmax", "get_high_entropy_mask", "get_gamma_weights")


def wheel(release):
    """The wheel of a release, or a skip that says how to get it."""
    found = sorted(FOLDER.glob(f"trl-{release}.*-py3-none-any.whl"))
    if not found:
        pytest.skip(f"no wheel of TRL {release} in {FOLDER.resolve()}: run `make wheels`")
    return found[-1]


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


def loss_class(path, member="trl/trainer/grpo_trainer.py", name="GRPOTrainer", parent=object):
    """A class of a file with its methods of a loss alone."""
    tree = parsed(path, member)
    helpers = parsed(path, "trl/trainer/utils.py")
    functions = [
        plain(node)
        for each in (helpers, tree)
        for node in each.body
        if isinstance(node, ast.FunctionDef) and node.name in OF_A_MODULE
    ]
    (found,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name]
    methods = [
        node for node in found.body if isinstance(node, ast.FunctionDef) and node.name in OF_A_LOSS
    ]
    for method in methods:
        kept = [d for d in method.decorator_list if ast.unparse(d) in KEPT]
        plain(method).decorator_list = kept
    made = ast.ClassDef(
        name=name,
        bases=[ast.Name("parent", ast.Load())],
        keywords=[],
        body=methods,
        decorator_list=[],
        type_params=[],
    )
    module = ast.fix_missing_locations(ast.Module([*functions, made], []))
    known = {"torch": torch, "math": math, "parent": parent, "defaultdict": defaultdict}
    exec(compile(module, f"{path}/{member}", "exec"), known)
    return known[name]


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
