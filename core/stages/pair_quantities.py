"""The stage of quantities of preference pairs under a policy and its start."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from core.data.sources import Row
from core.families.family import SEEN
from core.records.pair_files import set_of, write_pairs
from core.rewards.verifiers import spread
from core.stages.data import read_rows, split_rows
from core.stages.evaluate import Answering
from core.stages.quantities import QuantityStage
from eval.terminal import say

FILE = "pairs.parquet"


@dataclass(frozen=True, kw_only=True)
class PairQuantities(QuantityStage):
    """Quantities over `rows` held-out pairs, and over as many pairs of the training.

    A quantity of training pairs has the suffix `/training`. The log-probabilities that the
    quantities follow from are left in a file.
    """

    name = "pairs"
    begun: Answering

    @property
    def inputs(self) -> Mapping[str, object]:
        """The inputs of all such stages, the starting policy and the name of the file."""
        return {**super().inputs, "start": self.begun.policy.key, "file": FILE}

    @property
    def file(self) -> Path:
        """The file of log-probabilities."""
        return self.folder / FILE

    def work(self, folder: Path) -> Mapping[str, object]:
        """Write the log-probabilities of the pairs, and return every quantity by its name."""
        from core.preference.pair_quantities import moved_pairs, pair_quantity

        train, held_out = split_rows(read_rows(self.data.folder), self.rows)
        rows = {set_of(""): held_out, set_of(SEEN): spread(train, self.rows)}
        columns = {name: self.columns(rows[name]) for name in {*map(set_of, self.quantities)}}
        write_pairs(folder / FILE, columns)
        say(f"pairs: {self.subject} of {len(held_out)} held-out pairs")
        pairs = {name: moved_pairs(columns[name]) for name in columns}
        return {
            name: asdict(pair_quantity(name.removesuffix(SEEN), pairs[set_of(name)]))
            for name in self.quantities
        }

    def columns(self, rows: Sequence[Row]) -> dict[str, list[float]]:
        """Return the columns of pairs of a file for these rows."""
        import torch

        from core.preference.pair_quantities import MovedPairs, pair_columns
        from core.preference.pair_sums import pair_sums

        policy, start = (
            pair_sums(answering.sampler.model.eval(), answering.sampler.tokenizer, rows)
            for answering in (self.answering, self.begun)
        )
        flipped = torch.tensor([float(bool(row.get("flipped"))) for row in rows])
        return pair_columns(MovedPairs(policy, start, flipped))
