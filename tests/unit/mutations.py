"""Changes of one sign, constant or mask in the sources of losses, applied in this process.

Left out, as no law can see them or no number changes: docstrings and errors, texts of warnings,
axes and sizes, flags and names in tables, defaults of settings, and `EQUIVALENT`.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from types import FunctionType, ModuleType

LOSSES = Path(__file__).parents[2] / "core" / "losses"
SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add}
ORDERS = {ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Lt: ast.GtE, ast.LtE: ast.Gt}
JOINTS = {ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
MASK_WORDS = ("mask", "trained", "is_", "finite")
AXES = {  # functions of which a number is an axis or a size: a change of it raises an error
    *("sum", "mean", "nanmean", "nansum", "cumsum", "amax", "argmax", "argsort", "all", "sort"),
    *("size", "view", "reshape", "unsqueeze", "squeeze", "transpose", "flip", "expand", "scatter"),
    *("scatter_add", "stack", "logsumexp"),
}
# The exponential of a bounded number is neither NaN nor minus infinity.
EQUIVALENT = {"log_phi.exp().nan_to_num": ("nan", "neginf")}


@dataclass(frozen=True)
class Mutant:
    """A changed module of a package, and what was changed where."""

    module: str
    line: int
    kind: str
    change: str
    tree: ast.Module
    package: str = "core.losses"

    def __str__(self):
        return f"{self.module}:{self.line} {self.kind}: {self.change}"


@cache
def mutants():
    """Every change of every file of losses."""
    return [mutant for path in sorted(LOSSES.glob("*.py")) for mutant in mutants_of(path)]


def mutants_of(path, package="core.losses"):
    """Every change of a file of this package."""
    tree = ast.parse(path.read_text())
    for number, (node, new, kind) in enumerate(changes(tree)):
        changed = deepcopy(tree)
        target, replacement, _ = list(changes(changed))[number]
        whole = ast.fix_missing_locations(Replacement(target, replacement).visit(changed))
        change = f"{ast.unparse(node)} -> {ast.unparse(new)}"
        yield Mutant(path.stem, node.lineno, kind, change, whole, package)


class Replacement(ast.NodeTransformer):
    """The replacement of one node of a tree by another."""

    def __init__(self, target, new):
        self.target, self.new = target, new

    def visit(self, node):
        return self.new if node is self.target else self.generic_visit(node)


def changes(tree) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    """Expressions of code that computes, what each is changed to, and the kind of change."""
    for part in computing(tree):
        excluded = {id(node) for parent in ast.walk(part) for node in unchanged(parent)}
        for node in ast.walk(part):
            if id(node) not in excluded:
                for kind, rule in RULES.items():
                    yield from ((node, new, kind) for new in rule(node))


def computing(tree) -> Iterator[ast.AST]:
    """Statements and defaults of functions, and constants of the module."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and not any(
            isinstance(part, ast.keyword | ast.Dict) for part in ast.walk(node)
        ):
            yield node.value
        methods = node.body if isinstance(node, ast.ClassDef) else [node]
        for function in methods:
            if isinstance(function, ast.FunctionDef) and not function.name.endswith("_warning"):
                yield from (*function.args.defaults, *filter(None, function.args.kw_defaults))
                yield from (line for line in function.body[1:] if not raises(line))


def raises(statement):
    return isinstance(statement, ast.If) and isinstance(statement.body[0], ast.Raise)


def unchanged(node) -> Iterator[ast.AST]:
    """Numbers below a node that are axes, sizes or indices, or whose change is equivalent."""
    if isinstance(node, ast.Subscript) and not is_mask(node.slice):
        yield from ast.walk(node.slice)
    elif isinstance(node, ast.keyword) and node.arg in ("dim", "keepdim"):
        yield from ast.walk(node.value)
    elif isinstance(node, ast.Call):
        function = ast.unparse(node.func)
        if function.rpartition(".")[2] in AXES:
            axes = [a for a in node.args if isinstance(a, ast.Constant | ast.UnaryOp)]
            yield from (part for axis in axes for part in ast.walk(axis))
        fills = [word for word in node.keywords if word.arg in EQUIVALENT.get(function, ())]
        yield from (word.value for word in fills)


def signs(node) -> Iterator[ast.expr]:
    """The expression with another sign."""
    match node:
        case ast.UnaryOp(ast.USub(), operand):
            yield operand
        case ast.BinOp(left, op, right) if type(op) in SIGNS:
            yield ast.BinOp(left, SIGNS[type(op)](), right)


def constants(node) -> Iterator[ast.expr]:
    """Twice the number, or 1 for 0."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield ast.Constant(2 * node.value or type(node.value)(1))


def masks(node) -> Iterator[ast.expr]:
    """A product or a choice without its mask, a condition turned round or joined the other way."""
    match node:
        case ast.BinOp(left, ast.Mult(), right) if is_mask(right) or is_mask(left):
            yield left if is_mask(right) else right
        case ast.BinOp(left, op, right) if type(op) in JOINTS:
            yield ast.BinOp(left, JOINTS[type(op)](), right)
        case ast.UnaryOp(ast.Invert(), operand):
            yield operand
        case ast.Compare(left, [op], [right]) if type(op) in ORDERS:
            yield ast.Compare(left, [ORDERS[type(op)]()], [right])
        case ast.Subscript(value, index) if is_mask(index):
            yield value


def is_mask(node):
    names = [getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(node)]
    return any(word in name for name in names for word in MASK_WORDS)


RULES: dict[str, Callable[[ast.AST], Iterator[ast.expr]]] = {
    "sign": signs,
    "constant": constants,
    "mask": masks,
}


@contextmanager
def applied(mutant):
    """Let functions and constants be the mutant's, wherever they were imported by name."""
    module = import_module(f"{mutant.package}.{mutant.module}")
    changed = ModuleType(f"{module.__name__}_mutant")
    sys.modules[changed.__name__] = changed  # dataclasses look their module up
    with ExitStack() as undo:
        undo.callback(sys.modules.pop, changed.__name__)
        exec(compile(mutant.tree, str(mutant), "exec"), vars(changed))
        for old, new in functions_of(module, changed):
            for name in ("__code__", "__defaults__", "__kwdefaults__"):
                undo.callback(setattr, old, name, getattr(old, name))
                setattr(old, name, getattr(new, name))
        for name, new in vars(changed).items():
            if isinstance(new, int | float):
                undo.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, new)
        yield


def functions_of(old, new) -> Iterator[tuple[FunctionType, FunctionType]]:
    """Pairs of functions, methods and properties of one name that the new module defines."""
    home = getattr(new, "__module__", new.__name__)
    for name, member in vars(new).items():
        was, now = (unwrap(getattr(m, "fget", m)) for m in (vars(old).get(name), member))
        if getattr(now, "__module__", "") != home:
            continue
        if isinstance(now, FunctionType) and name in vars(old):
            yield was, now
        elif isinstance(now, type):
            yield from functions_of(was, now)
