"""What a run asks of a family of methods; `core.run` knows families by this alone."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from core.paper import Reward
from eval.errors import BadValue

if TYPE_CHECKING:  # torch and transformers, which a list of papers must not wait for
    from datasets import Dataset
    from peft import PeftConfig
    from transformers import TrainerCallback

    from core.configs.base import BaseConfig
    from core.rollout.samplers.policy import PolicySampler
    from core.trainers.resume import ResumableTrainer

SEEN = "/training"  # ends the name of a quantity of rows that are trained on
PROMPT_TOKENS = 256  # of a prompt, assumed where the data is not at hand


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of a page: logged metrics against the optimizer step, each with its axis' label.

    `alt` is for whoever cannot see it.
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
    """What a page shows of every training: these logged metrics, and the held-out accuracy."""
    training = Figure(
        name="training", caption="Training", alt="Logged metrics by step.", metrics=metrics
    )
    return training, HELD_OUT


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a training makes at most; None where only the data decides.

    `samples` are what a budget counts, `unit` says which. `copies` are what lies in memory for each
    parameter, by name.
    """

    updates: int | None
    samples: int | None
    unit: str
    sampled_tokens: int | None = None
    copies: tuple[str, ...] = ("weights", "gradients", "AdamW")


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one process computes at a time, in tokens, and in which precision.

    `micro_batch` completions of at most `prompts` prompts are trained on together, each prompt
    once, and `rows` are sampled together. `values` says whether a value model as large as the
    policy learns beside it.
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
        """Of a micro-batch packed into one row."""
        return self.prompts * self.prompt + self.micro_batch * self.completion


@dataclass(frozen=True, kw_only=True)
class Training:
    """What a trainer is made of: settings, the model by name or folder, rows, and who watches.

    `roles` are the models beside it, by name or folder, that its family takes. `chat_template`
    takes the place of the model's own.
    """

    config: "BaseConfig"
    model: str
    rewards: tuple[Reward, ...]
    rows: "Dataset"
    callbacks: "Sequence[TrainerCallback]"
    adapters: "PeftConfig | None"
    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    chat_template: str | None = None


@dataclass(frozen=True, kw_only=True)
class Making:
    """What rows are made of: settings, the model that answers, rewards, and rows with prompts."""

    config: "BaseConfig"
    sampler: "PolicySampler"
    rewards: tuple[Reward, ...]
    rows: Sequence[Mapping[str, Any]]  # Any: columns of any type


class Family(Protocol):
    """A family of methods, on one page.

    `columns` are those that its data must have, none where nothing is trained. `gives` are those
    that it adds to them where it trains nothing but makes rows, which only a preparation does.
    `roles` are the models that its trainer takes beside the policy, such as a teacher.
    `probabilities` are quantities of `core.forward.quantities` that are computed of rows of its
    data before and after the training.
    `own_answers` are those of `core.forward.own_answers`, and `sampler_gaps` those of
    `core.forward.sampler_gap`, which are computed where a claim asks.
    `micro_batches` are fields of its config, beside gradient_accumulation_steps, that count
    micro-batches, which the processes of a launch share. `trained_by` is the training in a word.
    `progress` are logged metrics with the title and format in which a terminal shows them.
    `unused` are settings of a run that nothing in it reads: set to something, they are refused.
    `listed_with` is the family whose papers its own are listed and reproduced with, if not alone.
    `has_regimes` says whether the regimes of `core.families.regimes` are of its trainer; where they
    are not, they say what surrounds it.
    """

    name: str
    columns: tuple[str, ...]
    profiles: Mapping[str, Mapping[str, object]]
    trained_by: str
    micro_batches: tuple[str, ...] = ()
    progress: tuple[tuple[str, str, str], ...] = ()
    figures: tuple[Figure, ...] = ()
    unused: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    probabilities: tuple[str, ...] = ()
    own_answers: tuple[str, ...] = ()
    sampler_gaps: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    has_regimes: bool = False
    listed_with: str = ""

    @property
    def held_out_columns(self) -> tuple[str, ...]:
        """Those of `columns` that rows which are held out must have, too."""
        return self.columns

    def reads(self, rewards: Sequence[Reward], held_out: int) -> tuple[str, ...]:
        """The columns that a run reads with these rewards and so many held-out problems."""
        del rewards, held_out
        return self.columns

    @property
    def trains(self) -> bool:
        """Whether there is a training."""
        return bool(self.columns) and not self.gives

    def config_class(self) -> "type[BaseConfig]":
        """Import the class of its settings."""
        ...

    def trainer(self, training: Training) -> "ResumableTrainer":
        """Import and build its trainer."""
        ...

    def check(
        self, config: "BaseConfig", rewards: Sequence[Reward], roles: Collection[str]
    ) -> None:
        """Refuse settings that do not go with the rewards and roles, before anything loads."""
        del config, rewards, roles

    def rows(self, making: Making) -> list[dict[str, Any]]:
        """Make the rows of a data set.

        Raises:
            BadValue: there are none; or this family makes no rows, which is the default.
        """
        raise BadValue(f"{making.config.run_name}: the family {self.name} makes no rows")

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """Say how rows become updates; `share` holds the sizes of a batch of one process."""
        ...

    def cost(self, config: "BaseConfig", rows: int | None = None) -> Cost:
        """Work out what the settings of one process make of so many rows, if that is known."""
        ...

    def work(self, config: "BaseConfig", processes: int, share: Mapping[str, int]) -> Work | None:
        """Work out what one of the processes computes at a time; None where nothing is trained."""
        ...

    def answer_tokens(self, config: "BaseConfig") -> int | None:
        """The longest answer that it trains on, if it knows."""
        del config
        return None

    def sampler_bits(self, config: "BaseConfig") -> int | None:
        """The bits of the weights that it samples from, if these are rounded."""
        del config
        return None
