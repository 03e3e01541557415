"""Worlds: where claims are tested, with the seeds that judge them and what they cannot show.

Another distribution adds a world by an entry point of the group `repro.worlds`, `name =
"module:OBJECT"` with a `World` of that name, beside its benchmark and data set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.families import (
    nano,
    nano_canvas,
    nano_chain,
    nano_hinted,
    nano_rewards,
    nano_tables,
    nano_tokens,
    nano_tuning,
    pocket,
)
from core.families.regimes import CPU
from core.models.builds import UNTRAINED
from core.paper import Paper
from eval.errors import BadValue, UnknownName
from eval.registered import find_row

if TYPE_CHECKING:  # numpy and scipy, which a list of papers must not wait for
    from eval.stats.seeds import Look

SCALE = "cpu"  # the scale of all regimes


@dataclass(frozen=True, kw_only=True)
class World:
    """A world: the regimes of its runs, and how claims are judged in it.

    Its regimes are called like the world, or `WORLD-VARIANT`. A claim is tested in the world that
    the regime of its arms belongs to.

    Attributes:
        name: Its name.
        regimes: The settings of each regime.
        seeds: The seeds that are judged, in order.
        trial_seed: A seed to try claims on, which is never judged.
        cannot_show: What claims this world cannot test, in a sentence.
        bases: Settings of each family, weaker than those of a regime.
        preparations: Trainings that regimes start from, written as those of a paper.
        is_bare: Whether settings that papers cite do not act, so that an arm is the regime with
            the arm's own changes. The problems of such a world, held-out rows included, are drawn
            by the seed of a run.
    """

    name: str
    regimes: Mapping[str, Mapping[str, object]]
    seeds: tuple[int, ...] = tuple(range(20, 36))
    trial_seed: int = 100
    cannot_show: str
    bases: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, nano.Settings])
    preparations: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict[str, nano.Settings]
    )
    is_bare: bool = True

    @property
    def looks(self) -> "tuple[Look, ...]":
        """The numbers of seeds at which claims are judged, with the levels of the tests."""
        from eval.stats.seeds import LOOKS, NANO_LOOKS

        return NANO_LOOKS if self.is_bare else LOOKS

    @property
    def starts(self) -> Paper:
        """The preparations as a paper, whose settings are those of the world alone."""
        return Paper(
            slug=self.name,
            title=f"Starting models of the world {self.name}",
            family="sft",
            model=UNTRAINED,
            preparations=self.preparations,
        )


POCKET = World(
    name="pocket",
    regimes={**CPU, **pocket.REGIMES},
    seeds=tuple(range(8)),
    trial_seed=1000,
    cannot_show=(
        "clips stop few tokens, answers have nearly equal lengths, and a rounded sampler costs "
        "nothing"
    ),
    preparations=pocket.STARTS,
    is_bare=False,
)
ROWS = (
    POCKET,
    World(
        name="choice",
        regimes=nano.REGIMES["choice"],
        preparations=nano.STARTS["choice"],
        bases=nano.BASES,
        cannot_show=(
            "nearly a table of letters: large steps do little harm, all answers are short, and "
            "nothing is reasoned"
        ),
    ),
    World(
        name="many",
        regimes={**nano.REGIMES["many"], **nano_tuning.REGIMES["many"]},
        preparations={**nano.STARTS["many"], **nano_tuning.STARTS["many"]},
        bases=nano.BASES,
        cannot_show="a fragile skill; all answers are short and of one kind, nothing is reasoned",
    ),
    World(
        name="length",
        regimes=nano.REGIMES["length"],
        preparations=nano.STARTS["length"],
        bases=nano.BASES,
        cannot_show="a longer answer is likelier right by construction, and nothing is reasoned",
    ),
    World(
        name="sums",
        regimes=nano_tuning.REGIMES["sums"],
        preparations=nano_tuning.STARTS["sums"],
        bases=nano.BASES,
        cannot_show="one answer is right and nothing is reasoned; a wrong target is any other sum",
    ),
    World(
        name="digits",
        regimes=nano_rewards.REGIMES["digits"],
        preparations=nano_rewards.STARTS["digits"],
        bases=nano.BASES,
        cannot_show=(
            "the order of pairs and the verdict on steps are known, so that nobody disagrees on "
            "them, and the scores of a model train a policy in one round at most"
        ),
    ),
    World(
        name="grammar",
        regimes=nano_tuning.REGIMES["grammar"],
        preparations=nano_tuning.STARTS["grammar"],
        bases=nano.BASES,
        cannot_show="all questions are alike: strings are spelt rightly, and nothing is reasoned",
    ),
    World(
        name="ledgers",
        regimes=nano_tuning.REGIMES["ledgers"],
        bases=nano.BASES,
        cannot_show="copies from the beginning of a text: nothing else depends on what was cut off",
    ),
    World(
        name="canvas",
        regimes=nano_canvas.REGIMES["canvas"],
        bases=nano.BASES,
        cannot_show="a text has no meaning and one length, and all that can be learnt are pairs",
    ),
    World(
        name="chains",
        regimes=nano_tuning.REGIMES["chains"],
        bases=nano.BASES,
        cannot_show="steps are sums of two digits, and every question has as many of them",
    ),
    World(
        name="chain",
        regimes=nano_chain.REGIMES["chain"],
        preparations=nano_chain.STARTS["chain"],
        bases=nano.BASES,
        cannot_show=(
            "one answer is right, all have one length, and a teacher is nearly always sure; a "
            "mistake is a wrong sum, after which the sums go on"
        ),
    ),
    World(
        name="hinted",
        regimes=nano_hinted.REGIMES["hinted"],
        preparations=nano_hinted.STARTS["hinted"],
        bases=nano.BASES,
        cannot_show=(
            "one answer is right, all have one length, and a hint is an answer that can be copied: "
            "nothing in it has to be understood"
        ),
    ),
    World(
        name="erring",
        regimes=nano_hinted.REGIMES["erring"],
        seeds=tuple(range(40, 56)),  # those of `hinted` are known
        preparations=nano_hinted.STARTS["erring"],
        bases=nano.BASES,
        cannot_show=(
            "one answer is right, all have one length, and feedback is the beginning of that "
            "answer: it says more than that an attempt failed somewhere"
        ),
    ),
    World(
        name="tokens",
        regimes=nano_tokens.REGIMES["tokens"],
        preparations=nano_tokens.STARTS["tokens"],
        bases=nano.BASES,
        cannot_show="tokens are one character or two, and most of a vocabulary is shared",
    ),
    World(
        name="tables",
        regimes=nano_tables.REGIMES["tables"],
        preparations=nano_tables.STARTS["tables"],
        bases=nano.BASES,
        cannot_show=(
            "random pairs are memorised: no pair says anything of another, and no held-out "
            "problem shows what generalises"
        ),
    ),
)
WORLDS: Mapping[str, World] = {world.name: world for world in ROWS}


def find_world(name: str) -> World:
    """Return the world of a name, ours or one that another distribution adds.

    Raises:
        UnknownName: there is no such world.
        BadValue: an entry point is no `World`, or has the name of one in this table.
    """
    return find_row("world", name, WORLDS, "repro.worlds", World)


def world_of_regime(regime: str | None) -> World:
    """Return the world that a regime belongs to; without a regime the pocket world.

    Raises:
        UnknownName: no world has a regime of that name.
    """
    if regime is None or regime in POCKET.regimes:
        return POCKET
    try:
        world = find_world(regime.partition("-")[0])
    except UnknownName:
        world = POCKET
    if regime not in world.regimes:
        regimes = [name for row in (*ROWS, world) for name in row.regimes]
        raise UnknownName("regime", regime, list(dict.fromkeys(regimes)))
    return world


def find_regime(name: str, scale: str, source: str, family: str) -> Mapping[str, object]:
    """Return the settings of a regime at a scale.

    Args:
        name: name of the regime.
        scale: "cpu", "gpu" or "paper".
        source: what names the regime, for error messages.
        family: name of the family that is trained.

    Raises:
        BadValue: there are no regimes at this scale.
        UnknownName: the regime does not exist; similar names are listed.
    """
    if scale != SCALE:
        raise BadValue(
            f"regime={name} ({source}): there is none at {scale}, only at {SCALE}; leave it out "
            "here"
        )
    world = world_of_regime(name)
    return {**world.bases.get(family, {}), **world.regimes[name]}
