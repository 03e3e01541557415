"""Supervised fine-tuning on texts, conversations, or prompts with completions."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from accelerate.utils import set_seed
from datasets import Dataset, IterableDataset
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainerCallback,
    TrainingArguments,
)
from transformers.data.data_collator import DataCollator
from transformers.utils import logging

from core.configs.sft import SFTConfig
from core.data.best_fit import LENGTHS
from core.data.collate import DataCollatorForLanguageModeling
from core.data.conversations import Row
from core.data.preparation import Data, Preparation
from core.data.streams import check_dataset, is_stream
from core.forward.labelled import Labelled, labelled_logps, row_sums
from core.forward.router import router_loss, router_weight
from core.losses.supervised import SUPERVISED, smooth_labels
from core.trainers.offline import OfflineTrainer
from core.trainers.publish import DataArguments
from core.trainers.setup import (
    check_processes,
    check_streams,
    refuse,
    resolve_settings,
)
from core.trainers.uncalled_methods import SFT_METHODS
from core.trainers.vocabulary import policy_and_tokenizer
from eval.errors import BadValue

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

logger = logging.get_logger(__name__)


class SFTTrainer(OfflineTrainer):
    """Trainer of the likelihood of labelled tokens, with the interface of TRL's `SFTTrainer`."""

    UNCALLED = SFT_METHODS
    _name = "SFT"
    _tag_names = ("sft",)

    args: SFTConfig
    _only_loss = False  # whether the outputs of this evaluation are unused

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
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        optimizer_cls_and_kwargs: tuple[type[Optimizer], dict[str, Any]] | None = None,
        preprocess_logits_for_metrics: Callable[..., Tensor] | None = None,
        quantization_config: object = None,
        peft_config: "PeftConfig | None" = None,
        formatting_func: Callable[[Row], str] | None = None,
    ):
        refuse("SFTTrainer", quantization_config=quantization_config)
        args = sft_settings(args, model, train_dataset, eval_dataset)
        check_functions(args, data_collator, compute_loss_func)
        set_seed(args.seed)  # of the adapters
        policy, tokenizer = policy_and_tokenizer(
            model, processing_class, peft_config, args, virtual_tokens=True
        )
        datasets = train_dataset, eval_dataset
        data = self.prepare_data(datasets, data_collator, formatting_func, tokenizer, args)
        super().__init__(
            model=policy,
            args=args,
            processing_class=tokenizer,
            compute_loss_func=compute_loss_func,
            compute_metrics=compute_metrics,
            callbacks=callbacks or [],
            optimizers=optimizers,
            optimizer_cls_and_kwargs=optimizer_cls_and_kwargs,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
            **data,
        )
        check_processes(self)
        self.router_weight = router_weight(policy, args.router_aux_loss_coef)
        self.model_accepts_loss_kwargs = True  # the loss divides by the tokens of the whole step

    @property
    def router_aux_loss_coef(self) -> float:
        """Weight of the load-balancing loss, under TRL's name."""
        return self.router_weight

    @property
    def aux_loss_enabled(self) -> bool:
        """True if the load-balancing loss is trained on; a name of TRL."""
        return self.router_weight != 0.0

    def prepared(self, dataset: Data, *, packing: bool = False) -> Data:
        """Return rows of token ids from a dataset in any format that the trainer takes."""
        return self.preparation.rows(dataset, packing=packing)

    def prepare_data(
        self,
        datasets: tuple[Data, Data | dict[str, Data] | None],
        collator: Callable[..., dict[str, Tensor]] | None,
        formatting_func: Callable[[Row], str] | None,
        tokenizer: PreTrainedTokenizerBase,
        args: SFTConfig,
    ) -> DataArguments:
        """Return prepared datasets and collator, under the names of transformers' arguments."""
        self.preparation = Preparation(
            args=args,
            tokenizer=tokenizer,
            formatting_func=formatting_func,
            own_collator=collator is not None,
        )
        train, evaluation = datasets
        padding = cast(int, tokenizer.pad_token_id)
        joined = DataCollatorForLanguageModeling(
            padding, args.joins_rows, pad_to_multiple_of=args.padding
        )
        return {
            "data_collator": cast(DataCollator, collator or joined),
            "train_dataset": self.train_rows(train, args),
            "eval_dataset": self.evaluation_rows(evaluation),
        }

    def train_rows(self, dataset: Data, args: SFTConfig) -> Data:
        """Return the training rows in order; documents are shuffled before packing."""
        if args.shuffle_dataset and args.packing:
            dataset = dataset.shuffle(seed=args.seed)
        rows = self.prepared(dataset, packing=args.packing)
        return rows.shuffle(seed=args.seed) if args.shuffle_dataset else rows

    def prepared_for_evaluation(self, dataset: Data) -> Data:
        """Return rows of token ids, packed as the training rows unless `eval_packing` is set."""
        args = self.preparation.args
        packing = args.packing if args.eval_packing is None else args.eval_packing
        return self.prepared(dataset, packing=packing)

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
    ) -> Tensor | tuple[Tensor, object]:
        """Return the loss of a micro-batch, and the model's outputs if `return_outputs` is set.

        The loss is the sum of the token losses divided by `num_items_in_batch`, the number of
        labelled tokens in the optimizer step. Without it, the divisor is the number of labelled
        tokens in `inputs`. The load-balancing loss of experts, divided by the number of
        micro-batches in the step, is added. If `average_tokens_across_devices` is set and
        `num_items_in_batch` is given, the token loss is multiplied by the number of processes. A
        `compute_loss_func` replaces the loss.

        All inputs except the labels go to the model. The tokens are added to the metrics.

        Raises:
            BadValue: the data collator returned no labels.
        """
        if "labels" not in inputs:
            raise BadValue(f"the data collator returned no 'labels': found {', '.join(inputs)}")
        features = {key: value for key, value in inputs.items() if key != "labels"}
        needs_logits = self.compute_loss_func is not None or self.args.label_smoothing_factor > 0
        with_logits = needs_logits or (return_outputs and not self._only_loss)
        router = {"output_router_logits": True} if self.router_weight else {}
        with self.phases("forward"):
            labelled = labelled_logps(
                model, features, inputs["labels"], with_logits=with_logits, **router
            )
            loss = self.batch_loss(labelled, inputs["labels"], num_items_in_batch)
        self.record_tokens(labelled, tokens_of(inputs))
        return (loss, labelled.outputs) if return_outputs else loss

    def batch_loss(
        self, labelled: Labelled, labels: Tensor, num_items: Tensor | int | None
    ) -> Tensor:
        """Return the loss of a batch with labels (B, T), divided by `num_items` if not None.

        A `compute_loss_func` of the user replaces it, with the load-balancing loss left out.
        """
        balance = self.balance(labelled.outputs, whole_step=num_items is not None)
        averages = self.args.average_tokens_across_devices and num_items is not None
        processes = self.accelerator.num_processes if averages else 1
        if self.compute_loss_func is not None:
            loss = self.compute_loss_func(labelled.outputs, labels, num_items_in_batch=num_items)
            return loss * processes
        losses = SUPERVISED[self.args.loss_type].loss(labelled.logps)
        if self.args.label_smoothing_factor > 0:
            logits = cast(Tensor, labelled.logits)
            losses = smooth_labels(losses, logits, self.args.label_smoothing_factor)
        if self.mode == "eval":
            self.hold_out(losses + balance, labels)
        count = len(labelled.logps) if num_items is None else num_items
        return losses.sum() / torch.as_tensor(count).clamp(min=1) * processes + balance

    def balance(self, outputs: object, *, whole_step: bool) -> Tensor | float:
        """Return the weighted load-balancing loss, divided by the micro-batches of a whole step."""
        if not self.router_weight:
            return 0.0
        return self.weigh_balance(router_loss(outputs), whole_step=whole_step)

    def prediction_step(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        prediction_loss_only: bool,
        ignore_keys: list[str] | None = None,
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Predict as transformers does; logits are computed only if they are used."""
        self._only_loss = prediction_loss_only
        try:
            return super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)
        finally:
            self._only_loss = False

    @torch.no_grad()
    def record_tokens(self, labelled: Labelled, token_count: Tensor) -> None:
        """Record entropy and accuracy over the labelled tokens of all processes, and totals."""
        n = token_count.new_tensor(len(labelled.logps))
        counts = torch.stack([labelled.entropy.sum(), labelled.right.sum(), n, token_count]).float()
        totals = cast(Tensor, self.accelerator.reduce(counts, reduction="sum"))
        entropy, right, n, tokens = totals.tolist()
        means = {"entropy": entropy / max(n, 1), "mean_token_accuracy": right / max(n, 1)}
        self.record(means, weight=n)
        self.count_tokens(tokens)

    @torch.no_grad()
    def hold_out(self, losses: Tensor, labels: Tensor) -> None:
        """Add the losses (M,) of an evaluation batch's labelled tokens to the held-out loss.

        Rows that were repeated to give all processes equally many are left out.
        """
        rows = row_sums(losses, labels)
        gather = self.gather if self.args.joins_rows else self.accelerator.gather_for_metrics
        self._held_out.append(cast(Tensor, gather(rows)))


def sft_settings(
    args: SFTConfig | TrainingArguments | None,
    model: str | PreTrainedModel,
    train_dataset: object,
    eval_dataset: object,
) -> SFTConfig:
    """Return the settings of a trainer, made to fit datasets without a length.

    Raises:
        BadValue: as `resolve_settings` and `check_streams` say.
    """
    check_dataset(train_dataset, "train_dataset")
    if type(args) is TrainingArguments:
        args = SFTConfig(**{**args.to_dict(), "hub_token": args.hub_token})  # hidden by to_dict
    settings = resolve_settings(args, SFTConfig, model, "SFT")
    if is_stream(train_dataset) and settings.data_loading.dispatch_batches:
        logger.warning("dispatch_batches is set to False: each process reads the stream itself")
        settings.data_loading.dispatch_batches = False
    check_streams(settings, train_dataset, eval_dataset)
    return settings


def tokens_of(inputs: Mapping[str, Tensor]) -> Tensor:
    """Return the number of tokens of a batch: those in its attention mask, else all."""
    mask = inputs.get("attention_mask")
    labels = inputs["labels"]
    return labels.new_tensor(labels.numel()) if mask is None or mask.dim() != 2 else mask.sum()


def check_functions(args: SFTConfig, data_collator: object, compute_loss_func: object) -> None:
    """Refuse settings that have no effect beside a user's function.

    Raises:
        BadValue: a collator decides on joining rows, or a loss function replaces `loss_type`.
    """
    if args.joins_rows and data_collator is not None:
        raise BadValue(
            "a data_collator decides itself how rows are joined: leave out packing and "
            "padding_free, or the collator"
        )
    for name in ("loss_type", "label_smoothing_factor"):
        if args.is_set(name) and compute_loss_func is not None:
            raise BadValue(
                f"{name}={getattr(args, name)!r} is set beside a compute_loss_func: leave one of "
                "them out"
            )
