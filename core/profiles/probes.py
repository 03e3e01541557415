"""Probes: each asks one question of an algorithm, by one measure of one training."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.claims import Measure, at_k, early, late, middle, probability, score, whole
from core.profiles.algorithms import Algorithm
from core.profiles.mechanisms import MECHANISMS
from core.profiles.trainings import TRAININGS, Training

REWARD, ENTROPY, HELD_OUT = "reward", "entropy", "held_out/accuracy"
DISTINCT = at_k("distinct", "nano-choice")  # among 32 answers to a problem
SAMPLER_GAP = "sampling/sampling_logp_difference/mean"
WRONG_LENGTH = "completions/wrong_mean_length"
CUT = "completions/clipped_ratio"
IDLE = "frac_reward_zero_std"


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A number of the runs of plain GRPO, which shows that the difficulty of a probe is there.

    Attributes:
        measure: The number.
        at_least: The smallest mean over the seeds with which a probe is read; None for no bound.
        at_most: The largest such mean; None for no bound.
    """

    measure: Measure
    at_least: float | None = None
    at_most: float | None = None

    def holds(self, value: float) -> bool:
        """Return whether a mean over the seeds lies within the bounds."""
        above = self.at_least is None or value >= self.at_least
        return above and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        bound = f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"
        return f"{self.measure} {bound}"


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A question, the training that answers it, and the pair that shows that it can be answered.

    Attributes:
        name: Its name.
        question: Its question in a sentence.
        place: The name of its training.
        measure: The number that is compared, one for each seed.
        unit: The unit of the measure.
        falls: Whether smaller values are better.
        after_learning: Whether an algorithm that has not learnt in this training has no score, as
            the measure is good where nothing changes.
        statistic: A number that shows that the difficulty is there.
        mechanism: The algorithm that the probe was made for, one of `MECHANISMS`.
        without: The same without the mechanism.
    """

    name: str
    question: str
    place: str
    measure: Measure
    unit: str = "points"
    falls: bool = False
    after_learning: bool = False
    statistic: Statistic
    mechanism: str
    without: str = "grpo"

    @property
    def training(self) -> Training:
        """The training."""
        return TRAININGS[self.place]

    @property
    def pair(self) -> tuple[Algorithm, Algorithm]:
        """The algorithms with and without the mechanism."""
        return MECHANISMS[self.mechanism], MECHANISMS[self.without]


def accuracy(world: str) -> Measure:
    """Return the accuracy of the trained policy, sampled at temperature 1, in percent."""
    return score(f"nano-{world}", temperature=1.0)


LEARNS = Statistic(measure=late(REWARD), at_least=0.25)
ROWS = (
    Probe(
        name="learns",
        question="Does it learn at all?",
        place="choice",
        measure=accuracy("choice"),
        statistic=LEARNS,
        mechanism="grpo",
        without="shuffled-rewards",
    ),
    Probe(
        name="sample-efficiency",
        question="How much reward does it earn on the way?",
        place="choice",
        measure=whole(REWARD),
        unit="reward",
        statistic=LEARNS,
        mechanism="grpo",
        without="few-tokens",
    ),
    Probe(
        name="many-updates",
        question="Does it keep a fragile skill through many large updates of one rollout?",
        place="large-steps",
        measure=accuracy("many"),
        statistic=Statistic(measure=whole("clip_ratio/region_mean"), at_least=0.01),
        mechanism="grpo",
        without="no-clip",
    ),
    Probe(
        name="old-sampler",
        question="Does it learn from a sampler that lags eight rollouts behind?",
        place="old-sampler",
        measure=accuracy("many"),
        statistic=Statistic(measure=whole(SAMPLER_GAP), at_least=0.2),
        mechanism="truncated-weights",
    ),
    Probe(
        name="low-bit-sampler",
        question="Does it learn from a sampler of three bits?",
        place="low-bit-sampler",
        measure=accuracy("many"),
        statistic=Statistic(measure=whole(SAMPLER_GAP), at_least=0.2),
        mechanism="truncated-weights",
    ),
    Probe(
        name="wrong-length",
        question="Do wrong answers stay short?",
        place="length",
        measure=middle(WRONG_LENGTH),
        unit="tokens",
        falls=True,
        after_learning=True,
        statistic=Statistic(measure=middle(WRONG_LENGTH), at_least=20.0),
        mechanism="no-length-divisor",
    ),
    Probe(
        name="limit",
        question="Do answers stay below a limit that cuts them?",
        place="tight-limit",
        measure=whole(CUT),
        unit="share",
        falls=True,
        after_learning=True,
        statistic=Statistic(measure=early(CUT, 0.25), at_least=0.1),
        mechanism="soft-punishment",
    ),
    Probe(
        name="small-groups",
        question="Does it learn from small groups, most of which have one reward?",
        place="small-groups",
        measure=accuracy("choice"),
        statistic=Statistic(measure=whole(IDLE), at_least=0.4),
        mechanism="dynamic-sampling",
    ),
    Probe(
        name="rarely-right",
        question="How soon does it learn prompts of which one answer in twenty is right?",
        place="hard-prompts",
        measure=early(REWARD, 0.5),
        unit="reward",
        statistic=Statistic(measure=early(REWARD, 0.1), at_most=0.15),
        mechanism="dynamic-sampling",
    ),
    Probe(
        name="flipped-rewards",
        question="Does it learn soon from rewards of which a fifth is wrong?",
        place="noisy-rewards",
        measure=late(HELD_OUT, 1 / 3),
        statistic=LEARNS,
        mechanism="clean-rewards",
    ),
    Probe(
        name="two-rewards",
        question="Does it learn a small reward beside a large one?",
        place="two-rewards",
        measure=accuracy("length"),
        statistic=Statistic(measure=late("rewards/scaled_length_within/mean"), at_least=1.0),
        mechanism="rewards-apart",
    ),
    Probe(
        name="kl-cost",
        question="How far from its start does it go for what it learns?",
        place="choice",
        measure=probability("kl_to_start"),
        unit="nats",
        falls=True,
        after_learning=True,
        statistic=Statistic(measure=probability("kl_to_start"), at_least=0.2),
        mechanism="kl-penalty",
    ),
    Probe(
        name="diversity",
        question="Are answers still diverse after training?",
        place="choice",
        measure=late(ENTROPY),
        unit="nats",
        after_learning=True,
        statistic=Statistic(measure=late(ENTROPY), at_most=0.5),
        mechanism="kl-penalty",
    ),
    Probe(
        name="distinct-answers",
        question="How many different right answers does it still give?",
        place="choice",
        measure=DISTINCT,
        unit="answers",
        after_learning=True,
        statistic=Statistic(measure=DISTINCT, at_most=2.0),
        mechanism="kl-penalty",
    ),
)
PROBES: Mapping[str, Probe] = {row.name: row for row in ROWS}
