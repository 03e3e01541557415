"""Records of what simulations give, by their settings and code, which claims read."""

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
PROJECT = ("core", "eval")  # whose files are a part of what is simulated


def recalled(paper: Paper) -> Paper:
    """Return a paper whose simulations have what its record says, whatever their code was then."""
    if not simulations_of(paper):
        return paper
    values = recorded_values(paper, code=False)

    def recall(claim: Claim) -> Claim:
        if not isinstance(claim.test, Comparison):
            return claim
        test = with_recorded(
            claim.test, lambda side: values.get(name_of(asked(side), code=False), ())
        )
        return replace(claim, test=test)

    return replace(paper, claims=tuple(map(recall, paper.claims)))


def record_simulations(paper: Paper) -> Record | None:
    """Write the record of a paper's simulations, once for the code of now; None if it has none."""
    before = recorded_values(paper, code=True)
    rows: list[dict[str, object]] = []
    for side in simulations_of(paper):
        row = asked(side)
        values = before.get(name_of(row, code=True))
        if values is None:
            say(f"{'timing' if side.timed else 'simulating'} {side}, {side.seeds} seeds")
            values = side.simulate()
        rows.append({**row, "values": values})
    content = {"paper": paper.slug, "scale": "paper", KIND: rows}
    return write_record(new_record(KIND, **content)) if rows else None


def recorded_values(paper: Paper, *, code: bool) -> dict[str, list[float]]:
    """Return what the record of a paper's simulations says that they gave, by `name_of`."""
    records = simulation_records(read_records(paper.slug))
    return {name_of(row, code=code): row["values"] for record in records for row in record[KIND]}


def simulation_problems(paper: Paper, records: Sequence[Record]) -> Iterator[str]:
    """Yield a line if a paper's simulations have no record, or give other values than it says.

    Args:
        paper: the paper.
        records: all records of the paper; without any, none is missed.
    """
    sides = {name_of(asked(side), code=False): side for side in simulations_of(paper)}
    found = simulation_records(records)
    if records and sides and not found:
        yield f"{paper.slug}: no record of its simulations: run `repro publish`"
    for record in found:
        rows = {name_of(row, code=False): row["values"] for row in record[KIND]}
        if rows.keys() != sides.keys():
            yield f"{place_of(record)} has not the simulations of the claims: run `repro publish`"
        for name in rows.keys() & sides.keys():
            if not (sides[name].timed or agree(sides[name].simulate(), rows[name], NEAR)):
                yield f"{place_of(record)}: {sides[name]} gives other values: run `repro publish`"


def simulation_records(records: Iterable[Record]) -> list[Record]:
    """Return the current records of simulations among those of a paper."""
    return current(record for record in records if record["kind"] == KIND)


def simulations_of(paper: Paper) -> list[Simulated]:
    """Return the simulations that the claims of a paper read, each of them once."""
    tests = [claim.test for claim in paper.claims if isinstance(claim.test, Comparison)]
    sides = [*(test.left for test in tests), *(test.right for test in tests)]
    found = [simulation for side in sides for simulation in simulations_in(side)]
    return [*{name_of(asked(side), code=False): side for side in found}.values()]


def asked(side: Simulated) -> dict[str, object]:
    """Return what a record says of a simulation beside its values.

    One that measures time has no code: what was measured stays, whatever the code is now.
    """
    call = side.call
    return {
        "function": call.function,
        "positional": [*call.positional],
        "keywords": dict(call.keywords),
        "seeds": side.seeds,
        "code": "" if side.timed else code_of(call.function.partition(":")[0]),
    }


def name_of(row: Mapping[str, object], *, code: bool) -> str:
    """Return a text of the settings of a simulation, and of its code if asked for."""
    left_out = {"values"} if code else {"values", "code"}
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
