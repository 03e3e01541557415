"""Base of the settings of trainers of given answers."""

from typing import ClassVar

from core.configs.base import BaseConfig


class AnswerConfig(BaseConfig):
    """Settings that a trainer of given answers reads; a subclass declares the fields."""

    _VALID_DICT_FIELDS: ClassVar[list[str]] = [*BaseConfig._VALID_DICT_FIELDS, "model_init_kwargs"]

    beta: float
    dataset_num_proc: int | None
    disable_dropout: bool
    max_length: int | None

    @property
    def padding(self) -> int | None:
        """Multiple to which token widths are padded, or None."""
        multiple = getattr(self, "pad_to_multiple_of", None)
        return multiple if isinstance(multiple, int) else None

    @property
    def router_weight(self) -> float | None:
        """Weight of the load-balancing loss of experts; None for the model's own."""
        return getattr(self, "router_aux_loss_coef", None)
