"""Chat templates given beside a model, such as for base models, which have none."""

from importlib.resources import files
from pathlib import Path

from eval.errors import BadValue, MissingFile

PLAIN = "plain"  # questions and answers in plain words, see templates/plain.jinja


def template_text(name: str) -> str:
    """Return the Jinja text of a chat template: the plain one by its name, or that of a file.

    Raises:
        MissingFile: the name is neither "plain" nor a readable file.
        BadValue: the file is no UTF-8 text.
    """
    if name == PLAIN:
        place = files("core.models").joinpath("templates", f"{PLAIN}.jinja")
        return place.read_text(encoding="utf-8")
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise MissingFile(
            f"chat_template={name}: cannot be read ({error.strerror}); expected a file with a "
            f"Jinja template, or {PLAIN}"
        ) from error
    except ValueError as error:
        raise BadValue(f"chat_template={name}: {error}; expected text in UTF-8") from error
