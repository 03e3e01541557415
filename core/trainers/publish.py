"""The model card in a trainer's output folder, and uploads to the Hugging Face hub."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, TypedDict, Unpack, cast

from huggingface_hub import ModelCard, ModelCardData
from huggingface_hub.errors import (
    HTTPError,  # pyright: ignore[reportPrivateImportUsage] - of a library whose name has changed
)
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.data.data_collator import DataCollator
from transformers.utils import logging

from core.data.best_fit import Data
from core.errors import HubError
from eval.errors import error_line

FOLDER = Path(__file__).parent
TEMPLATE = FOLDER / "templates" / "model_card.md"
# Papers of methods by the `_name` of their trainer.
PAPERS: Mapping[str, Mapping[str, str]] = tomllib.loads((FOLDER / "papers.toml").read_text("utf-8"))
ON_CARD = ("model_name", "dataset_name", "tags")
LIBRARIES = ("transformers", "torch", "datasets", "tokenizers")

logger = logging.get_logger(__name__)


class DataArguments(TypedDict, total=False):
    """Arguments of transformers' `Trainer` that are its data."""

    data_collator: DataCollator
    train_dataset: Data
    eval_dataset: Data | dict[str, Data] | None


class TrainerArguments(DataArguments, total=False):
    """Arguments of transformers' `Trainer` that trainers pass on, beside settings and callbacks."""

    model: PreTrainedModel
    processing_class: PreTrainedTokenizerBase
    compute_loss_func: Callable[..., Tensor] | None
    compute_metrics: Callable[..., dict[str, float]] | None
    optimizers: tuple[Optimizer | None, LambdaLR | None]
    optimizer_cls_and_kwargs: tuple[type[Optimizer], dict[str, Any]] | None
    preprocess_logits_for_metrics: Callable[..., Tensor] | None


@cache
def library_versions() -> Mapping[str, str]:
    """Return the installed versions of the libraries that a card names."""
    return {library: version(library) for library in LIBRARIES}


class PublishedTrainer(Trainer):
    """Trainer that writes a model card into its output folder, and uploads both if asked.

    A subclass describes its method with TRL's attributes: `_name`, `_tag_names`, and `_paper` with
    `title`, `id` (arXiv's) and `citation` (BibTeX).
    """

    _name: ClassVar[str] = ""
    _tag_names: ClassVar[Sequence[str]] = ()
    _paper: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        *,
        args: TrainingArguments,
        callbacks: list[TrainerCallback],
        **rest: Unpack[TrainerArguments],
    ):
        super().__init__(args=args, callbacks=callbacks, **rest)
        cast(PreTrainedModel, self.model).add_model_tags(list(self._tag_names))

    def create_model_card(  # pyright: ignore[reportIncompatibleMethodOverride] - TRL's
        self,
        model_name: str | None = None,
        dataset_name: str | None = None,
        tags: str | Sequence[str] | None = None,
    ) -> None:
        """Write the model card: base model, data, method, its paper and citation."""
        if not self.is_world_process_zero():
            return
        config = cast(PreTrainedModel, self.model).config
        base, dataset = hub_name(config.name_or_path), hub_name(dataset_name)
        extra_tags = [tags] if isinstance(tags, str) else tags or ()
        card = ModelCard.from_template(
            ModelCardData(
                base_model=base,
                datasets=dataset,
                library_name="transformers",
                model_name=model_name or self.card_name(),
                tags=list(dict.fromkeys(["generated_from_trainer", *extra_tags, *self._tag_names])),
            ),
            template_path=str(TEMPLATE),
            base_model=base,
            dataset=dataset,
            method=self._name,
            model_name=model_name or self.card_name(),
            paper=self._paper,
            versions=library_versions(),
        )
        card.save(self.output_folder / "README.md")

    @property
    def output_folder(self) -> Path:
        """Folder of the checkpoints, the model and its card."""
        return Path(str(self.args.output_dir))

    def card_name(self) -> str:
        """Return the last part of the hub name, or the name of the output folder."""
        return (self.args.hub_model_id or str(self.output_folder)).rstrip("/").split("/")[-1]

    def _save_checkpoint(self, model: nn.Module, trial: dict[str, object] | None) -> None:
        self.create_model_card()
        super()._save_checkpoint(model, trial)

    def init_hf_repo(self, token: str | None = None, private: bool | None = None) -> None:
        """Create the hub repository as transformers does, before training with `push_to_hub`.

        Raises:
            HubError: the hub cannot be reached or refuses.
        """
        with reaching_hub():
            super().init_hf_repo(token, private)

    def push_to_hub(self, *args: Any, **keywords: Any) -> Any:  # Any: transformers' own
        """Upload as transformers does; `dataset_name` and `tags` go on the model card.

        Raises:
            HubError: the hub cannot be reached or refuses; the model and its card are saved.
        """
        try:
            with reaching_hub():
                return super().push_to_hub(*args, **keywords)
        except HubError as error:
            self.save_model(_internal_call=True)
            self.create_model_card(**{k: v for k, v in keywords.items() if k in ON_CARD})
            later = f"`hf upload NAME {self.output_folder}` sends it later"
            raise HubError(
                f"{error.args[0]}; the model is in {self.output_folder}: {later}"
            ) from error

    def _finish_current_push(self) -> None:
        """Wait for uploads as transformers does, and warn about those that failed."""
        super()._finish_current_push()
        jobs = getattr(getattr(self, "push_in_progress", None), "jobs", ())
        for error in filter(None, (job.exception() for job in jobs if not job.cancelled())):
            logger.warning(f"a checkpoint was not uploaded: {error_line(error)}")


@contextmanager
def reaching_hub() -> Iterator[None]:
    """Convert errors on the way to the hub to a one-line `HubError`.

    Raises:
        HubError: the block raised an `OSError`, `HTTPError` or `ValueError`.
    """
    try:
        yield
    except (OSError, HTTPError, ValueError) as error:
        raise HubError(
            f"nothing was uploaded ({error_line(error)}): look at the connection, the name, and "
            "`hf auth whoami`"
        ) from error


def hub_name(name: str | None) -> str | None:
    """Return the name of a model or dataset on the hub, None for a local file or folder."""
    return name if name and not Path(name).exists() else None
