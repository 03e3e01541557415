"""Settings of online preference trainers, with TRL's names and defaults."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import ClassVar, NamedTuple

from core.configs.engines import ENGINES
from core.configs.new_tokens import take_new_tokens
from core.configs.releases import PAPER
from core.configs.rollout import RolloutConfig
from core.losses.online import KL_WEIGHTS, ONLINE_LOSSES, TIES
from core.option import choice, option
from eval.errors import BadValue

PAIRS = "all pairs are trained on"
NATIVE = "only the native engine samples from a mixture of two models"
TWO_SAMPLE = "the two completions of a prompt are sampled from different models"


class Bound(NamedTuple):
    """The range of a number: in words, and whether a number is in it."""

    text: str
    holds: Callable[[float], bool]


POSITIVE = Bound("above 0", lambda x: 0 < x < inf)


@dataclass
class OnlineDPOConfig(RolloutConfig):
    """Settings of `OnlineDPOTrainer`, with the names and defaults of TRL 1.16, and of rollouts.

    `per_device_train_batch_size` counts prompts, with two completions each;
    `per_device_eval_batch_size` counts completions. `max_new_tokens` is another name of
    `max_completion_length`. `beta` may be a list with a value for each epoch, of which the last is
    that of all later epochs. Sampling uses `temperature`, log-probabilities do not.

    Raises:
        BadValue: see `BaseConfig`, or a value is out of range.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **RolloutConfig.UNSUPPORTED,
        "num_generations": "each prompt has two completions",
        "num_generations_eval": "each prompt has two completions",
        "mask_truncated_completions": "a pair has two answers; set missing_eos_penalty",
        "rollout_selection": PAIRS,
        "selection_reward": PAIRS,
        "selection_draws": PAIRS,
        "selection_fills_up": PAIRS,
        "selection_kept": PAIRS,
        "prompt_retirement": PAIRS,
        "router_aux_loss_coef": "the loss of pairs has no load-balancing term",
        "compare_sampler": "no loss reads the probabilities of the sampler",
        "keep_sampling_mask": "log-probabilities are over all tokens",
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **RolloutConfig.CHOICES,
        "loss_type": tuple(ONLINE_LOSSES),
        "tied_pairs": tuple(TIES),
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **RolloutConfig.AT_LEAST,
        "max_new_tokens": 1,
        "max_length": 2,
        "missing_eos_penalty": 0.0,
    }
    # Settings of which each epoch may have its own value, with the range of their values.
    BY_EPOCH: ClassVar[Mapping[str, Bound]] = {"beta": POSITIVE}

    learning_rate: float = option(5e-7, "Initial learning rate of AdamW.")
    disable_dropout: bool = option(True, "Train without dropout.")
    num_generations: int = option(2, "Completions of one prompt: a pair.")
    max_completion_length: int = option(64, "Longest completion in tokens.")
    temperature: float = option(0.9, "Sampling temperature; log-probabilities do not use it.")
    vllm_gpu_memory_utilization: float = option(0.55, "Share of memory for a colocated vLLM.")

    reward_model_path: str | None = option(
        None, "Reward model by name or folder; unset, `reward_funcs` or a judge compares."
    )
    max_new_tokens: int = option(64, "Longest completion in tokens: max_completion_length.")
    max_length: int = option(
        512, "Longest prompt with its completions in tokens; the loss reads the end of longer ones."
    )
    missing_eos_penalty: float | None = option(
        None, "Number subtracted from the reward of a completion without an end token."
    )
    beta: float | list[float] | str = option(
        0.1, "Weight of log-ratios in the loss, or its values by epoch."
    )
    loss_type: str = choice("sigmoid", ONLINE_LOSSES, "The loss of a pair")
    tied_pairs: str = choice("first", TIES, "What becomes of two equally good completions")

    @property
    def completions_per_row(self) -> int:
        """Completions that `per_device_train_batch_size` counts as one: those of a pair."""
        return 2

    @property
    def reads_reference(self) -> bool:
        """True: the losses compare the policy with the reference."""
        return True

    def resolve(self) -> None:
        """Resolve the settings as of every method with rollouts, and check those of the loss."""
        take_new_tokens(self)
        for name, bound in self.BY_EPOCH.items():
            setattr(self, name, self.checked_values(name, bound))
        super().resolve()
        if self.max_length <= self.max_new_tokens:
            raise BadValue(
                f"max_length={self.max_length}: expected more than max_new_tokens="
                f"{self.max_new_tokens}, which leaves no token for the prompt"
            )

    @property
    def heats_loss(self) -> bool:
        """False: log-probabilities have temperature 1."""
        return False

    def checked_values(self, name: str, bound: Bound) -> float | list[float]:
        """Return the number of a setting, or the list of its numbers by epoch.

        Raises:
            BadValue: there is no number, or one is out of range.
        """
        value = getattr(self, name)
        try:
            numbers = [float(x) for x in (value if isinstance(value, list | tuple) else [value])]
        except (TypeError, ValueError):
            numbers = []
        if not numbers or not all(map(bound.holds, numbers)):
            raise BadValue(
                f"{type(self).__name__}.{name}={value!r}: expected a number {bound.text}, or a "
                "list with one for each epoch"
            )
        return numbers if len(numbers) > 1 else numbers[0]

    def at_epoch(self, name: str, epoch: float) -> float:
        """Return the value of a setting of `BY_EPOCH` in an epoch, counted from 0."""
        value: float | list[float] = getattr(self, name)
        return value[min(int(epoch), len(value) - 1)] if isinstance(value, list) else value


OF_ONE_MODEL = ("rollout_policy", "rollout_lag", "rollout_bits", "use_vllm")
TWO_MODELS: Mapping[str, str] = dict.fromkeys(OF_ONE_MODEL, TWO_SAMPLE)


@dataclass
class XPOConfig(OnlineDPOConfig):
    """Settings of `XPOTrainer`, with the names and defaults of TRL 1.13.

    `alpha` may be a list with a value for each epoch, as `beta`.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {**OnlineDPOConfig.UNSUPPORTED, **TWO_MODELS}
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **OnlineDPOConfig.CHOICES,
        "rollout_engine": tuple(name for name, row in ENGINES.items() if not row.is_vllm),
    }
    BY_EPOCH: ClassVar[Mapping[str, Bound]] = {
        **OnlineDPOConfig.BY_EPOCH,
        "alpha": Bound("of 0 or more", lambda x: 0 <= x < inf),
    }

    alpha: float | list[float] | str = option(
        1e-5, "Weight of log pi of the reference's completion, or its values by epoch."
    )


@dataclass
class NashMDConfig(OnlineDPOConfig):
    """Settings of `NashMDTrainer`, with the names and defaults of TRL 1.13.

    `mixture_coef` may be a list with a value for each epoch, as `beta`, the weight of the KL.
    `kl_weight` is no setting of TRL.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **OnlineDPOConfig.UNSUPPORTED,
        **TWO_MODELS,
        "loss_type": "Nash-MD has no loss of pairs",
        "tied_pairs": "two even completions pull on the KL alone",
        "rollout_engine": NATIVE,
        "use_transformers_continuous_batching": NATIVE,
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **OnlineDPOConfig.CHOICES,
        "kl_weight": tuple(KL_WEIGHTS),
    }
    BY_EPOCH: ClassVar[Mapping[str, Bound]] = {
        **OnlineDPOConfig.BY_EPOCH,
        "mixture_coef": Bound("from 0 to 1", lambda x: 0 <= x <= 1),
    }
    PAPERS_HAVE: ClassVar[Mapping[str, object]] = {"kl_weight": "sequence"}
    SEMANTICS: ClassVar[Mapping[str, Mapping[str, object]]] = {PAPER: PAPERS_HAVE}

    mixture_coef: float | list[float] | str = option(
        0.5, "Weight of the reference in the mixture of the second completion, or by epoch."
    )
    kl_weight: str = choice("token", KL_WEIGHTS, "Log-ratio that weighs a token in the KL")
