"""Names of the shipped models, of their builds, and of models that are not trained yet."""

import re
from collections.abc import Mapping

# The builds of each shipped model: replications of its training; a run's seed selects one.
BUILDS: Mapping[str, tuple[str, ...]] = {
    "pocket-base": ("pocket-base",),
    "pocket-instruct": ("pocket-instruct", "pocket-instruct-1", "pocket-instruct-2"),
    "pocket-teacher": ("pocket-teacher",),
}
# Names of models with random weights, which a run's seed draws: a decoder, one with tokens for
# pairs of digits, and an encoder.
UNTRAINED, PAIRED, ENCODER = "nano", "nano-pairs", "nano-encoder"
RANDOM = (UNTRAINED, PAIRED, ENCODER)
# The number of builds of a model: those that are not shipped are trained when a seed needs them.
REPLICATIONS: Mapping[str, int] = {"pocket-instruct": 8}
SHIPPED = tuple(name for builds in BUILDS.values() for name in builds)
TRAINED_HERE = frozenset(
    f"{name}-{seed}"
    for name, count in REPLICATIONS.items()
    for seed in range(len(BUILDS[name]), count)
)


def build_of(name: str, seed: int) -> str:
    """Return the build of a model that a run with this seed starts from.

    Seeds below the number of builds have builds of their own, see `is_trained_here`; other seeds
    take the shipped builds in turn. A name without builds is returned unchanged. That of a model
    with random weights gets the seed as its ending.
    """
    if name in RANDOM or is_trained_here(name, seed):
        return f"{name}-{seed}"
    builds = BUILDS.get(name, (name,))
    return builds[seed % len(builds)]


def is_trained_here(name: str, seed: int) -> bool:
    """Return whether a seed's build of a model is not shipped, but trained before its runs."""
    return f"{name}-{seed}" in TRAINED_HERE


def untrained_seed(name: str) -> int | None:
    """Return the seed in the name of a model with random weights; None for other models."""
    match = re.fullmatch(rf"(?:{'|'.join(RANDOM)})(?:-(\d+))?", name)
    return int(match[1] or 0) if match else None


def has_pairs(name: str) -> bool:
    """Return whether a name is that of random weights with tokens for pairs of digits."""
    return name.startswith(PAIRED) and untrained_seed(name) is not None


def is_encoder(name: str) -> bool:
    """Return whether a name is that of an encoder with random weights."""
    return name.startswith(ENCODER) and untrained_seed(name) is not None
