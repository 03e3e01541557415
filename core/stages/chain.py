"""The stages of a run: data, start, train, and the evaluations before and after the training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

from core.claims.needs import PREPARED
from core.families.distillation import OF_STEPS
from core.families.family import SEEN
from core.families.worlds import POCKET
from core.models.builds import build_of, is_trained_here
from core.settings.resolve import resolve
from core.settings.resolved import Resolved
from core.settings.run_settings import LARGEST_SEED, LIVE, RunSettings
from core.stages.answering import Answering
from core.stages.data import Data
from core.stages.divergences import Divergences
from core.stages.drawn_texts import DrawnTexts
from core.stages.evaluate import Evaluate, evaluations
from core.stages.held_out import ANSWER_TOKENS
from core.stages.kept_tokens import KeptTokens
from core.stages.kernels import acting_kernels
from core.stages.loading import loading_of
from core.stages.own_answers import OwnAnswers
from core.stages.pair_quantities import PairQuantities, RewardQuantities, SolutionQuantities
from core.stages.probabilities import Probabilities
from core.stages.quantities import QuantityStage
from core.stages.rows import Rows
from core.stages.sampler_gap import SamplerGap
from core.stages.stage import Policy, Stage
from core.stages.start import Chosen, Start
from core.stages.train import Averaged, Train
from eval.errors import BadValue
from eval.samples.evaluation import Decoding


@dataclass(frozen=True)
class Chain:
    """The stages of one arm at one scale with one seed."""

    resolved: Resolved
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= LARGEST_SEED:
            raise BadValue(f"seed {self.seed}: expected 0 to {LARGEST_SEED}")

    @cached_property
    def prepared(self) -> "Mapping[str, Chain]":
        """The chains of the preparations that the run names, by name.

        All runs that name a preparation share its model or rows, which are made with seed 0; if the
        preparation is one per seed, the runs of a seed share it. A build of a model that is not
        shipped is one per seed, and stands under its own name.
        """
        chains = {
            name: Chain(resolved, resolved.paper.preparation_seed(name, self.seed))
            for name, resolved in self.resolved.prepared.items()
        }
        run = self.resolved.run
        builds = {
            build_of(name, self.seed): Chain(resolve(POCKET.starts, arm=name), self.seed)
            for name in run.models
            if is_trained_here(name, self.seed)
        }
        return {**chains, **builds}

    @property
    def pretrained(self) -> str:
        """The name of the model that the first training begins with."""
        before = self._preparation_of(self.resolved.run.model)
        return before.pretrained if before else self.resolved.run.model

    @property
    def preparations(self) -> list[Stage]:
        """The stages of all preparations, in the order in which they run."""
        stages = [
            stage
            for chain in self.prepared.values()
            for stage in (*chain.preparations, *chain.making)
        ]
        return list({stage.key: stage for stage in stages}.values())

    @cached_property
    def start(self) -> Start:
        """The stage of the starting model."""
        run, on_processor = self.resolved.run, self.resolved.config.get("use_cpu")
        kernels = acting_kernels() if on_processor else {}
        trust_code = bool(self.resolved.config.get("trust_remote_code"))
        denoises = self.resolved.family.gives_texts
        return Start(self._chosen(run.model), run.chat_template, kernels, trust_code, denoises)

    @cached_property
    def data(self) -> Data:
        """The stage that makes the rows of the data sets."""
        preparations = {
            data_set.name: self._preparation_of(data_set.name) for data_set in self.resolved.sets
        }
        row_stages = {name: chain.rows for name, chain in preparations.items() if chain}
        data_set = self.resolved
        return Data(
            tuple(source.for_seed(self.seed) for source in data_set.sets),
            data_set.family,
            row_stages,
            prompts=data_set.run.prompts,
            reads=data_set.reads,
        )

    @cached_property
    def train(self) -> Train | None:
        """The training stage; None if the family does not train."""
        if not self.resolved.family.trains:
            return None
        return Train(
            resolved=self.resolved,
            seed=self.seed,
            data=self.data,
            begin=self.start,
            roles=self.roles,
        )

    @property
    def roles(self) -> Mapping[str, Chosen]:
        """The models beside the policy, by role."""
        return {role: self._chosen(name) for role, name in self.resolved.run.roles.items()}

    @property
    def rows(self) -> Rows:
        """The stage of a preparation that makes rows."""
        return Rows(resolved=self.resolved, data=self.data, answers=self.start, roles=self.roles)

    @property
    def policy(self) -> Policy:
        """The stage of the model that is scored; without a training it is the start."""
        weights = self.resolved.run.weights
        if self.train is None or weights == LIVE:
            return self.train or self.start
        return Averaged(train=self.train, weights=weights)

    @property
    def training(self) -> list[Stage]:
        """The stages of data, start and policy; the start alone if the family does not train."""
        return [self.train.data, self.start, *self.trained] if self.train else [self.start]

    @property
    def trained(self) -> list[Stage]:
        """The training and, if an average of its weights is scored, that one."""
        if self.train is None:
            return []
        return [self.train] if self.policy is self.train else [self.train, self.policy]

    @property
    def making(self) -> list[Stage]:
        """The stages of this chain as a preparation."""
        return self.training if self.train else [self.data, self.start, self.rows]

    def evaluations(self, policy: Policy) -> list[Evaluate]:
        """Return the evaluation stages of the starting model or of the trained one."""
        return evaluations(self.resolved, policy, self.seed)

    @property
    def quantity_pairs(self) -> list[list[QuantityStage]]:
        """The stages of quantities of probabilities: a pair of before and after for each kind."""
        rows = self.resolved.run.heldout_problems
        if self.train is None or not rows:
            return []
        start, trained = (
            Answering(policy, loading_of(self.resolved), self.resolved.run.threads)
            for policy in (self.start, self.policy)
        )
        return [
            [
                make(answering=policy, data=self.train.data, rows=rows, quantities=names)
                for policy in (start, trained)
            ]
            for names, make in self.quantity_kinds(start)
            if names
        ]

    def quantity_kinds(
        self, start: Answering
    ) -> list[tuple[tuple[str, ...], Callable[..., QuantityStage]]]:
        """Return the names of quantities of each kind, and what makes a stage that measures them.

        Args:
            start: The starting policy.
        """
        family, config = self.resolved.family, self.resolved.preview()
        claimed, of_pairs = self.resolved.claimed_quantities, family.pair_quantities
        tokens = family.answer_tokens(config) or ANSWER_TOKENS
        pairs = partial(PairQuantities, begun=start)
        if family.gives_rewards:
            pairs = partial(RewardQuantities, begun=start, seed=self.seed)
        solutions = partial(
            SolutionQuantities,
            begun=start,
            family=family,
            config=config,
            decoding=decoding_of_solutions(self.resolved.run),
            scorers=tuple(
                self._answering(start, self._chosen(name)) for name in self.resolved.run.scorers
            ),
        )
        of_steps = () if self.resolved.has_judged_steps else OF_STEPS
        of_teacher = tuple(n for n in claimed(family.teacher_quantities) if n not in of_steps)
        divergences = partial(
            Divergences,
            begun=start,
            teacher=self._teacher(start) if of_teacher else start,
            tokens=tokens,
            benchmark=next(iter(self.resolved.run.benchmarks), ""),
        )
        kept = partial(KeptTokens, begun=start, sampling=family.truncation(config))
        return [
            ((*family.probabilities, *claimed(family.claimed_probabilities)), Probabilities),
            (
                claimed(family.own_answers),
                partial(OwnAnswers, begun=start, tokens=tokens, seed=self.seed),
            ),
            (claimed(family.kept_tokens), partial(kept, tokens=tokens)),
            (claimed((*of_pairs, *(name + SEEN for name in of_pairs))), pairs),
            (claimed(family.solution_quantities), solutions),
            (of_teacher, divergences),
            (claimed(family.text_quantities), partial(DrawnTexts, config=config, seed=self.seed)),
            (
                claimed(family.sampler_gaps),
                partial(SamplerGap, tokens=tokens, bits=family.sampler_bits(config)),
            ),
        ]

    @property
    def probabilities(self) -> list[Stage]:
        """The stages of `quantity_pairs` in one list."""
        return [stage for pair in self.quantity_pairs for stage in pair]

    @property
    def start_stages(self) -> list[Stage]:
        """The stages that score the starting model, which all arms of a seed share."""
        return [*self.preparations, self.start, *self.evaluations(self.start)]

    @property
    def own_stages(self) -> list[Stage]:
        """The stages that train the policy and score it."""
        trained = [self.train.data, *self.trained] if self.train else []
        return [*trained, *self.evaluations(self.policy), *self.probabilities]

    @property
    def stages(self) -> list[Stage]:
        """The stages of the run without duplicates, in the order of a plan."""
        trained = [*self.preparations, *self.training]
        scored = self.evaluations(self.start) + self.evaluations(self.policy)
        all_stages = (*trained, *scored, *self.probabilities)
        return list({stage.key: stage for stage in all_stages}.values())

    def _preparation_of(self, name: str) -> "Chain | None":
        """Return the chain of the preparation that a name refers to, if it refers to one."""
        return self.prepared[name.removeprefix(PREPARED)] if name.startswith(PREPARED) else None

    def _teacher(self, start: Answering) -> Answering:
        """Return the model in the role of the teacher.

        Raises:
            BadValue: no model has the role.
        """
        role = self.train.roles.get("teacher") if self.train else None
        if role is None:
            raise BadValue("quantities of a teacher are asked for: set roles={'teacher': ...}")
        return self._answering(start, role)

    def _answering(self, start: Answering, chosen: Chosen) -> Answering:
        """Return another model that is loaded as the start is."""
        return Answering(replace(self.start, chosen=chosen), start.loading, start.threads)

    def _chosen(self, name: str) -> Chosen:
        """Return the model of a name, with its training stage if the name is a preparation's."""
        if is_trained_here(name, self.seed):
            before = self.prepared[build_of(name, self.seed)]
        else:
            before = self._preparation_of(name)
        return Chosen(name, before.policy if before else None, self.seed)


def decoding_of_solutions(run: RunSettings) -> Decoding:
    """Return how a policy samples the solutions that models score."""
    return Decoding(
        samples=run.at_k_samples,
        temperature=run.at_k_temperature,
        max_tokens=run.eval_max_tokens or ANSWER_TOKENS,
    )
