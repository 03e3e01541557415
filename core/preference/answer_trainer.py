"""Base class of trainers of losses of given answers: their policy, rows and evaluation."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import torch
from accelerate.utils import set_seed
from datasets import Dataset, IterableDataset
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.configs.answer_config import AnswerConfig
from core.data.best_fit import Data
from core.data.streams import check_dataset
from core.forward.router import router_weight
from core.trainers.offline import OfflineTrainer
from core.trainers.setup import check_launch, check_streams, resolve_settings, without_dropout
from core.trainers.vocabulary import policy_and_tokenizer
from eval.errors import BadValue

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra


class Term(NamedTuple):
    """A term of the loss of a micro-batch: the sum of `losses` (B,) over that of `counts` (B,).

    In an optimizer step of several micro-batches the divisor is the sum over all of them.
    """

    losses: Tensor
    counts: Tensor


def check_finite(
    logps: Tensor, answers: Mapping[str, Tensor], tokenizer: PreTrainedTokenizerBase, model: str
) -> None:
    """Raise `BadValue` with prompt and completion of the first log-probability not finite.

    Args:
        logps: Log-probabilities (B,) of answers.
        answers: The prompts and completions.
        tokenizer: Decodes them.
        model: Name of the model in the message.
    """
    finite = logps.isfinite()
    if finite.all():
        return
    row = int(finite.int().argmin())
    prompt, completion = (
        tokenizer.decode(answers[f"{name}_ids"][row][answers[f"{name}_mask"][row] > 0])
        for name in ("prompt", "completion")
    )
    what = f"log-probability of {completion!r} after {prompt!r}"
    raise not_finite(what, f"{logps[row].item()} under the {model}")


def not_finite(what: str, value: object) -> BadValue:
    """Return the error for a number of a text that is not finite."""
    return BadValue(
        f"{what}: {value}, expected a finite number; lower learning_rate, or look for NaN in the "
        "weights"
    )


class AnswerTrainer(OfflineTrainer):
    """Trainer of losses of given answers; a subclass prepares, collates and scores them."""

    args: AnswerConfig
    _config: ClassVar[type[AnswerConfig]]

    def __init__(
        self,
        model: str | PreTrainedModel,
        args: AnswerConfig | None = None,
        data_collator: Callable[..., dict[str, Tensor]] | None = None,
        train_dataset: Dataset | IterableDataset | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        peft_config: "PeftConfig | None" = None,
        *,
        optimizer_cls_and_kwargs: tuple[type[Optimizer], dict[str, Any]] | None = None,
    ):
        check_dataset(train_dataset, "train_dataset")
        # Set before transformers does, as `prepared` reads it.
        self.args = args = resolve_settings(args, self._config, model, self._name)
        check_streams(args, train_dataset, eval_dataset)
        set_seed(args.seed)  # of the adapters
        policy, self.tokenizer = self.load(model, processing_class, peft_config)
        check_decoder(policy)
        if args.disable_dropout:
            without_dropout(policy)
        self.router_weight = router_weight(policy, args.router_weight)
        super().__init__(
            model=policy,
            args=args,
            processing_class=self.tokenizer,
            callbacks=callbacks or [],
            optimizers=optimizers,
            optimizer_cls_and_kwargs=optimizer_cls_and_kwargs,
            data_collator=cast(Any, data_collator or self.collator()),  # Any: transformers' type
            train_dataset=self.prepared(train_dataset),
            eval_dataset=self.evaluation_rows(eval_dataset),
        )
        check_launch(self)
        self.model_accepts_loss_kwargs = True  # the loss divides by the rows of the whole step

    def load(
        self,
        model: str | PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None,
        peft_config: "PeftConfig | None",
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """Return the model to train and its tokenizer, see `policy_and_tokenizer`."""
        return policy_and_tokenizer(model, tokenizer, peft_config, self.args)

    @abstractmethod
    def collator(self) -> Callable[..., dict[str, Tensor]]:
        """Return the function that makes batches of the rows that `prepared` returns."""

    @abstractmethod
    def batch_terms(
        self, model: nn.Module, inputs: dict[str, Tensor]
    ) -> tuple[list[Term], Tensor | None]:
        """Return the terms of the loss of a micro-batch, and its load-balancing loss if it has one.

        Metrics are recorded.

        Raises:
            BadValue: a number of a text is not finite.
        """

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Return the loss of a micro-batch, see `batch_terms` and `step_loss`.

        Raises:
            BadValue: outputs are requested, as logits are never whole.
        """
        if return_outputs:
            raise BadValue(f"{type(self).__name__} computes no logits: leave return_outputs out")
        terms, router_loss = self.batch_terms(model, inputs)
        return self.step_loss(terms, router_loss, num_items_in_batch)

    def gather_rows(self, rows: Tensor) -> Tensor:
        """Gather rows of a batch from all processes, without those repeated to fill it."""
        return cast(Tensor, self.accelerator.gather_for_metrics(rows))

    def step_loss(
        self,
        terms: Sequence[Term],
        router_loss: Tensor | None,
        num_items_in_batch: Tensor | int | None,
    ) -> Tensor:
        """Return the sum of the terms of the loss, each divided by its count in the optimizer step.

        The first term has a loss of each row. The load-balancing loss of experts, divided by the
        micro-batches of the step, is added.

        Args:
            terms: Terms of the loss of a micro-batch.
            router_loss: Load-balancing loss of the micro-batch, if any.
            num_items_in_batch: Counts of the terms; None for those of the micro-batch.
        """
        is_whole, balance = num_items_in_batch is not None, 0.0
        if router_loss is not None:
            balance = self.weigh_balance(router_loss, whole_step=is_whole)
        if self.mode == "eval":
            self.hold_out(terms, balance)
        averages = self.args.average_tokens_across_devices and is_whole
        processes = self.accelerator.num_processes if averages else 1
        return sum_of_means(terms, num_items_in_batch) * processes + balance

    @torch.no_grad()
    def hold_out(self, terms: Sequence[Term], balance: Tensor | float) -> None:
        """Add the terms of an evaluation batch, and the loss of experts, to the held-out loss."""
        of_rows, *further_terms = terms
        columns = [of_rows.losses + balance * of_rows.counts, of_rows.counts]
        columns += [column for term in further_terms for column in term]
        self._held_out.append(self.gather_rows(torch.stack(columns, 1).double()))

    def prediction_step(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        prediction_loss_only: bool,  # noqa: ARG002 - there is nothing else
        ignore_keys: list[str] | None = None,  # noqa: ARG002 - transformers' own
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return the loss of an evaluation batch alone."""
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad(), self.compute_loss_context_manager():
            return cast(Tensor, self.compute_loss(model, inputs)).detach(), None, None


def sum_of_means(terms: Sequence[Term], counts: Tensor | int | None) -> Tensor:
    """Return the sum of the terms, each divided by its count; None for their own counts."""
    own_counts = [term.counts.sum() for term in terms]
    divisors = own_counts if counts is None else torch.as_tensor(counts).reshape(-1)
    means = [term.losses.sum() / n.clamp(min=1) for term, n in zip(terms, divisors, strict=True)]
    return torch.stack(means).sum()


def check_decoder(model: PreTrainedModel) -> None:
    """Raise `BadValue` if a model is an encoder-decoder, which reads prompts and answers apart."""
    if model.config.is_encoder_decoder:
        raise BadValue(
            f"{type(model).__name__} is an encoder-decoder: expected a model that is a decoder"
        )
