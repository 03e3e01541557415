"""Names of the shipped models and of their builds."""

from collections.abc import Mapping

# The builds of each shipped model: replications of its training; a run's seed selects one.
BUILDS: Mapping[str, tuple[str, ...]] = {
    "pocket-base": ("pocket-base",),
    "pocket-instruct": ("pocket-instruct", "pocket-instruct-1", "pocket-instruct-2"),
    "pocket-teacher": ("pocket-teacher",),
}
SHIPPED = tuple(name for builds in BUILDS.values() for name in builds)


def build_of(name: str, seed: int) -> str:
    """Return the build of a model that a run with this seed starts from.

    A name without builds is returned unchanged.
    """
    builds = BUILDS.get(name, (name,))
    return builds[seed % len(builds)]
