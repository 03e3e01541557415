"""Base of the settings of preference trainers without a reference: CPO, ORPO and TPO."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from core.configs.pair_config import PairConfig
from core.losses.reference_free import Coefficients, ReferenceFree
from core.option import option

SMOOTHED_TOKENS = {"label_smoothing_factor": "it is of the labels of tokens"}
# Fields of TRL's CPO and ORPO that this project has no use for.
NOT_TAKEN: Mapping[str, str] = {
    **SMOOTHED_TOKENS,
    "max_completion_length": "it cuts what encoder-decoders write; set max_length",
    "generate_during_eval": "an evaluation samples nothing",
}
DECODERS: Mapping[str, tuple[object, ...]] = {"is_encoder_decoder": (None, False)}


@dataclass
class ReferenceFreeConfig(PairConfig):
    """Settings that the preference trainers without a reference share.

    Raises:
        BadValue: see `BaseConfig`, or `beta` or `label_smoothing` is out of range.
    """

    learning_rate: float = option(1e-6, "Initial learning rate of AdamW.")
    disable_dropout: bool = option(True, "Train without dropout.")
    dataset_num_proc: int | None = option(None, "Processes that prepare the dataset.")
    max_length: int | None = option(
        1024, "Longest prompt with an answer in tokens; longer ones are cut."
    )
    beta: float = option(0.1, "Factor of the gap of scores; 1/(2 beta) is the target of IPO.")

    def resolve(self) -> None:
        """Resolve the settings as of every trainer, and check those of the loss."""
        super().resolve()
        self.check_beta_and_smoothing()

    @property
    @abstractmethod
    def loss(self) -> ReferenceFree:
        """The loss of a pair."""

    @property
    @abstractmethod
    def coefficients(self) -> Coefficients:
        """The numbers of the loss."""

    @property
    @abstractmethod
    def likelihood_weight(self) -> float:
        """Weight of the negative log-likelihood that is added to the loss."""
