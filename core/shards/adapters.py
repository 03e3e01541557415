"""Adapters of peft: trained weights beside a frozen model."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast
from warnings import catch_warnings, filterwarnings

from transformers import PreTrainedModel

from core.configs.base import BaseConfig
from core.configs.script import ModelConfig
from eval.errors import BadValue

if TYPE_CHECKING:
    from peft import LoraConfig, PeftConfig  # of an extra


def add_adapters(
    model: PreTrainedModel,
    peft_config: "PeftConfig | None",
    args: BaseConfig,
    *,
    virtual_tokens: bool = False,
) -> PreTrainedModel:
    """Return the model with new adapters of `peft_config`, or the model itself if that is None.

    Raises:
        BadValue: the settings do not fit the model's head, which is checked without adapters, too;
            the model has adapters already or the config is not supported (`check_adapters`);
            adapters are on a tied head, or have a rank above that of their matrix; or peft refuses
            the config for this model.
    """
    if peft_config is None:
        check_head(model, args)
        return model
    check_adapters(model, peft_config, virtual_tokens=virtual_tokens)
    from peft import get_peft_model

    with catch_warnings():  # transformers has renamed an attribute that peft looks at
        filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        try:
            wrapped = cast(PreTrainedModel, get_peft_model(model, peft_config))
        except ValueError as error:
            raise BadValue(f"peft_config does not fit the model: {error}") from error
    check_head(wrapped, args)
    check_tied_head(wrapped, peft_config)
    check_ranks(wrapped)
    keywords = cast(Mapping[str, object], args.gradient_checkpointing_kwargs or {})
    if args.gradient_checkpointing and keywords.get("use_reentrant"):
        wrapped.enable_input_require_grads()  # no gradient would reach a reentrant checkpoint
    return wrapped


def check_head(model: PreTrainedModel, args: BaseConfig) -> None:
    """Refuse adapters on the head with Liger kernels, which would ignore them.

    Raises:
        BadValue: `use_liger_kernel` is set and the head has adapters.
    """
    if not (args.use_liger_kernel and has_adapters(model)):
        return
    from peft.tuners.tuners_utils import BaseTunerLayer

    if isinstance(model.get_output_embeddings(), BaseTunerLayer):
        raise BadValue(
            "use_liger_kernel=True with adapters on `lm_head` is not supported: its fused loss "
            "reads lm_head.weight, which the adapters do not change; take 'lm_head' out of "
            "target_modules, or set use_liger_kernel=False"
        )


def check_tied_head(model: PreTrainedModel, peft_config: "PeftConfig") -> None:
    """Refuse adapters on a head that shares its weight with the embeddings.

    Merging them would change the embeddings too, so that the saved model would be another one.

    Raises:
        BadValue: the head has adapters, is tied, and peft is not told to keep both tied.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer

    is_tied = getattr(model.config, "tie_word_embeddings", False)
    keeps_tied = getattr(peft_config, "ensure_weight_tying", False)
    if is_tied and not keeps_tied and isinstance(model.get_output_embeddings(), BaseTunerLayer):
        raise BadValue(
            "target_modules has 'lm_head', whose weight is that of the embeddings, which merged "
            "adapters would change too: leave it out, or set ensure_weight_tying=True"
        )


def check_ranks(model: PreTrainedModel) -> None:
    """Refuse adapters of a higher rank than their matrix has rows or columns.

    Raises:
        BadValue: a rank is too high.
    """
    for name, layer in model.named_modules():
        sides = (getattr(layer, "in_features", 0), getattr(layer, "out_features", 0))
        ranks: Mapping[str, int] = getattr(layer, "r", {}) if hasattr(layer, "lora_A") else {}
        for rank in ranks.values():
            if 0 < min(sides) < rank:
                raise BadValue(
                    f"r={rank}: {name} is a matrix of {sides[1]} x {sides[0]}, whose rank is at "
                    f"most {min(sides)}; set r to that or less, or take it out of target_modules"
                )


def check_adapters(model: object, peft_config: object, *, virtual_tokens: bool) -> None:
    """Refuse a `peft_config` that does not fit the model or the trainer.

    Raises:
        BadValue: peft is not installed, `peft_config` is no config of peft, it has virtual tokens
            that are not allowed, or the model already has adapters.
    """
    if find_spec("peft") is None:
        raise BadValue("peft_config: peft is not installed: pip install 'repro-papers[peft]'")
    from peft import PeftConfig

    if not isinstance(peft_config, PeftConfig):
        raise BadValue(
            f"peft_config is a {type(peft_config).__name__}: expected a peft.PeftConfig, such as "
            "LoraConfig"
        )
    if peft_config.is_prompt_learning and not virtual_tokens:
        raise BadValue(
            f"peft_config={type(peft_config).__name__}: virtual tokens are not supported, expected "
            "adapters of layers, such as LoraConfig"
        )
    if has_adapters(model):
        raise BadValue(
            "the model has adapters and peft_config asks for new ones: leave peft_config out to "
            "train them on, or pass model.merge_and_unload()"
        )


def get_peft_config(model_args: ModelConfig) -> "LoraConfig | None":
    """Return the `peft.LoraConfig` of a script's command line, None without `use_peft`.

    Raises:
        BadValue: peft is not installed.
    """
    if not model_args.use_peft:
        return None
    if find_spec("peft") is None:
        raise BadValue("use_peft: peft is not installed: pip install 'repro-papers[peft]'")
    from peft import LoraConfig

    return LoraConfig(
        task_type=model_args.lora_task_type,  # pyright: ignore[reportArgumentType] - by its name
        r=model_args.lora_r,
        lora_alpha=model_args.lora_alpha,
        lora_dropout=model_args.lora_dropout,
        target_modules=model_args.lora_target_modules,
        target_parameters=model_args.lora_target_parameters,
        modules_to_save=model_args.lora_modules_to_save,
        use_rslora=model_args.use_rslora,
        use_dora=model_args.use_dora,
    )


def has_adapters(model: object) -> bool:
    """Return whether the model has adapters of peft."""
    return hasattr(model, "get_base_model") or getattr(model, "_hf_peft_config_loaded", False)


def has_virtual_tokens(model: object) -> bool:
    """Return whether peft prepends trained vectors to each row."""
    return getattr(getattr(model, "active_peft_config", None), "is_prompt_learning", False)


def refuse_adapters(model: object, setting: str) -> None:
    """Refuse adapters for a feature that needs a separate reference model.

    Raises:
        BadValue: the model has adapters.
    """
    if has_adapters(model):
        raise BadValue(
            f"{setting} moves a reference, which with adapters shares its weights with the policy: "
            "leave it out, or train without peft_config"
        )
