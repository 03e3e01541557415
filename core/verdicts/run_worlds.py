"""The world of a run, as its record tells."""

from core.claims import Record
from core.families.worlds import World, world_of_regime


def world_of(run: Record) -> World:
    """Return the world of a run, by the regime in its record."""
    return world_of_regime(run.get("config", {}).get("regime", {}).get("value"))
