"""Loading of models that read a text in both directions and predict each of its tokens."""

from typing import Any

import torch
from transformers import AutoModelForMaskedLM, PreTrainedModel
from transformers.utils import logging

from core.configs.base import BaseConfig
from core.models.builds import is_encoder, untrained_seed
from core.models.fit import check_fit
from core.models.load import load_keywords, reach, reading
from core.models.nano import nano_encoder
from eval.errors import BadValue

logger = logging.get_logger(__name__)


def load_denoiser(name: str, **keywords: object) -> PreTrainedModel:
    """Load a masked language model; `nano-encoder-SEED` has random weights.

    Args:
        name: folder, hub id, or name of an untrained model.
        keywords: of `from_pretrained`.

    Raises:
        BadValue: it is no masked language model, or brings code that is not trusted.
        DamagedFile, MissingFile, UnknownName: see `load_policy`.
    """
    if is_encoder(name):
        return nano_encoder(untrained_seed(name) or 0)
    place = reach(name)
    options = {"trust_remote_code": False, **keywords}  # None would ask on the terminal
    with reading(name, place):
        loaded: Any = AutoModelForMaskedLM.from_pretrained(  # Any: a pair, with this keyword
            place, output_loading_info=True, **options
        )
    model, loading_info = loaded
    check_fit(name, model, loading_info["missing_keys"], loading_info["unexpected_keys"])
    return model


def denoising_model(model: str | PreTrainedModel, args: BaseConfig) -> PreTrainedModel:
    """Return the model after checking it, or load the named one, in 32 bits.

    Raises:
        BadValue: the model is causal.
    """
    if isinstance(model, str):
        keywords = {"dtype": torch.float32, "trust_remote_code": args.trust_remote_code}
        model = load_denoiser(model, **{**keywords, **load_keywords(args)})
    elif args.model_init_kwargs:
        logger.warning("model_init_kwargs are for a model given by name: this one stays as it is")
    if is_causal(model):
        raise BadValue(
            f"the model is a {type(model).__name__}, in which a token is predicted from those "
            "before it alone: give one that reads in both directions, as of AutoModelForMaskedLM"
        )
    return model


@torch.no_grad()
def is_causal(model: PreTrainedModel) -> bool:
    """Return whether the logits of a first token are the same whatever token follows."""
    was_training = model.training
    pair = torch.tensor([[0, 0], [0, 1]], device=model.device)
    output = model.eval()(input_ids=pair, attention_mask=torch.ones_like(pair))
    first, other = output.logits[:, 0]
    model.train(was_training)
    return torch.equal(first, other)
