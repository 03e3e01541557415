"""Supervised fine-tuning on texts, conversations, or prompts with completions."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from accelerate.utils import set_seed
from datasets import Dataset, IterableDataset
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_utils import PredictionOutput
from transformers.utils import logging

from core.configs.sft import SFTConfig
from core.data.best_fit import LENGTHS
from core.data.collate import DataCollatorForLanguageModeling
from core.data.preparation import Data, Preparation
from core.data.streams import Passes, check_dataset, endless, is_stream
from core.forward.labelled import Labelled, labelled_logps, row_sums
from core.forward.router import router_loss, router_weight
from core.losses.supervised import SUPERVISED
from core.trainers.base import BaseTrainer
from core.trainers.setup import (
    check_dispatch,
    check_processes,
    check_streams,
    refuse,
    taken,
)
from core.trainers.uncalled_methods import SFT_METHODS
from core.trainers.vocabulary import policy_and_tokenizer
from eval.errors import BadValue

logger = logging.get_logger(__name__)


class SFTTrainer(BaseTrainer):
    """Maximises the likelihood of the labelled tokens, with the face of TRL's `SFTTrainer`."""

    UNCALLED = SFT_METHODS
    _name = "SFT"
    _tag_names = ("sft",)

    args: SFTConfig
    passes: Passes | None  # over the dataset of the training that runs, if it has no length

    def __init__(
        self,
        model: str | PreTrainedModel,
        args: SFTConfig | TrainingArguments | None = None,
        data_collator: Callable[..., dict[str, Tensor]] | None = None,
        train_dataset: Dataset | IterableDataset | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        compute_loss_func: Callable[..., Tensor] | None = None,
        compute_metrics: Callable[..., dict[str, float]] | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Any, Any] = (None, None),  # Any: optimizer and scheduler
        optimizer_cls_and_kwargs: tuple[Any, Any] | None = None,
        preprocess_logits_for_metrics: Callable[..., Tensor] | None = None,
        quantization_config: Any = None,
        peft_config: Any = None,
        formatting_func: Callable[[Any], str] | None = None,
    ):
        refuse("SFTTrainer", quantization_config=quantization_config)
        check_dataset(train_dataset, "train_dataset")
        if type(args) is TrainingArguments:
            args = SFTConfig(**{**args.to_dict(), "hub_token": args.hub_token})  # hidden by to_dict
        args = taken(args, SFTConfig, model, "SFT")
        check_functions(args, data_collator, compute_loss_func)
        loading: Any = args.accelerator_config  # Any: parsed from a mapping or a file
        if is_stream(train_dataset) and loading.dispatch_batches:
            logger.warning("dispatch_batches is set to False: each process reads the stream itself")
            loading.dispatch_batches = False
        check_streams(args, train_dataset, eval_dataset)
        set_seed(args.seed)  # of the adapters
        policy, tokenizer = policy_and_tokenizer(model, processing_class, peft_config, args)
        self._tokens_seen = 0.0
        self._only_loss = False  # whether nobody reads the outputs of this evaluation
        self.preparation = Preparation(
            args=args,
            tokenizer=tokenizer,
            formatting_func=formatting_func,
            own_collator=data_collator is not None,
        )
        padding = cast(int, tokenizer.pad_token_id)
        super().__init__(
            model=policy,
            args=args,
            data_collator=data_collator
            or DataCollatorForLanguageModeling(padding, args.joins_rows, args.padding),
            train_dataset=self.train_rows(train_dataset, args),
            eval_dataset=self.evaluation_rows(eval_dataset, args),
            processing_class=tokenizer,
            compute_loss_func=compute_loss_func,
            compute_metrics=compute_metrics,
            callbacks=callbacks or [],
            optimizers=optimizers,
            optimizer_cls_and_kwargs=optimizer_cls_and_kwargs,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
        )
        check_processes(self)
        self.router_weight = router_weight(policy, args.router_aux_loss_coef)
        self.model_accepts_loss_kwargs = True  # the loss divides by the tokens of the whole step

    @property
    def router_aux_loss_coef(self) -> float:
        """The weight of the load-balancing loss, under TRL's name."""
        return self.router_weight

    @property
    def aux_loss_enabled(self) -> bool:
        """Return whether the load-balancing loss is trained on, under the name in TRL."""
        return self.router_weight != 0.0

    def prepared(self, dataset: Data, *, packing: bool = False) -> Data:
        """Rows of token ids of a dataset in any of the forms that the trainer takes."""
        return self.preparation.rows(dataset, packing=packing)

    def train_rows(self, dataset: Data, args: SFTConfig) -> Data:
        """The rows that are trained on, in their order; documents are shuffled before packing."""
        if args.shuffle_dataset and args.packing:
            dataset = dataset.shuffle(seed=args.seed)
        rows = self.prepared(dataset, packing=args.packing)
        return rows.shuffle(seed=args.seed) if args.shuffle_dataset else rows

    def evaluation_rows(self, datasets: Any, args: SFTConfig) -> Any:  # Any: one, several, a name
        """The rows of each of several datasets; None and the name of one are left as they are."""
        if datasets is None or isinstance(datasets, str):
            return datasets
        packing = args.packing if args.eval_packing is None else args.eval_packing
        if isinstance(datasets, dict):
            return {name: self.prepared(data, packing=packing) for name, data in datasets.items()}
        return self.prepared(datasets, packing=packing)

    def get_train_dataloader(self) -> DataLoader:
        """As transformers does; a dataset without a length is read pass after pass."""
        loader = super().get_train_dataloader()
        return endless(loader) if is_stream(self.train_dataset) else loader

    def _prepare_for_training(
        self, max_steps: int, train_dataloader: DataLoader, resume_from_checkpoint: str | None
    ) -> Any:  # Any: transformers' own
        dataset = train_dataloader.dataset
        self.passes = dataset if isinstance(dataset, Passes) else None
        return super()._prepare_for_training(max_steps, train_dataloader, resume_from_checkpoint)

    def evaluate(self, eval_dataset: Any = None, *args: Any, **keywords: Any) -> dict[str, float]:
        """As transformers does; a dataset given here is prepared like that of the trainer."""
        if is_stream(eval_dataset):
            check_dispatch(self.args)
        if isinstance(eval_dataset, dict):  # comes back here one by one
            return super().evaluate(eval_dataset, *args, **keywords)
        return super().evaluate(self.evaluation_rows(eval_dataset, self.args), *args, **keywords)

    def predict(self, test_dataset: Any, *args: Any, **keywords: Any) -> PredictionOutput:
        """As transformers does; the dataset is prepared like that of the trainer, not packed."""
        return super().predict(self.prepared(test_dataset), *args, **keywords)

    def _set_signature_columns_if_needed(self) -> None:
        if self._signature_columns is None:
            super()._set_signature_columns_if_needed()
            self._signature_columns = [*cast(list[str], self._signature_columns), LENGTHS]

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:  # Any: the loss, or the loss and the model's outputs
        """Sum of the token losses over the labelled tokens of the optimizer step.

        Whatever else the data collator returned goes to the model. The load-balancing loss of
        experts is the mean over its micro-batches.

        Raises:
            BadValue: it returned no labels.
        """
        if "labels" not in inputs:
            raise BadValue(f"the data collator returned no 'labels': found {', '.join(inputs)}")
        rest = {key: value for key, value in inputs.items() if key != "labels"}
        logits = (return_outputs and not self._only_loss) or self.compute_loss_func is not None
        router = {"output_router_logits": True} if self.router_weight else {}
        with self.phases("forward"):
            found = labelled_logps(model, rest, inputs["labels"], with_logits=logits, **router)
            outputs = found.outputs
            balance = self.balance(outputs, whole_step=num_items_in_batch is not None)
            if self.compute_loss_func is not None:
                loss = self.compute_loss_func(
                    outputs, inputs["labels"], num_items_in_batch=num_items_in_batch
                )
            else:
                items = len(found.logps) if num_items_in_batch is None else num_items_in_batch
                losses = SUPERVISED[self.args.loss_type].loss(found.logps)
                loss = losses.sum() / torch.as_tensor(items).clamp(min=1)
                if self.mode == "eval":
                    self.hold_out(losses + balance, inputs["labels"])
            if self.args.average_tokens_across_devices and num_items_in_batch is not None:
                loss = loss * self.accelerator.num_processes
            if self.compute_loss_func is None:  # which is the whole loss where it is given
                loss = loss + balance
        self.record_tokens(found, tokens_of(inputs))
        return (loss, outputs) if return_outputs else loss

    def balance(self, outputs: Any, *, whole_step: bool) -> Tensor | float:
        """The weighted loss of the router, over the micro-batches of an optimizer step or alone."""
        if not self.router_weight:
            return 0.0
        found = router_loss(outputs)
        everywhere = cast(Tensor, self.accelerator.gather(found.detach())).mean().item()
        self.record({"aux_loss": everywhere})
        steps = self.current_gradient_accumulation_steps if whole_step else 1
        return self.router_weight * found / steps

    def prediction_step(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        prediction_loss_only: bool,
        ignore_keys: list[str] | None = None,
    ) -> Any:  # Any: as transformers types it
        """As transformers does; logits are made only for whoever reads them."""
        self._only_loss = prediction_loss_only
        try:
            return super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)
        finally:
            self._only_loss = False

    @torch.no_grad()
    def record_tokens(self, found: Labelled, read: Tensor) -> None:
        """Entropy and accuracy over the labelled tokens of all processes, and tokens seen."""
        n = read.new_tensor(len(found.logps))
        counts = torch.stack([found.entropy.sum(), found.right.sum(), n, read]).float()
        totals = cast(Tensor, self.accelerator.reduce(counts, reduction="sum"))
        entropy, right, n, tokens = totals.tolist()
        means = {"entropy": entropy / max(n, 1), "mean_token_accuracy": right / max(n, 1)}
        self.record(means, weight=n)
        if self.mode == "train":
            self._tokens_seen += tokens
        self.record_total("num_tokens", self._tokens_seen)

    @torch.no_grad()
    def hold_out(self, losses: Tensor, labels: Tensor) -> None:
        """Add the losses (M,) of an evaluation batch's labelled tokens to the held-out loss.

        Rows that were repeated to give all processes equally many are left out.
        """
        rows = row_sums(losses, labels)
        gather = self.gather if self.args.joins_rows else self.accelerator.gather_for_metrics
        self._held_out.append(cast(Tensor, gather(rows)))

    def own_state(self) -> dict[str, Any]:
        """The tokens seen so far, and the position in a dataset without a length."""
        return {"tokens_seen": self._tokens_seen, "position": self.passes and self.passes.position}

    def take_state(self, state: Mapping[str, Any]) -> None:
        """Go on counting, and reading a dataset without a length."""
        self._tokens_seen = state.get("tokens_seen", 0.0)
        position = state.get("position")
        if self.passes is not None and position is not None and not self.args.ignore_data_skip:
            self.passes.position = position
            self.passes.passed_over = self.state.global_step * self.args.gradient_accumulation_steps


def tokens_of(inputs: Mapping[str, Tensor]) -> Tensor:
    """How many tokens a batch has: those that a mask of rows keeps, else all."""
    mask = inputs.get("attention_mask")
    labels = inputs["labels"]
    return labels.new_tensor(labels.numel()) if mask is None or mask.dim() != 2 else mask.sum()


def check_functions(args: SFTConfig, data_collator: object, compute_loss_func: object) -> None:
    """Refuse settings that a function of the user's would make idle.

    Raises:
        BadValue: there is one.
    """
    if args.joins_rows and data_collator is not None:
        raise BadValue(
            "a data_collator decides itself how rows are joined: leave out packing and "
            "padding_free, or the collator"
        )
    if args.is_set("loss_type") and compute_loss_func is not None:
        raise BadValue(
            f"loss_type={args.loss_type!r} is set beside a compute_loss_func: leave one of them out"
        )
