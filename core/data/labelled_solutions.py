"""Preparation of labelled solutions: token ids, and the label of a solution at all its tokens."""

from dataclasses import dataclass

from core.bounded_templates import Tokenizer
from core.data.best_fit import Data
from core.data.chatml import to_chatml
from core.data.conversations import Row
from core.data.labelled_steps import check_encoded, check_kinds, encoded_rows, named_tokens
from core.data.pairs import encode_answer
from core.data.sft import IGNORED
from core.data.unpaired import LABELLED
from eval.errors import BadValue


@dataclass(frozen=True, kw_only=True)
class SolutionEncoder:
    """Function that converts a row of `prompt`, `completion` and `label` to token ids and labels.

    Attributes:
        tokenizer: the model's tokenizer.
        max_length: largest number of tokens of prompt and solution; None for any.
    """

    tokenizer: Tokenizer
    max_length: int | None = None

    def rows(self, dataset: Data, workers: int | None = None) -> Data:
        """Return a dataset as rows of `input_ids` and `labels`, see `encoded_rows`."""
        return encoded_rows(
            to_chatml(dataset), self, LABELLED, f"max_length={self.max_length}", workers
        )

    def __call__(self, row: Row, index: int) -> dict[str, list[int]]:
        """Return the token ids and labels of a row, with `IGNORED` at the tokens of the prompt.

        Raises:
            BadValue: the label is none of `KINDS`, or the prompt has no token.
        """
        place = f"row {index} of the dataset"
        if "input_ids" in row:
            ids, labels = check_encoded(row, place)
        else:
            check_kinds([row["label"]], place, "solution")
            prompt, solution = encode_answer(row, self.tokenizer)
            ids = [*prompt, *solution]
            labels = [IGNORED] * len(prompt) + [int(row["label"])] * len(solution)
        if labels[:1] != [IGNORED]:
            raise BadValue(f"{place}: expected a prompt before the solution")
        return named_tokens(ids[: self.max_length], labels[: self.max_length])
