"""The models that are shipped, by name, and the builds of each."""

from collections.abc import Mapping

# Each shipped model with its builds: replications of its training, of which a run's seed takes one.
BUILDS: Mapping[str, tuple[str, ...]] = {
    "pocket-base": ("pocket-base",),
    "pocket-instruct": ("pocket-instruct", "pocket-instruct-1", "pocket-instruct-2"),
    "pocket-teacher": ("pocket-teacher",),
}
SHIPPED = tuple(name for builds in BUILDS.values() for name in builds)


def build_of(name: str, seed: int) -> str:
    """The build of a model that a run of this seed begins with; the model itself if it has one."""
    builds = BUILDS.get(name, (name,))
    return builds[seed % len(builds)]
