"""Arguments of scripts with TRL's command line beside a trainer's settings: data and model."""

from dataclasses import dataclass, field

from core.configs.number_texts import convert_numbers
from core.option import option
from eval.errors import BadValue


@dataclass
class ScriptArguments:
    """Arguments of the dataset of a script."""

    dataset_name: str | None = option(None, "Dataset on the hub or in a folder.")
    dataset_config: str | None = option(None, "Its configuration, `name` of `load_dataset`.")
    dataset_train_split: str = option("train", "Split to train on.")
    dataset_test_split: str = option("test", "Split to evaluate on.")
    dataset_streaming: bool = option(False, "Stream the dataset.")
    ignore_bias_buffers: bool = option(False, "For models whose bias buffers break DDP.")


@dataclass
class DatasetConfig:
    """A dataset of a mixture: the arguments of `load_dataset`, columns, and its share."""

    path: str
    name: str | None = None
    data_dir: str | None = None
    data_files: str | list[str] | dict[str, str] | None = None
    split: str = "train"
    columns: list[str] | None = None
    fraction: float | None = None

    def __post_init__(self):
        convert_numbers(self)


@dataclass
class DatasetMixtureConfig:
    """Several datasets, one after the other, as a config file names them."""

    datasets: list[DatasetConfig] = field(
        default_factory=list, metadata={"help": "Datasets of the mixture."}
    )
    streaming: bool = option(False, "Stream the datasets.")
    test_split_size: float | None = option(None, "Share or number of rows to evaluate on.")

    def __post_init__(self):
        convert_numbers(self)
        self.datasets = [DatasetConfig(**d) if isinstance(d, dict) else d for d in self.datasets]


@dataclass
class ModelConfig:
    """Arguments of the model of a script, and of its adapters."""

    model_name_or_path: str | None = option(None, "Model on the hub or in a folder.")
    model_revision: str = option("main", "Branch, tag or commit of the model.")
    dtype: str | None = option(
        "float32", "Type of the weights.", choices=["auto", "bfloat16", "float16", "float32"]
    )
    attn_implementation: str | None = option(None, "Attention of transformers, such as 'sdpa'.")
    use_peft: bool = option(False, "Train adapters of peft.")
    lora_r: int = option(16, "Rank of the adapters.")
    lora_alpha: int = option(32, "Scale of the adapters.")
    lora_dropout: float = option(0.05, "Dropout before the adapters.")
    lora_target_modules: list[str] | None = option(None, "Modules that get adapters.")
    lora_target_parameters: list[str] | None = option(None, "Parameters that get adapters.")
    lora_modules_to_save: list[str] | None = option(None, "Modules trained whole.")
    lora_task_type: str = option("CAUSAL_LM", "Task of the adapted model.")
    use_rslora: bool = option(False, "Scale adapters by alpha over the root of the rank.")
    use_dora: bool = option(False, "Train magnitude and direction apart (DoRA).")
    load_in_8bit: bool = option(False, "Keep the model below the adapters in 8 bits.")
    load_in_4bit: bool = option(False, "Keep the model below the adapters in 4 bits.")
    bnb_4bit_quant_type: str = option("nf4", "Kind of 4 bits.", choices=["fp4", "nf4"])
    use_bnb_nested_quant: bool = option(False, "Quantise the constants of 4 bits too.")
    bnb_4bit_quant_storage: str | None = option(None, "Type in which 4 bits are stored.")

    def __post_init__(self):
        convert_numbers(self)
        if self.load_in_8bit and self.load_in_4bit:
            raise BadValue("load_in_8bit and load_in_4bit are both set: leave one of them out")
        modules = self.lora_target_modules
        if isinstance(modules, list) and len(modules) == 1:
            self.lora_target_modules = modules[0]  # pyright: ignore[reportAttributeAccessIssue] - 'all-linear' is a name of peft's


def get_quantization_config(model_args: ModelConfig) -> None:
    """Return None, which a trainer takes as `quantization_config`.

    Raises:
        BadValue: 4 or 8 bits are requested.
    """
    for name in ("load_in_4bit", "load_in_8bit"):
        if getattr(model_args, name):
            raise BadValue(f"{name}=True: quantised models are not supported, leave it out")
