"""Interface of a family of methods, through which `core.run` uses it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast

from core.paper import Reward
from eval.errors import BadValue
from eval.json_lines import JsonObject

if TYPE_CHECKING:  # torch and transformers, which a list of papers must not wait for
    from datasets import Dataset
    from peft import PeftConfig
    from transformers import TrainerCallback

    from core.configs.base import BaseConfig
    from core.samplers.policy import PolicySampler
    from core.trainers.resume import ResumableTrainer
    from eval.samples.evaluation import Sampler

Row: TypeAlias = JsonObject  # columns of any type
Trainer = TypeVar("Trainer", bound="ResumableTrainer")
SEEN = "/training"  # suffix of the names of quantities of training rows
# Of quantities of solutions that several models score: together, and the mean of each alone.
ENSEMBLE, ALONE = "/ensemble", "/alone"
# Beginning of the names of quantities of a benchmark's problems, and what is measured of these.
KL_ON_BENCHMARK, KL_TO_START = "kl_to_start/", "kl_to_start"
# Settings of averaged weights.
AVERAGES = (
    *("average_update_freq", "average_ema_power", "average_bias_power"),
    *("average_lag", "average_update_after"),
)
PROMPT_TOKENS = 256  # assumed length of a prompt where the data is not loaded


def of_one_model(quantity: str) -> str:
    """Return the name of a quantity of solutions that a single model scores."""
    return quantity.removesuffix(ENSEMBLE).removesuffix(ALONE)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Figure of a page: logged metrics by optimizer step.

    Attributes:
        name: its file name.
        caption: its caption.
        alt: its alternative text.
        metrics: the axis label of each metric.
    """

    name: str
    caption: str
    alt: str
    metrics: Mapping[str, str]


HELD_OUT = Figure(
    name="held-out",
    caption="Held-out accuracy while training",
    alt="Accuracy by step for every arm.",
    metrics={"held_out/accuracy": "held-out accuracy (%)"},
)


def training_figures(metrics: Mapping[str, str]) -> tuple[Figure, ...]:
    """Return the figures of a training: these logged metrics, and the held-out accuracy.

    Args:
        metrics: the axis label of each metric.
    """
    training = Figure(
        name="training", caption="Training", alt="Logged metrics by step.", metrics=metrics
    )
    return training, HELD_OUT


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Upper bounds of what a training computes; None where they depend on unknown data.

    Attributes:
        updates: number of optimizer steps.
        samples: number of samples, which a budget counts.
        unit: what a sample is.
        sampled_tokens: number of tokens that are sampled.
        copies: names of the arrays in memory that have the size of the parameters.
    """

    updates: int | None
    samples: int | None
    unit: str
    sampled_tokens: int | None = None
    copies: tuple[str, ...] = ("weights", "gradients", "AdamW")


@dataclass(frozen=True, kw_only=True)
class Work:
    """Size of what one process computes at a time.

    Attributes:
        micro_batch: completions that are trained on together.
        prompts: prompts of a micro-batch, each of which is computed once.
        rows: completions that are sampled together.
        completion: largest length of a completion, in tokens.
        checkpointing: whether activations are recomputed.
        reference: whether a reference model is kept.
        values: whether a value model of the policy's size is trained too.
        prompt: length of a prompt, in tokens.
        bf16: whether it computes in bfloat16.
    """

    micro_batch: int
    prompts: int
    rows: int
    completion: int
    checkpointing: bool
    reference: bool
    values: bool = False
    prompt: int = PROMPT_TOKENS
    bf16: bool = False

    @property
    def tokens(self) -> int:
        """Number of tokens of a micro-batch that is packed into one row."""
        return self.prompts * self.prompt + self.micro_batch * self.completion


@dataclass(frozen=True, kw_only=True)
class Training:
    """Arguments of a trainer.

    Attributes:
        config: its settings.
        model: the policy, by name or folder.
        rewards: its reward functions.
        rows: the training data.
        callbacks: callbacks of the trainer.
        adapters: configuration of LoRA adapters, if any.
        roles: further models, by name or folder, for the `roles` of its family.
        chat_template: template that replaces the model's own.
        trainer_class: class that trains in place of the family's own, which it extends.
    """

    config: "BaseConfig"
    model: str
    rewards: tuple[Reward, ...]
    rows: "Dataset"
    callbacks: "Sequence[TrainerCallback]"
    adapters: "PeftConfig | None"
    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    chat_template: str | None = None
    trainer_class: "type[ResumableTrainer] | None" = None

    def trainer_of(self, own: "type[Trainer]") -> "type[Trainer]":
        """Return the class that trains: that of the family, or the one that replaces it."""
        return own if self.trainer_class is None else cast("type[Trainer]", self.trainer_class)


@dataclass(frozen=True, kw_only=True)
class Making:
    """Arguments of a preparation that makes rows.

    Attributes:
        config: its settings.
        sampler: the model.
        rewards: reward functions for the answers.
        rows: rows with prompts.
        answerer: the model that answers, with the tools of its mode; None for the model alone.
    """

    config: "BaseConfig"
    sampler: "PolicySampler"
    rewards: tuple[Reward, ...]
    rows: Sequence[Mapping[str, object]]
    answerer: "Sampler | None" = None


class Family(Protocol):
    """A family of methods.

    Attributes:
        name: its name in settings.
        columns: columns that its data must have; empty if nothing is trained.
        other_columns: columns that its data may have in their place.
        profiles: its settings at each scale.
        trained_by: its training in a word.
        micro_batches: config fields, beside gradient_accumulation_steps, that count
            micro-batches and are divided among the processes of a launch.
        progress: logged metrics with the title and format that a terminal shows.
        figures: figures of a page.
        unused: settings of a run that it does not read; they are refused if set.
        roles: models that its trainer takes beside the policy, such as a teacher.
        probabilities: quantities of `core.forward.quantities` that are computed of data rows
            before and after the training.
        claimed_probabilities: further such quantities, which are computed where a claim asks.
        own_answers: quantities of `core.forward.own_answers` that are computed where a claim
            asks.
        kept_tokens: quantities of `core.forward.kept_tokens` that are computed where a claim
            asks.
        sampler_gaps: quantities of `core.forward.sampler_gap` that are computed where a claim
            asks.
        pair_quantities: quantities of `core.preference.pair_quantities` that are computed of
            held-out pairs, or with the suffix of `SEEN` of pairs of the training, where a claim
            asks.
        solution_quantities: quantities of `core.scoring.solution_quantities` that are computed of
            solutions of held-out problems where a claim asks.
        teacher_quantities: quantities of `core.distillation.teacher_quantities` that are computed
            of the policy's own samples where a claim asks.
        text_quantities: quantities of `core.diffusion.bigrams` that are computed of texts that the
            model draws, where a claim asks.
        gives_texts: whether its model draws texts and gives no answers, so that no benchmark is
            asked.
        gives_rewards: whether its model gives texts a reward and no answers. No benchmark is asked
            then, and `pair_quantities` are those of `core.scoring.reward_quantities`.
        gives: columns that it adds to rows, if it is a preparation that makes rows instead of
            training.
        has_regimes: whether the regimes of `core.families.regimes` configure its trainer;
            otherwise they configure the runs around it. Those of a nano world configure every
            trainer.
        listed_with: the family under whose name its papers are listed and reproduced; empty for
            its own.
        group: a name of several families, by which their papers are listed and reproduced, too.
    """

    name: str
    columns: tuple[str, ...]
    profiles: Mapping[str, Mapping[str, object]]
    trained_by: str
    other_columns: tuple[str, ...] = ()
    micro_batches: tuple[str, ...] = ()
    progress: tuple[tuple[str, str, str], ...] = ()
    figures: tuple[Figure, ...] = ()
    unused: tuple[str, ...] = ("scorers", "weights", *AVERAGES)  # which one family alone reads
    roles: tuple[str, ...] = ()
    probabilities: tuple[str, ...] = ()
    claimed_probabilities: tuple[str, ...] = ()
    own_answers: tuple[str, ...] = ()
    kept_tokens: tuple[str, ...] = ()
    sampler_gaps: tuple[str, ...] = ()
    pair_quantities: tuple[str, ...] = ()
    solution_quantities: tuple[str, ...] = ()
    teacher_quantities: tuple[str, ...] = ()
    text_quantities: tuple[str, ...] = ()
    gives_texts: bool = False
    gives_rewards: bool = False
    gives: tuple[str, ...] = ()
    has_regimes: bool = False
    listed_with: str = ""
    group: str = ""

    @property
    def held_out_columns(self) -> tuple[str, ...]:
        """The `columns` that held-out rows must have, too, and the `other_columns`."""
        return (*self.columns, *self.other_columns)

    def reads(self, rewards: Sequence[Reward], held_out: int) -> tuple[str, ...]:
        """Return the columns that a run reads with these rewards and held-out problems."""
        del rewards, held_out
        return self.columns

    @property
    def trains(self) -> bool:
        """True if the family trains a model."""
        return bool(self.columns) and not self.gives

    def config_class(self) -> "type[BaseConfig]":
        """Import the config class."""
        ...

    def trainer_class(self) -> "type[ResumableTrainer]":
        """Import the trainer class.

        Raises:
            BadValue: the family trains nothing, which is the default.
        """
        raise BadValue(f"the family {self.name} has no trainer")

    def trainer(self, training: Training) -> "ResumableTrainer":
        """Import and build the trainer."""
        ...

    def check(
        self, config: "BaseConfig", rewards: Sequence[Reward], roles: Collection[str]
    ) -> None:
        """Raise if settings do not fit the rewards and roles; called before anything is loaded."""
        del config, rewards, roles

    def rows(self, making: Making) -> list[Row]:
        """Make the rows of a data set.

        Raises:
            BadValue: no rows result, or the family makes no rows, which is the default.
        """
        raise BadValue(f"{making.config.run_name}: the family {self.name} makes no rows")

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """Describe how rows become updates, in one or several lines of text for a terminal.

        Args:
            config: Settings of the run.
            rows: Number of rows of the training data.
            processes: Number of processes of the launch.
            share: Batch sizes of one process by field; a missing field has its value in `config`.
        """
        ...

    def cost(self, config: "BaseConfig", rows: int | None = None) -> Cost:
        """Return the cost of these settings on one process; `rows` is the data's size if known."""
        ...

    def work(self, config: "BaseConfig", processes: int, share: Mapping[str, int]) -> Work | None:
        """Return what one process computes at a time; None if nothing is trained."""
        ...

    def answer_tokens(self, config: "BaseConfig") -> int | None:
        """Return the largest length of trained answers, in tokens; None if unknown."""
        del config
        return None

    def truncation(self, config: "BaseConfig") -> Mapping[str, float | None]:
        """Return temperature, `top_k`, `top_p` and `min_p` of its sampling; empty without any."""
        del config
        return {}

    def sampler_bits(self, config: "BaseConfig") -> int | None:
        """Return the bits of the weights that are sampled from; None if they are not quantised."""
        del config
        return None
