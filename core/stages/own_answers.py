"""The stage of quantities of a policy's own answers, by its probabilities and its start's."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from core.data.sources import Row, problem_rows
from core.families.family import KL_ON_BENCHMARK, KL_TO_START
from core.stages.answering import Answering
from core.stages.data import read_rows, split_rows
from core.stages.quantities import QuantityStage
from core.stages.sources import source_of
from eval.sets.benchmarks import find_benchmark
from eval.terminal import say


@dataclass(frozen=True, kw_only=True)
class OwnAnswers(QuantityStage):
    """Quantities over one answer at temperature 1 to each of `rows` held-out problems.

    Those of `kl_to_start/NAME` are problems of the benchmark with that name.

    Attributes:
        begun: The starting policy.
        tokens: Largest length of an answer.
        seed: The seed that draws the problems of benchmarks.
    """

    name = "own-answers"
    begun: Answering
    tokens: int
    seed: int

    @property
    def inputs(self) -> Mapping[str, object]:
        """The inputs of all such stages, the starting policy, the length of answers, benchmarks."""
        own = {"start": self.begun.policy.key, "tokens": self.tokens}
        suites = {suite: [source_of(suite), self.seed] for suite in self.suites if suite}
        return {**super().inputs, **own, **({"benchmarks": suites} if suites else {})}

    @property
    def suites(self) -> dict[str, list[str]]:
        """The quantities by the benchmark whose problems are answered; empty for the data's own."""
        suites: dict[str, list[str]] = {}
        for name in self.quantities:
            suite = name.removeprefix(KL_ON_BENCHMARK) if name.startswith(KL_ON_BENCHMARK) else ""
            suites.setdefault(suite, []).append(name)
        return suites

    def work(self, folder: Path) -> Mapping[str, object]:  # noqa: ARG002 - it leaves no files
        """Draw the answers, and return every quantity by its name."""
        from core.forward.own_answers import OWN_ANSWERS, answers_of_both

        start, found = self.begun.sampler.model.eval(), dict[str, object]()
        for suite, names in self.suites.items():
            statistics = answers_of_both(
                self.answering.sampler, start, self.problems(suite), self.tokens
            )
            measured = {name: OWN_ANSWERS[KL_TO_START if suite else name] for name in names}
            found |= {name: asdict(measure(*statistics)) for name, measure in measured.items()}
            say(f"own answers: {self.subject} of {len(statistics.policy)} answers")
        return found

    def problems(self, suite: str) -> list[Row]:
        """Return held-out problems of a benchmark, or of the data."""
        if suite:
            draw = find_benchmark(suite).draw_of(self.seed)
            return problem_rows(suite, "valid", None, draw)[: self.rows]
        return split_rows(read_rows(self.data.folder), self.rows)[1]
