"""Where the settings of two papers differ, or those of a paper and of TRL."""

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
    """A field and its two values; of TRL's also why."""

    field: str
    left: Sourced
    right: Sourced
    because: str = ""


def differences(left: str, right: str, scale: str) -> list[Difference]:
    """The fields of two papers that differ at a scale, by name.

    `right` may be `trl`: TRL's paper index where it sets a field, else TRL's own defaults, or what
    it does where it has no field. What surrounds the trainer is compared between papers only;
    fields that are `NEUTRAL` never are.

    Raises:
        UnknownName: there is no such paper or scale.
    """
    paper = find_paper(left)
    if right == TRL:
        return from_trl(paper, scale)
    return unequal(settings_of(paper, scale), settings_of(find_paper(right), scale), NEUTRAL)


def from_trl(paper: Paper, scale: str = "paper") -> list[Difference]:
    """The fields of a paper that TRL gives another value, each with its reason."""
    left_out = NEUTRAL | RUN_FIELDS | idle(paper, scale)
    reasons = {name: each.reason for each in paper.trl_reasons for name in each.fields}
    return [
        replace(each, because=reasons.get(each.field, ""))
        for each in unequal(settings_of(paper, scale), trl_settings(paper), left_out)
    ]


def remarks(paper: Paper) -> list[str]:
    """What a paper says of its entry in TRL's index as a whole."""
    return [each.reason for each in paper.trl_reasons if not each.fields]


def index_problems(paper: Paper) -> Iterator[str]:
    """Fields that TRL's index sets otherwise without a reason, and reasons that are of nothing."""
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
    """The fields, by name, whose values differ."""
    found = [
        Difference(field=name, left=one.get(name, NOT_SET), right=other.get(name, NOT_SET))
        for name in sorted({*one, *other} - left_out)
    ]
    return [each for each in found if each.left.value != each.right.value]


def settings_of(paper: Paper, scale: str) -> dict[str, Sourced]:
    """Every field with the value that a run has."""
    config = find_family(paper.family).config_class()
    ours = config.SEMANTICS.get(PAPER, {})
    return {
        **defaults(RunSettings, "default"),
        **defaults(config, "default"),
        **{name: Sourced(value, "default of papers") for name, value in ours.items()},
        **resolve(paper, scale=scale).values,
    }


def trl_settings(paper: Paper) -> dict[str, Sourced]:
    """Every field of the trainer with the value that TRL gives it for this paper."""
    config = find_family(paper.family).config_class()
    index = {name: Sourced(value, INDEX) for name, value in paper.trl_index.items()}
    return {**defaults(config, "TRL's default"), **index}


def idle(paper: Paper, scale: str) -> frozenset[str]:
    """Fields that TRL lacks and that change nothing with the other settings of a paper."""
    config = resolve(paper, scale=scale).preview()
    return frozenset(config.SEMANTICS.get(PAPER, {})) - acting(config).keys()


def defaults(settings: type, source: str) -> Mapping[str, Sourced]:
    """The defaults of a dataclass's fields; those of the configs are TRL's."""
    made = {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(settings)
    }
    return {name: Sourced(value, source) for name, value in made.items() if value is not MISSING}
