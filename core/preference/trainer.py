"""Base class of trainers of preference pairs: data, reference, batches and metrics."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from accelerate.utils import set_seed
from datasets import Dataset, IterableDataset, concatenate_datasets
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.configs.dpo import DPOConfig
from core.data.best_fit import Data
from core.data.pairs import PAIR_COLUMNS, REF_COLUMNS, WIN_COLUMNS, tokenize_pairs
from core.data.streams import check_dataset, is_stream
from core.forward.answers import AnswerTokens, answer_tokens
from core.forward.logps import evaluating
from core.forward.router import router_weight
from core.losses.preference import Answers, Pairs, PreferenceLosses, sums_of
from core.preference.collate import LABELS, PairCollator
from core.shards.adapters import refuse_adapters
from core.shards.sharding import gather_weights, spread_weights
from core.trainers.offline import OfflineTrainer
from core.trainers.setup import (
    check_launch,
    check_streams,
    refuse,
    resolve_settings,
    without_dropout,
)
from core.trainers.vocabulary import policy_and_tokenizer
from eval.errors import BadValue

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

HALVES = ("chosen", "rejected")


class PreferenceTrainer(OfflineTrainer):
    """Trainer of losses of preference pairs; a subclass says what the loss of a pair is."""

    args: DPOConfig

    def __init__(
        self,
        model: str | PreTrainedModel,
        ref_model: PreTrainedModel | None = None,
        args: DPOConfig | None = None,
        data_collator: Callable[..., dict[str, Tensor]] | None = None,
        train_dataset: Dataset | IterableDataset | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        compute_metrics: Callable[..., dict[str, float]] | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        quantization_config: object = None,
        peft_config: "PeftConfig | None" = None,
    ):
        name = type(self).__name__
        refuse(name, quantization_config=quantization_config, compute_metrics=compute_metrics)
        check_dataset(train_dataset, "train_dataset")
        # Set before transformers does, as `prepared` reads it.
        self.args = args = resolve_settings(args, DPOConfig, model, self._name)
        check_streams(args, train_dataset, eval_dataset)
        check_reference(ref_model, model)
        set_seed(args.seed)  # of the adapters
        policy, self.tokenizer = policy_and_tokenizer(model, processing_class, peft_config, args)
        if args.disable_dropout:
            without_dropout(policy)
        self.router_weight = router_weight(policy, args.router_aux_loss_coef)
        collator = PairCollator(cast(int, self.tokenizer.pad_token_id), args.padding)
        super().__init__(
            model=policy,
            args=args,
            processing_class=self.tokenizer,
            callbacks=callbacks or [],
            optimizers=optimizers,
            data_collator=cast(Any, data_collator or collator),  # Any: transformers' own type
            train_dataset=self.prepared(train_dataset),
            eval_dataset=self.evaluation_rows(eval_dataset),
        )
        check_launch(self)
        self.model_accepts_loss_kwargs = True  # the loss divides by the pairs of the whole step
        self.take_reference(ref_model, has_new_adapters=peft_config is not None)

    @abstractmethod
    def pair_losses(self, pairs: Pairs) -> PreferenceLosses:
        """Return the loss of each pair of a micro-batch; a method to override."""

    def take_reference(self, ref_model: PreTrainedModel | None, *, has_new_adapters: bool) -> None:
        """Set up the frozen reference: the given model, else the policy as it starts.

        New adapters are off in it. Log-probabilities that are computed beforehand are added to the
        datasets.
        """
        if ref_model is None:
            self.keep_reference(adapters_off=has_new_adapters)
        else:
            if self.args.disable_dropout:
                without_dropout(ref_model)
            frozen = cast(nn.Module, ref_model.eval().requires_grad_(False))
            self.ref_model = frozen.to(self.args.device)
            if self.frame is not None:
                spread_weights(self.ref_model, self.args.device)
        if self.args.sync_ref_model:
            refuse_adapters(self.policy(), "sync_ref_model=True")
            self.move_reference()
        if self.args.precompute_ref_log_probs:
            self.train_dataset = self.with_reference(self.train_dataset)
            datasets = self.eval_dataset
            self.eval_dataset = (
                {name: self.with_reference(data) for name, data in datasets.items()}
                if isinstance(datasets, dict)
                else datasets and self.with_reference(datasets)
            )

    def prepared(self, dataset: Data) -> Data:
        """Return rows of token ids from a dataset of pairs, see `tokenize_pairs`."""
        return tokenize_pairs(
            dataset,
            self.tokenizer,
            max_length=self.args.max_length,
            truncation=self.args.truncation_mode,
            workers=self.args.dataset_num_proc,
            shares=WIN_COLUMNS if self.args.first_loss(lambda row: row.needs_wins) else (),
        )

    def with_reference(self, dataset: Data) -> Data:
        """Return a dataset with the reference's log-probabilities of both answers.

        Raises:
            BadValue: the dataset has no length.
        """
        if is_stream(dataset):
            raise BadValue(
                "precompute_ref_log_probs=True with an IterableDataset, which cannot be read "
                "beforehand: leave it out"
            )
        size = self.args.precompute_ref_batch_size or self.args.per_device_train_batch_size
        loader = DataLoader(dataset, batch_size=size, collate_fn=cast(Any, self.data_collator))
        columns = [
            self.gather_pairs(torch.stack(self.reference_sums(batch), dim=1))
            for batch in self.accelerator.prepare(loader)
        ]
        sums = torch.cat(columns).cpu()
        by_name = {name: sums[:, i].tolist() for i, name in enumerate(REF_COLUMNS)}
        return concatenate_datasets([dataset, Dataset.from_dict(by_name)], axis=1)

    def gather_pairs(self, rows: Tensor) -> Tensor:
        """Gather rows of pairs from all processes, without those repeated to fill a batch."""
        return cast(Tensor, self.accelerator.gather_for_metrics(rows))

    @torch.no_grad()
    def reference_sums(self, batch: Mapping[str, Tensor]) -> list[Tensor]:
        """Return the reference's log-probabilities (B,) of chosen and rejected answers."""
        whole = gather_weights(self.reference(), self.frame)
        with self.accelerator.autocast(), whole as reference, evaluating(reference):
            logps = answer_tokens(reference, tokens_of(batch)).logps
        masks = batch["completion_mask"]
        halves = zip(logps.chunk(2), masks.chunk(2), strict=True)
        answers = [Answers(logps=x, ref_logps=x, mask=mask) for x, mask in halves]
        return sums_of(Pairs(chosen=answers[0], rejected=answers[1]), self.args.ld_alpha)[1]

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Return the sum of the losses of the pairs divided by those of the optimizer step.

        Without `num_items_in_batch`, the divisor is the number of pairs in `inputs`. The
        load-balancing loss of experts, divided by the micro-batches of the step, is added.

        Raises:
            BadValue: outputs are requested, which are never whole.
        """
        if return_outputs:
            raise BadValue(f"{type(self).__name__} computes no logits: leave return_outputs out")
        with self.phases("forward"):
            tokens = answer_tokens(
                model,
                tokens_of(inputs),
                with_squares=self.args.use_weighting,
                with_router=bool(self.router_weight),
            )
        with self.phases("reference"):
            if all(name in inputs for name in REF_COLUMNS):
                references = [inputs[name].to(tokens.logps.dtype) for name in REF_COLUMNS]
            else:
                references = self.reference_sums(inputs)
        with self.phases("forward"):
            result = self.pair_losses(as_pairs(tokens, inputs, references))
        self.record_pairs(result, tokens, inputs)
        losses, balance = result.losses, 0.0
        if tokens.router_loss is not None:
            is_whole = num_items_in_batch is not None
            balance = self.weigh_balance(tokens.router_loss, whole_step=is_whole)
        if self.mode == "eval":
            rows = torch.stack([losses.detach() + balance, torch.ones_like(losses)], 1)
            self._held_out.append(self.gather_pairs(rows.double()))
        whole_step = self.args.average_tokens_across_devices and num_items_in_batch is not None
        processes = self.accelerator.num_processes if whole_step else 1
        count = len(losses) if num_items_in_batch is None else num_items_in_batch
        return losses.sum() / torch.as_tensor(count).clamp(min=1) * processes + balance

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
            return self.compute_loss(model, inputs).detach(), None, None

    @torch.no_grad()
    def record_pairs(
        self, result: PreferenceLosses, tokens: AnswerTokens, inputs: Mapping[str, Tensor]
    ) -> None:
        """Record rewards, log-probabilities and token statistics over all processes."""
        sides = (result.scores.chosen, result.scores.rejected)
        rewards = [self.args.beta * side.ratio for side in sides]
        columns = [*rewards, (rewards[0] > rewards[1]).to(rewards[0].dtype)]
        columns += [rewards[0] - rewards[1], *(side.logp for side in sides)]
        rows = self.gather_pairs(torch.stack(columns, 1).double())
        names = [*(f"rewards/{name}" for name in HALVES), "rewards/accuracies", "rewards/margins"]
        names += [f"logps/{name}" for name in HALVES]
        self.record(dict(zip(names, rows.mean(0).tolist(), strict=True)), weight=len(rows))
        self.record_tokens(tokens, inputs)

    def record_tokens(self, tokens: AnswerTokens, inputs: Mapping[str, Tensor]) -> None:
        """Record entropy, accuracy and mean logits over the answers' tokens of all processes."""
        mask = inputs["completion_mask"]
        halves = [half.sum() for half in mask.chunk(2)]
        logits = [half.sum() for half in tokens.mean_logits.chunk(2)]
        right = tokens.right.chunk(2)[0].sum()
        seen = mask.sum() + inputs["prompt_mask"].sum()
        sums = torch.stack([tokens.entropy.sum(), right, *logits, *halves, seen]).double()
        entropy, right, *totals = cast(
            Tensor, self.accelerator.reduce(sums, reduction="sum")
        ).tolist()
        chosen, rejected = (max(count, 1.0) for count in totals[2:4])
        self.record({"entropy": entropy / (chosen + rejected)}, weight=chosen + rejected)
        accuracy = {"mean_token_accuracy": right / chosen, "logits/chosen": totals[0] / chosen}
        self.record(accuracy, weight=chosen)
        self.record({"logits/rejected": totals[1] / rejected}, weight=rejected)
        self.count_tokens(totals[4])

    def _set_signature_columns_if_needed(self) -> None:
        self._signature_columns = [*PAIR_COLUMNS, *REF_COLUMNS, *WIN_COLUMNS]


def check_reference(ref_model: PreTrainedModel | None, model: str | PreTrainedModel) -> None:
    """Raise `BadValue` if the reference is the model that is trained."""
    if ref_model is not None and ref_model is model:
        raise BadValue(
            "`model` and `ref_model` cannot be the same object: leave ref_model out, the "
            "reference is a copy then"
        )


def tokens_of(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the columns of prompts and completions of a batch."""
    skipped = {LABELS, *REF_COLUMNS, *WIN_COLUMNS}
    return {name: rows for name, rows in batch.items() if name not in skipped}


def as_pairs(tokens: AnswerTokens, batch: Mapping[str, Tensor], references: list[Tensor]) -> Pairs:
    """Return the pairs of a batch whose first half of rows are the chosen answers."""
    columns = (tokens.logps, batch["completion_mask"], tokens.log_sum_squares)
    halves = zip(*(column.chunk(2) for column in columns), strict=True)
    win_rates = (batch.get(name) for name in WIN_COLUMNS)
    chosen, rejected = (
        Answers(
            logps=logps, ref_logps=reference, mask=mask, log_sum_squares=squares, win_rates=wins
        )
        for (logps, mask, squares), reference, wins in zip(
            halves, references, win_rates, strict=True
        )
    )
    return Pairs(chosen=chosen, rejected=rejected)
