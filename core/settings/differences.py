"""Differences between the settings of two papers, or of a paper and TRL."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace

from core.configs.idle import acting
from core.configs.releases import PAPER
from core.families.table import find_family
from core.paper import Paper
from core.paper.registry import find_paper
from core.settings.layers import Sourced
from core.settings.resolve import resolve
from core.settings.run_settings import NEUTRAL, RUN_FIELDS, RunSettings

TRL = "trl"  # stands for a paper: what TRL's paper index sets for the other one
NOT_SET = Sourced(None, "not a field")
INDEX = "TRL's paper index"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A field with its values on both sides; of a difference to TRL also the paper's reason."""

    field: str
    left: Sourced
    right: Sourced
    because: str = ""


def differences(left: str, right: str, scale: str) -> list[Difference]:
    """Return the fields that differ between two papers at a scale, sorted by name.

    With `right="trl"` the paper is compared with TRL: the value of TRL's paper index if the index
    sets the field, else TRL's default. Run settings are compared between two papers only. Fields in
    `NEUTRAL` are never compared.

    Raises:
        UnknownName: there is no such paper or scale.
    """
    paper = find_paper(left)
    if right == TRL:
        return from_trl(paper, scale)
    return unequal(settings_of(paper, scale), settings_of(find_paper(right), scale), NEUTRAL)


def from_trl(paper: Paper, scale: str = "paper") -> list[Difference]:
    """Return the fields of a paper that TRL sets to another value, each with the paper's reason."""
    left_out = NEUTRAL | RUN_FIELDS | idle(paper, scale)
    reasons = {name: each.reason for each in paper.trl_reasons for name in each.fields}
    return [
        replace(each, because=reasons.get(each.field, ""))
        for each in unequal(settings_of(paper, scale), trl_settings(paper), left_out)
    ]


def remarks(paper: Paper) -> list[str]:
    """Return the paper's remarks about its whole entry in TRL's index."""
    return [each.reason for each in paper.trl_reasons if not each.fields]


def index_problems(paper: Paper) -> Iterator[str]:
    """Yield one line for each field that differs from TRL's index without exactly one reason.

    Reasons without a difference, unknown fields of the index and incomplete sentences are reported
    too.
    """
    found = from_trl(paper)
    differing = {each.field for each in found}
    named = [name for each in paper.trl_reasons for name in each.fields]
    known = {each.name for each in fields(find_family(paper.family).config_class())}
    for name in sorted(paper.trl_index.keys() - known):
        yield f"trl_index: {name} is no setting of {paper.family}"
    for name in sorted(differing & known & paper.trl_index.keys() - {*named}):
        yield f"trl_index: {name} differs without a reason: say it by because(...) in trl_reasons"
    for name in sorted({*named} - differing):
        yield f"trl_reasons: {name} does not differ from TRL's: leave its reason out"
    for name in sorted(name for name, times in Counter(named).items() if times > 1):
        yield f"trl_reasons: {name} has several reasons, expected one"
    for each in paper.trl_reasons:
        if not each.reason.endswith("."):
            yield f"trl_reasons: {each.reason!r} is no whole sentence, expected a full stop"


def unequal(
    one: Mapping[str, Sourced], other: Mapping[str, Sourced], left_out: frozenset[str]
) -> list[Difference]:
    """Return the fields whose values differ, sorted by name, without those in `left_out`."""
    found = [
        Difference(field=name, left=one.get(name, NOT_SET), right=other.get(name, NOT_SET))
        for name in sorted({*one, *other} - left_out)
    ]
    return [each for each in found if each.left.value != each.right.value]


def settings_of(paper: Paper, scale: str) -> dict[str, Sourced]:
    """Return every field of a paper's run at a scale, with the value that it has."""
    config = find_family(paper.family).config_class()
    ours = config.SEMANTICS.get(PAPER, {})
    return {
        **defaults(RunSettings, "default"),
        **defaults(config, "default"),
        **{name: Sourced(value, "default of papers") for name, value in ours.items()},
        **resolve(paper, scale=scale).values,
    }


def trl_settings(paper: Paper) -> dict[str, Sourced]:
    """Return every field of a paper's trainer, with the value that TRL gives it for this paper."""
    config = find_family(paper.family).config_class()
    index = {name: Sourced(value, INDEX) for name, value in paper.trl_index.items()}
    return {**defaults(config, "TRL's default"), **index}


def idle(paper: Paper, scale: str) -> frozenset[str]:
    """Return the fields that TRL lacks and that have no effect with a paper's other settings."""
    config = resolve(paper, scale=scale).preview()
    return frozenset(config.SEMANTICS.get(PAPER, {})) - acting(config).keys()


def defaults(settings: type, source: str) -> Mapping[str, Sourced]:
    """Return the defaults of a dataclass's fields; the defaults of trainer configs are TRL's."""
    made = {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(settings)
    }
    return {name: Sourced(value, source) for name, value in made.items() if value is not MISSING}
