"""The stages of quantities that follow from a file of numbers of each pair or solution."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.data.sources import Row
from core.errors import NotMeasured
from core.families.family import ALONE, ENSEMBLE, SEEN, Family, of_one_model
from core.records.pair_files import PairSets, set_of, write_pairs
from core.rewards.verifiers import spread
from core.stages.answering import Answering
from core.stages.data import read_rows, split_rows
from core.stages.quantities import QuantityStage
from eval.errors import BadValue
from eval.samples.evaluation import Decoding
from eval.terminal import say

if TYPE_CHECKING:  # torch, which the plan of a run must not wait for
    from core.configs.base import BaseConfig
    from core.forward.quantities import Quantity
    from core.scoring.solutions import Solved

FILE = "pairs.parquet"


@dataclass(frozen=True, kw_only=True)
class PairQuantities(QuantityStage):
    """Quantities over `rows` held-out pairs, and over as many pairs of the training.

    A quantity of training pairs has the suffix `/training`. The numbers of each pair that the
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
        """The file of the numbers of each pair."""
        return self.folder / FILE

    def work(self, folder: Path) -> Mapping[str, object]:
        """Write the numbers of the pairs, and return every quantity by its name."""
        train, held_out = split_rows(read_rows(self.data.folder), self.rows)
        rows = {set_of(""): held_out, set_of(SEEN): spread(train, self.rows)}
        columns = {name: self.columns(rows[name]) for name in {*map(set_of, self.quantities)}}
        write_pairs(folder / FILE, columns)
        say(f"{self.name}: {self.subject} of {len(held_out)} held-out pairs")
        return derive(columns, self.quantities)

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


@dataclass(frozen=True, kw_only=True)
class RewardQuantities(PairQuantities):
    """Quantities of the rewards of pairs by a reward model, which has no policy.

    The starting model has the head that a training with this seed draws.
    """

    name = "rewards"
    seed: int

    @property
    def inputs(self) -> Mapping[str, object]:
        """The inputs of the quantities of pairs, and the seed of the head of the start."""
        return {**super().inputs, "seed": self.seed}

    def columns(self, rows: Sequence[Row]) -> dict[str, list[float]]:
        """Return the columns of rewards of a file for these rows."""
        from core.models.scorers import REWARD_HEAD
        from core.scoring.reward_quantities import pair_rewards, reward_columns

        start, trained = (
            pair_rewards(answering.scorer(REWARD_HEAD, self.seed), answering.tokenizer, rows)
            for answering in (self.begun, self.answering)
        )
        return reward_columns(start, trained, rows)


@dataclass(frozen=True, kw_only=True)
class SolutionQuantities(PairQuantities):
    """Quantities of solutions that the starting policy samples and the trained model scores.

    The held-out rows are problems, each of which is solved as `decoding` says, and greedily. The
    start gives all solutions the score 1. The sampled ones have a set of numbers for each scorer.

    Attributes:
        decoding: How the solutions are sampled.
        family: The family of the training, whose trainer says how solutions are read.
        config: The settings of the training.
        scorers: Further trained models, which score the same sampled solutions.
    """

    name = "solutions"
    decoding: Decoding
    family: Family
    config: "BaseConfig"
    scorers: tuple[Answering, ...] = ()

    @property
    def inputs(self) -> Mapping[str, object]:
        """The inputs of the quantities of pairs, how solutions are sampled, and the scorers."""
        scorers = [scorer.policy.key for scorer in self.scorers]
        named = {"scorers": scorers} if scorers else {}
        return {**super().inputs, "decoding": asdict(self.decoding), **named}

    def work(self, folder: Path) -> Mapping[str, object]:
        """Write the numbers of the solutions, and return every quantity by its name."""
        from core.scoring.solutions import GREEDY, SAMPLED, draw_solutions

        _, held_out = split_rows(read_rows(self.data.folder), self.rows)
        sampled, greedy = (
            draw_solutions(self.begun.sampler, held_out, decoding)
            for decoding in (self.decoding, Decoding(max_tokens=self.decoding.max_tokens))
        )
        columns = {
            name: self.scored(held_out, solutions, scorer)
            for name, solutions, scorer in (
                (SAMPLED, sampled, self.answering),
                (GREEDY, greedy, self.answering),
                *((f"{SAMPLED}/{n}", sampled, one) for n, one in enumerate(self.scorers, 2)),
            )
        }
        write_pairs(folder / FILE, columns)
        say(f"{self.name}: {self.subject} of {len(held_out)} held-out problems")
        return derive(columns, self.quantities)

    def scored(
        self, rows: Sequence[Row], solutions: "Sequence[Solved]", scorer: Answering
    ) -> dict[str, list[float]]:
        """Return the columns of a file for solutions of these problems.

        Raises:
            BadValue: the scorer has no trained head or another tokenizer, or a score is not finite.
        """
        from core.scoring.solutions import (
            equal_scores,
            finite,
            solution_columns,
            step_scores,
            whole_scores,
        )

        start = trained = equal_scores(solutions)
        if self.answering is not self.begun:
            trainer: Any = self.family.trainer_class()  # Any: of a family of such scores
            tokenizer = scorer.tokenizer
            if tokenizer.get_vocab() != self.begun.tokenizer.get_vocab():
                raise BadValue(
                    f"{scorer.place} has another tokenizer than {self.begun.place}, whose "
                    "solutions it scores: train it from a model with the same one"
                )
            model = scorer.scorer(trainer.head, None)
            if self.family.pair_quantities:
                trained = whole_scores(model, tokenizer, rows, solutions)
            else:
                trained = step_scores(model, trainer.encoder(self.config, tokenizer), solutions)
        scores = {"start": start, "trained": finite(trained, scorer.place)}
        return solution_columns(solutions, scores)


def derive(sets: PairSets, names: Iterable[str], *, at_start: bool = False) -> dict[str, object]:
    """Return quantities of stored pairs or solutions by name, of the trained model or its start.

    Those that are not defined for them are left out, which is said.

    Args:
        sets: Columns of pairs or solutions by the name of their set.
        names: Names of the quantities.
        at_start: Whether the quantities are those of the starting model.
    """
    found = dict[str, object]()
    for name in names:
        try:
            found[name] = asdict(quantity_of(sets, name, at_start=at_start))
        except NotMeasured as error:
            say(f"not measured: {error.args[0]}")
    return found


def quantity_of(sets: PairSets, name: str, *, at_start: bool) -> "Quantity":
    """Return one quantity of stored pairs or solutions, see `derive`."""
    from core.distillation.teacher_quantities import TEACHER_QUANTITIES, teacher_quantity
    from core.preference.pair_quantities import moved_pairs, pair_quantity
    from core.scoring.reward_quantities import has_rewards, reward_quantity, rewarded_pairs
    from core.scoring.solution_quantities import (
        SOLUTION_QUANTITIES,
        ensemble,
        scored_by_each,
        scored_solutions,
        solution_quantity,
    )

    if name in TEACHER_QUANTITIES:
        return teacher_quantity(name, sets, at_start=at_start)
    if (measured := of_one_model(name)) in SOLUTION_QUANTITIES:
        if name.endswith(ALONE):
            return solution_quantity(measured, *scored_by_each(sets, at_start=at_start))
        read = ensemble if name.endswith(ENSEMBLE) else scored_solutions
        return solution_quantity(measured, read(sets, at_start=at_start))
    columns, own_name = sets[set_of(name)], name.removesuffix(SEEN)
    if has_rewards(columns):
        return reward_quantity(own_name, rewarded_pairs(columns, at_start=at_start))
    return pair_quantity(own_name, moved_pairs(columns, at_start=at_start))
