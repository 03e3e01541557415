"""Names of the shipped models, of their builds, and of models that are not trained yet."""

import re
from collections.abc import Mapping

# The builds of each shipped model: replications of its training; a run's seed selects one.
BUILDS: Mapping[str, tuple[str, ...]] = {
    "pocket-base": ("pocket-base",),
    "pocket-instruct": ("pocket-instruct", "pocket-instruct-1", "pocket-instruct-2"),
    "pocket-teacher": ("pocket-teacher",),
}
UNTRAINED = "nano"  # the name of a model with random weights, which a run's seed draws
SHIPPED = tuple(name for builds in BUILDS.values() for name in builds)


def build_of(name: str, seed: int) -> str:
    """Return the build of a model that a run with this seed starts from.

    A name without builds is returned unchanged. That of the model with random weights gets the
    seed as its ending.
    """
    if name == UNTRAINED:
        return f"{UNTRAINED}-{seed}"
    builds = BUILDS.get(name, (name,))
    return builds[seed % len(builds)]


def untrained_seed(name: str) -> int | None:
    """Return the seed in the name of a model with random weights; None for other models."""
    match = re.fullmatch(rf"{UNTRAINED}(?:-(\d+))?", name)
    return int(match[1] or 0) if match else None
