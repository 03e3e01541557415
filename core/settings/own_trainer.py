"""Classes of trainers that a run trains with in place of its family's, by name."""

from importlib import import_module
from typing import TYPE_CHECKING

from core.settings.reward_keys import of_python, source_digest
from eval.errors import BadValue, error_line
from eval.plugins import use

if TYPE_CHECKING:  # torch and transformers, which settings must not wait for
    from core.trainers.resume import ResumableTrainer as Trainer

LIBRARIES = ("core", "torch", "transformers")  # packages whose versions a record has


def load_trainer(name: str, base: "type[Trainer] | None" = None) -> "type[Trainer]":
    """Import a class of trainers.

    Args:
        name: `module:Class`, or `FILE.py:Class` for a file that is no part of a package.
        base: The class that it must extend; default: any trainer of `core`.

    Raises:
        BadValue: the text has another form, the import fails, or the class does not extend `base`.
        MissingFile: there is no such file.
    """
    from core.trainers.resume import ResumableTrainer

    expected = base or ResumableTrainer
    place, colon, attribute = name.rpartition(":")
    if not (colon and place and attribute):
        raise BadValue(f"trainer={name}: expected module:Class or FILE.py:Class")
    trainer_class = getattr(
        use(place) if place.endswith(".py") else import_trainer_module(place), attribute, None
    )
    if not (isinstance(trainer_class, type) and issubclass(trainer_class, expected)):
        trainer = "a trainer of core, such as GRPOTrainer" if base is None else base.__name__
        raise BadValue(
            f"trainer={name}: expected a class that extends {trainer}; found {trainer_class!r:.80}"
        )
    return trainer_class


def import_trainer_module(module: str) -> object:
    """Import a module.

    Raises:
        BadValue: the import fails.
    """
    try:
        return import_module(module)
    except (Exception, SystemExit) as error:  # anybody's module: what it raises is named
        raise BadValue(
            f"trainer={module}: import failed with {error_line(error)}; a file that is not "
            "installed is named by its path, FILE.py:Class"
        ) from error


def trainer_key(name: str) -> object:
    """Return the JSON that represents a class of trainers in the key of a training.

    It holds the name of the class and the source texts of it and of the classes that it extends,
    down to those of `core`. Functions that they call are not included: after a change there, run
    with --force.

    Raises:
        BadValue: see `load_trainer`, or a source text cannot be read.
        MissingFile: see `load_trainer`.
    """
    kind = load_trainer(name)
    user_classes = [base for base in kind.__mro__ if not (of_python(base) or of_library(base))]
    try:
        return {
            "class": kind.__qualname__,
            "source": [source_digest(base) for base in user_classes],
        }
    except (OSError, TypeError) as error:
        raise BadValue(
            f"trainer={name}: {error}, so its training has no key: define it in a file"
        ) from error


def of_library(kind: type) -> bool:
    """Return whether a class belongs to `core` or to a library that it builds on."""
    return kind.__module__.partition(".")[0] in LIBRARIES
