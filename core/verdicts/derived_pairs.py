"""Compares the recorded quantities of pairs with the stored numbers of each pair."""

from collections.abc import Iterator

from core.families.family import SEEN, of_one_model
from core.records.agreement import agree
from core.records.answers import seal_of
from core.records.pair_files import read_run_pairs, set_of
from core.records.passed import code_digest
from core.records.schema import RunRecord, place_of
from core.stages.pair_quantities import derive
from core.stages.probabilities import compare_quantities

DERIVING = ("core.distillation", "core.forward", "core.losses", "core.preference", "core.scoring")


def pair_problems(run: RunRecord) -> Iterator[str]:
    """Yield a line for each quantity of pairs that the stored numbers do not give.

    Records without such a file yield none.

    Raises:
        MissingFile, DamagedFile: see `core.records.pair_files.read_run_pairs`.
    """
    from core.distillation.teacher_quantities import TEACHER_QUANTITIES
    from core.preference.pair_quantities import PAIR_QUANTITIES, QUANTILE_GAP
    from core.scoring.reward_quantities import REWARD_QUANTITIES
    from core.scoring.solution_quantities import SOLUTION_QUANTITIES

    if "pairs" not in run:
        return
    recorded, sets = run.get("probabilities", {}), read_run_pairs(run)
    of_pairs = {*PAIR_QUANTITIES, QUANTILE_GAP, *REWARD_QUANTITIES, *SOLUTION_QUANTITIES}
    of_pairs |= {*TEACHER_QUANTITIES}
    names = [name for name in recorded if of_one_model(name.removesuffix(SEEN)) in of_pairs]
    for name in names:
        if set_of(name) not in sets:
            yield f"{place_of(run)}, {name}: its file of pairs has no set {set_of(name)}"
    stored = [name for name in names if set_of(name) in sets]
    before, after = (derive(sets, stored, at_start=at_start) for at_start in (True, False))
    given = compare_quantities(before, after)
    for name in stored:
        if not agree(recorded[name], quantity := given.get(name)):
            yield f"{place_of(run)}, {name}: is {recorded[name]}, its pairs give {quantity}"


def derived_with(run: RunRecord) -> dict[str, object]:
    """Return digests of all that deriving quantities of pairs depends on: the record and code.

    The record's seal covers its quantities and the digest of its pairs.
    """
    return {"derived": seal_of(run), "code": code_digest(DERIVING, ("torch",))}
