"""Differences between the settings of two papers, or of a paper and TRL."""

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import MISSING, dataclass, fields, replace

from core.configs.idle import effective_fields
from core.configs.releases import PAPER
from core.families.table import find_family
from core.paper import Paper
from core.paper.page import TRL
from core.paper.registry import find_paper
from core.settings.layers import Sourced
from core.settings.resolve import resolve
from core.settings.run_settings import NEUTRAL, RUN_FIELDS, RunSettings

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
    reasons = {name: entry.reason for entry in paper.trl_reasons for name in entry.fields}
    return [
        replace(entry, because=reasons.get(entry.field, ""))
        for entry in unequal(settings_of(paper, scale), trl_settings(paper), left_out)
    ]


def remarks(paper: Paper) -> list[str]:
    """Return the paper's remarks about its whole entry in TRL's index."""
    return [reason.reason for reason in paper.trl_reasons if not reason.fields]


def index_problems(paper: Paper) -> Iterator[str]:
    """Yield one line for each field that differs from TRL's index without exactly one reason.

    Reasons without a difference, unknown fields of the index and incomplete sentences are reported
    too.
    """
    known_fields = {field.name for field in fields(find_family(paper.family).config_class())}
    for name in sorted(paper.trl_index.keys() - known_fields):
        yield f"trl_index: {name} is no setting of {paper.family}"
    yield from reason_problems(paper, paper.trl_index.keys() & known_fields)
    for reason in paper.trl_reasons:
        if not reason.reason.endswith("."):
            yield f"trl_reasons: {reason.reason!r} is no whole sentence, expected a full stop"


def reason_problems(paper: Paper, index_fields: Set[str]) -> Iterator[str]:
    """Yield the fields whose differences to TRL lack a reason, and the reasons that are too many.

    Args:
        paper: The paper.
        index_fields: The known fields that TRL's index sets.
    """
    differing = {difference.field for difference in from_trl(paper)}
    counts = Counter(name for reason in paper.trl_reasons for name in reason.fields)
    for name in sorted(differing & index_fields - counts.keys()):
        yield f"trl_index: {name} differs without a reason: say it by because(...) in trl_reasons"
    for name in sorted(counts.keys() - differing):
        yield f"trl_reasons: {name} does not differ from TRL's: leave its reason out"
    for name in sorted(name for name, count in counts.items() if count > 1):
        yield f"trl_reasons: {name} has several reasons, expected one"


def unequal(
    values: Mapping[str, Sourced], other_values: Mapping[str, Sourced], left_out: frozenset[str]
) -> list[Difference]:
    """Return the fields whose values differ, sorted by name, without those in `left_out`."""
    pairs = [
        Difference(
            field=name, left=values.get(name, NOT_SET), right=other_values.get(name, NOT_SET)
        )
        for name in sorted({*values, *other_values} - left_out)
    ]
    return [pair for pair in pairs if pair.left.value != pair.right.value]


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
    return frozenset(config.SEMANTICS.get(PAPER, {})) - effective_fields(config).keys()


def defaults(settings: type, source: str) -> Mapping[str, Sourced]:
    """Return the defaults of a dataclass's fields; the defaults of trainer configs are TRL's."""
    values = {
        setting.name: setting.default
        if setting.default_factory is MISSING
        else setting.default_factory()
        for setting in fields(settings)
    }
    return {name: Sourced(value, source) for name, value in values.items() if value is not MISSING}
