"""Run after a program, whose names are in `program`: prints the value that it computed."""

import sys


def format_value(value):
    """Return a value in mathematical notation: lists without brackets, LaTeX for sympy objects."""
    if hasattr(value, "tolist"):  # numpy's
        return format_value(value.tolist())
    if isinstance(value, dict):
        return ", ".join(
            f"{format_value(key)} = {format_value(entry)}" for key, entry in value.items()
        )
    if isinstance(value, list | set | frozenset):
        return ", ".join(map(format_value, value))
    if isinstance(value, tuple):
        return f"({', '.join(map(format_value, value))})"
    if isinstance(value, complex):
        return str(value).strip("()").replace("j", "i")
    sympy = sys.modules.get("sympy")
    if sympy and isinstance(value, sympy.Basic | sympy.MatrixBase):
        return sympy.latex(value)
    return str(value)


names = globals()["program"]
solution = names.get("solution")
value = solution() if callable(solution) else names.get("ans", names.get("answer"))
if value is not None:
    print()
    print(" ".join(format_value(value).split()))
