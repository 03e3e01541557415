"""The load-balancing loss of a mixture of experts, which is trained on unless it is turned off."""

from typing import Any

from torch import Tensor
from transformers import PreTrainedModel
from transformers.utils import logging

from eval.errors import BadValue

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")  # as architectures call them

logger = logging.get_logger(__name__)


def router_weight(model: PreTrainedModel, coefficient: float | None) -> float:
    """Return the weight of the load-balancing loss: the setting, else the model's own, else 0.

    A mixture of experts that would be trained without the loss, though no setting turns it off,
    causes a warning.

    Raises:
        BadValue: a weight is set for a model without a router, or with one whose load-balancing
            loss it does not compute.
    """
    config: Any = model.config.get_text_config()  # Any: the fields depend on the architecture
    name, decides = type(model).__name__, hasattr(config, "output_router_logits")
    if coefficient and not decides:
        raise BadValue(
            f"router_aux_loss_coef={coefficient}: {name} is not a Mixture-of-Experts model that "
            "returns its router logits: leave it out"
        )
    if coefficient and not hasattr(config, "router_aux_loss_coef"):
        raise BadValue(
            f"router_aux_loss_coef={coefficient}: {name} does not compute the load-balancing loss "
            "of its router: set router_aux_loss_coef=0, or leave it out"
        )
    model_weight = getattr(config, "router_aux_loss_coef", 0.0) if decides else 0.0
    weight = float(model_weight if coefficient is None else coefficient)
    if coefficient is None and not weight and has_experts(config):
        logger.warning_once(
            f"{name} is a mixture of experts without a weight of its load-balancing loss: it is "
            "trained without; set router_aux_loss_coef, to 0 if that is meant"
        )
    return weight


def has_experts(config: object) -> bool:
    """Return whether a model with this config has several experts."""
    return any((getattr(config, name, None) or 0) > 1 for name in EXPERTS)


def router_loss(outputs: object) -> Tensor:
    """Return the load-balancing loss over all tokens of a forward pass; arXiv 2101.03961 eq. 4.

    Raises:
        BadValue: the model does not compute the loss.
    """
    loss = getattr(outputs, "aux_loss", None)
    if not isinstance(loss, Tensor):
        raise BadValue(
            "the model gives no load-balancing loss of its router: set router_aux_loss_coef=0"
        )
    return loss
