"""Run after a program, whose names are in `program`: prints the value that it computed."""

import sys


def written(value):
    """A value as a mathematician writes it: a list without brackets, LaTeX for sympy's objects."""
    if hasattr(value, "tolist"):  # numpy's
        return written(value.tolist())
    if isinstance(value, dict):
        return ", ".join(f"{written(key)} = {written(one)}" for key, one in value.items())
    if isinstance(value, list | set | frozenset):
        return ", ".join(map(written, value))
    if isinstance(value, tuple):
        return f"({', '.join(map(written, value))})"
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
    print(" ".join(written(value).split()))
