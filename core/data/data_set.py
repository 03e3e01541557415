"""A data set to train on, and the columns that several have."""

from dataclasses import dataclass, field, replace

from core.data.sources import File, Hub, Source, outline


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set to train on.

    Attributes:
        name: its name in settings.
        columns: the columns of its rows; None if they are not known.
        licence: its licence; None if unknown.
        n: number of training rows that was published; None if unknown.
        source: where the rows are read from.
        own: whether it was given by a path or place; its texts then become user messages.
    """

    name: str
    columns: tuple[str, ...] | None = None
    licence: str | None = None
    n: int | None = None
    source: Source = field(default_factory=Hub)
    own: bool = False

    def for_seed(self, seed: int) -> "DataSet":
        """Return the data set with the rows of a seed, if its source computes rows."""
        return replace(self, source=self.source.for_seed(seed))

    @property
    def rows(self) -> int | None:
        """Number of training rows: those of its file, or else `n`.

        Raises:
            DamagedFile: the file has no rows, or a line that is no JSON object.
        """
        file = self.source.path if isinstance(self.source, File) else None
        return outline(file)[1] if file is not None and file.is_file() else self.n


ANSWER = "answer"  # the column of reference answers
PROBLEMS = ("id", "prompt", "question", ANSWER, "language")
GRADED = (*PROBLEMS, "exact_form")  # by a benchmark of ours
WORKED = (*GRADED, "solution")
PAIRS = ("chosen", "rejected")
PREFERENCES = ("prompt", *PAIRS)
MESSAGES = ("messages",)
TEXT = ("text",)
