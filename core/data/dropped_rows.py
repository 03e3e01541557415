"""Rows of a dataset that cannot be trained on: they are dropped and counted."""

from collections.abc import Callable

from datasets import Dataset
from transformers.utils import logging

from core.data.best_fit import Data
from core.data.conversations import Row
from eval.errors import BadValue

logger = logging.get_logger(__name__)


def kept_rows(
    rows: Data, keeps: Callable[[Row], bool], reason: str, *, noun: str = "rows", none: str = ""
) -> Data:
    """Return the rows that `keeps` is true of, and log the number of the others.

    Those of a stream are not counted.

    Args:
        rows: The dataset.
        keeps: Whether a row is kept.
        reason: Why others are dropped, for the message.
        noun: Name of the rows in the message.
        none: Message if no row is kept; empty to return none.

    Raises:
        BadValue: no row is kept, and `none` is given.
    """
    kept = rows.filter(keeps)
    if isinstance(kept, Dataset) and isinstance(rows, Dataset) and len(kept) < len(rows):
        logger.warning(f"{len(rows) - len(kept)} of {len(rows)} {noun} are dropped: {reason}")
    if none and next(iter(kept), None) is None:
        raise BadValue(none)
    return kept
