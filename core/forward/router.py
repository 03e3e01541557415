"""The load-balancing loss of a mixture of experts, which is in the loss unless it is turned off."""

from typing import Any

from torch import Tensor
from transformers import PreTrainedModel

from eval.errors import BadValue


def router_weight(model: PreTrainedModel, coefficient: float | None) -> float:
    """The weight of the loss: the setting, or the model's own; 0 where there is no router.

    Raises:
        BadValue: a weight is set for a model without a router.
    """
    config: Any = model.config.get_text_config()  # Any: the fields depend on the architecture
    if hasattr(config, "output_router_logits"):
        own = getattr(config, "router_aux_loss_coef", 0.0)
        return float(own if coefficient is None else coefficient)
    if coefficient:
        raise BadValue(
            f"router_aux_loss_coef={coefficient}: {type(model).__name__} is no mixture of experts "
            "that gives what its router decides: leave it out"
        )
    return 0.0


def router_loss(outputs: Any) -> Tensor:  # Any: what a forward pass returns
    """How unevenly experts were used, over all tokens of a forward pass; arXiv 2101.03961 eq. 4.

    Raises:
        BadValue: the model does not compute it.
    """
    found = getattr(outputs, "aux_loss", None)
    if not isinstance(found, Tensor):
        raise BadValue(
            "the model gives no load-balancing loss of its router: set router_aux_loss_coef=0"
        )
    return found
