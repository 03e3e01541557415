"""Records of simulations: the values that claims read, with the settings and code of each."""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from core.claims import Claim, Comparison
from core.claims.laws import Simulated, simulations_in, with_recorded
from core.paper import Paper
from core.records.agreement import agree
from core.records.answers import NEAR
from core.records.files import known_digest
from core.records.record import Record, current, new_record, read_records, write_record
from core.records.schema import place_of
from core.settings.canonical import SHORT, canonical_text, digest_of
from eval.terminal import say

KIND = "simulations"
PROJECT = ("core", "eval")  # packages whose files count as code of a simulation


def with_simulations(paper: Paper, records: Iterable[Record]) -> Paper:
    """Return a copy of a paper whose simulations hold their recorded values.

    The code of a simulation may have changed since; `simulation_problems` compares the values.

    Args:
        paper: the paper.
        records: records of the paper.
    """
    if not simulations_of(paper):
        return paper
    values = recorded_values(records, with_code=False)

    def with_values(claim: Claim) -> Claim:
        if not isinstance(claim.test, Comparison):
            return claim
        test = with_recorded(
            claim.test, lambda side: values.get(key_of(settings_of(side), with_code=False), ())
        )
        return replace(claim, test=test)

    return replace(paper, claims=tuple(map(with_values, paper.claims)))


def record_simulations(paper: Paper, *, force: bool = False) -> Record | None:
    """Simulate and record all that a paper's claims read and no record holds for the present code.

    Seed by seed all functions are called in turn, so that times are measured under one load.

    Args:
        paper: the paper.
        force: whether recorded simulations are made again.

    Returns:
        The record, None if the paper has no simulations.
    """
    sides = {key_of(settings_of(side), with_code=True): side for side in simulations_of(paper)}
    records = () if force else read_records(paper.slug)
    values = recorded_values(records, with_code=True)
    missing = {key: side for key, side in sides.items() if key not in values}
    for side in missing.values():
        say(f"{'timing' if side.timed else 'simulating'} {side}, {side.seeds} seeds")
    values |= {key: [] for key in missing}
    for seed in range(max((side.seeds for side in missing.values()), default=0)):
        for key, side in missing.items():
            if seed < side.seeds:
                values[key].append(side.at(seed))
    rows = [{**settings_of(side), "values": values[key]} for key, side in sides.items()]
    content = {"paper": paper.slug, "scale": "paper", KIND: rows}
    return write_record(new_record(KIND, **content)) if rows else None


def recorded_values(records: Iterable[Record], *, with_code: bool) -> dict[str, list[float]]:
    """Return the values of the recorded simulations, by `key_of`."""
    rows = [row for record in simulation_records(records) for row in record[KIND]]
    return {key_of(row, with_code=with_code): row["values"] for row in rows}


def simulation_problems(paper: Paper, records: Sequence[Record]) -> Iterator[str]:
    """Compute a paper's simulations again, and yield a line for each that differs from its record.

    A line is also yielded if the record is missing or holds other simulations. Measured times are
    not compared.

    Args:
        paper: the paper.
        records: all records of the paper; if there are none, none is missing.
    """
    sides = {key_of(settings_of(side), with_code=False): side for side in simulations_of(paper)}
    current_records = simulation_records(records)
    if records and sides and not current_records:
        yield f"{paper.slug}: no record of its simulations: run `repro publish`"
    for record in current_records:
        values = recorded_values([record], with_code=False)
        if values.keys() != sides.keys():
            yield (
                f"{place_of(record)} holds other simulations than the claims read: "
                "run `repro publish`"
            )
        for key in values.keys() & sides.keys():
            side = sides[key]
            if not (side.timed or agree(side.simulate(), values[key], NEAR)):
                yield f"{place_of(record)}: {side} gives other values: run `repro publish`"


def simulation_records(records: Iterable[Record]) -> list[Record]:
    """Return the current records of simulations among those of a paper."""
    return current(record for record in records if record["kind"] == KIND)


def simulations_of(paper: Paper) -> list[Simulated]:
    """Return the different simulations that the claims of a paper read."""
    tests = [claim.test for claim in paper.claims if isinstance(claim.test, Comparison)]
    sides = [*(test.left for test in tests), *(test.right for test in tests)]
    simulations = [simulation for side in sides for simulation in simulations_in(side)]
    keys = [key_of(settings_of(simulation), with_code=False) for simulation in simulations]
    return [*dict(zip(keys, simulations, strict=True)).values()]


def settings_of(side: Simulated) -> dict[str, object]:
    """Return the fields of a recorded simulation other than its values.

    A measurement of time has no code: it stays valid when the code changes.
    """
    call = side.call
    return {
        "function": call.function,
        "positional": [*call.positional],
        "keywords": dict(call.keywords),
        "seeds": side.seeds,
        "code": "" if side.timed else code_of(call.function.partition(":")[0]),
    }


def key_of(row: Mapping[str, object], *, with_code: bool) -> str:
    """Return a text that identifies a simulation by its settings, and by its code if asked for."""
    left_out = {"values"} if with_code else {"values", "code"}
    return canonical_text({name: value for name, value in row.items() if name not in left_out})


@cache
def code_of(module: str) -> str:
    """Return a digest of the file of a module and of all files that it imports from its project."""
    digests: dict[str, str] = {}
    names = [module]
    while names:
        if (name := names.pop()) not in digests and (file := file_of(name)):
            digests[name] = known_digest(file)
            names += imported_by(file, {*PROJECT, module.partition(".")[0]})
    return digest_of(digests)[:SHORT]


def file_of(name: str) -> Path | None:
    """Return the source file of a module, None if there is no such module."""
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:  # `name` is that of a function in a module
        return None
    return Path(spec.origin) if spec and spec.origin else None


def imported_by(file: Path, packages: set[str]) -> Iterator[str]:
    """Yield the modules that a file imports from packages, and the names of what is in them."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        yield from (name for name in names if name.partition(".")[0] in packages)
