"""Supervised fine-tuning on texts, conversations, or prompts with completions."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from accelerate.utils import set_seed
from datasets import Dataset
from torch import Tensor, nn
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_utils import PredictionOutput

from core.configs.sft import SFTConfig
from core.data.sft import IGNORED, PadRight, tokenize_rows
from core.explain.phases import PhaseCallback, Phases
from core.losses.supervised import SUPERVISED
from core.trainers.adapters import adapted
from core.trainers.hooks import SFT_METHODS
from core.trainers.logps import token_entropy
from core.trainers.resume import ResumableTrainer
from core.trainers.setup import (
    check_processes,
    policy_model,
    policy_tokenizer,
    refuse,
    taken,
)
from eval.errors import BadValue


class SFTTrainer(ResumableTrainer):
    """Maximises the likelihood of the labelled tokens, with the face of TRL's `SFTTrainer`."""

    UNCALLED = SFT_METHODS
    _name = "SFT"
    _tag_names = ("sft",)

    args: SFTConfig

    def __init__(
        self,
        model: str | PreTrainedModel,
        args: SFTConfig | TrainingArguments | None = None,
        data_collator: Callable[..., dict[str, Tensor]] | None = None,
        train_dataset: Dataset | None = None,
        eval_dataset: Dataset | dict[str, Dataset] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        compute_loss_func: Callable[..., Tensor] | None = None,
        compute_metrics: Callable[..., dict[str, float]] | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Any, Any] = (None, None),  # Any: optimizer and scheduler
        optimizer_cls_and_kwargs: tuple[Any, Any] | None = None,
        preprocess_logits_for_metrics: Callable[..., Tensor] | None = None,
        quantization_config: Any = None,
        peft_config: Any = None,
        formatting_func: Callable[[dict[str, Any]], str] | None = None,
    ):
        refuse("SFTTrainer", quantization_config=quantization_config)
        if train_dataset is None:
            raise BadValue("SFTTrainer needs a train_dataset")
        if type(args) is TrainingArguments:
            args = SFTConfig(**{**args.to_dict(), "hub_token": args.hub_token})  # hidden by to_dict
        args = taken(args, SFTConfig, model, "SFT")
        set_seed(args.seed)  # of the adapters
        policy = adapted(policy_model(model, args), peft_config, args)
        tokenizer = policy_tokenizer(processing_class, policy, args, named=isinstance(model, str))
        self.phases = Phases()
        self._metrics = {"train": defaultdict(list), "eval": defaultdict(list)}
        self._tokens_seen = 0.0

        self.tokenizer, self.formatting_func = tokenizer, formatting_func
        train = self.prepared(train_dataset, args)
        super().__init__(
            model=policy,
            args=args,
            data_collator=data_collator
            or PadRight(cast(int, tokenizer.pad_token_id), args.padding),
            train_dataset=train.shuffle(seed=args.seed) if args.shuffle_dataset else train,
            eval_dataset=self.all_prepared(eval_dataset, args),
            processing_class=tokenizer,
            compute_loss_func=compute_loss_func,
            compute_metrics=compute_metrics,
            callbacks=[*(callbacks or []), PhaseCallback(self.phases)],
            optimizers=optimizers,
            optimizer_cls_and_kwargs=optimizer_cls_and_kwargs,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
        )
        check_processes(self)
        self.model_accepts_loss_kwargs = True  # the loss divides by the tokens of the whole step

    def prepared(self, dataset: Dataset, args: SFTConfig) -> Dataset:
        """Token ids and labels of a dataset in any of the forms that the trainer takes.

        Raises:
            BadValue: a formatting function would hide which tokens are the completion's.
        """
        write, columns = self.formatting_func, getattr(dataset, "column_names", None) or ()
        if write is not None and "input_ids" not in columns:
            pairs = {"prompt", "completion"} <= set(columns)
            if args.completion_only_loss or (pairs and args.completion_only_loss is None):
                raise BadValue(
                    "formatting_func makes one text of a row, which has no completion to train on "
                    "alone: set completion_only_loss=False, or leave formatting_func out"
                )
            field = args.dataset_text_field
            dataset = dataset.map(lambda row: {field: write(row)}, remove_columns=list(columns))
        return tokenize_rows(
            dataset,
            self.tokenizer,
            text_field=args.dataset_text_field,
            completion_only=args.completion_only_loss,
            max_length=args.max_length,
            workers=args.dataset_num_proc,
        )

    def all_prepared(self, datasets: Any, args: SFTConfig) -> Any:  # Any: one, several, a name
        """Prepare each of several datasets; None and the name of one are left as they are."""
        if datasets is None or isinstance(datasets, str):
            return datasets
        if isinstance(datasets, dict):
            return {name: self.prepared(dataset, args) for name, dataset in datasets.items()}
        return self.prepared(datasets, args)

    def evaluate(self, eval_dataset: Any = None, *args: Any, **keywords: Any) -> dict[str, float]:
        """As transformers does; a dataset given here is prepared like that of the trainer."""
        if isinstance(eval_dataset, dict):  # comes back here one by one
            return super().evaluate(eval_dataset, *args, **keywords)
        return super().evaluate(self.all_prepared(eval_dataset, self.args), *args, **keywords)

    def predict(self, test_dataset: Any, *args: Any, **keywords: Any) -> PredictionOutput:
        """As transformers does; the dataset is prepared like that of the trainer."""
        prepared: Any = self.prepared(test_dataset, self.args)  # Any: torch's type differs
        return super().predict(prepared, *args, **keywords)

    @property
    def mode(self) -> str:
        """'train' or 'eval', whichever the model is in."""
        return "train" if cast(nn.Module, self.model).training else "eval"

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:  # Any: the loss, or the loss and the model's outputs
        """Sum of the token losses over the labelled tokens of the optimizer step."""
        labels = inputs["labels"][:, 1:]
        mask = labels != IGNORED
        with self.phases("forward"):
            outputs = model(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                use_cache=False,
            )
            raw, targets = outputs.logits[:, :-1][mask], labels[mask]
            logits = raw if raw.dtype == torch.float64 else raw.float()
            total = logits.logsumexp(-1)
            logps = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1) - total
            if self.compute_loss_func is not None:
                loss = self.compute_loss_func(
                    outputs, inputs["labels"], num_items_in_batch=num_items_in_batch
                )
            else:
                items = mask.sum() if num_items_in_batch is None else num_items_in_batch
                losses = SUPERVISED[self.args.loss_type](logps)
                loss = losses.sum() / torch.as_tensor(items).clamp(min=1)
                if self.args.average_tokens_across_devices and num_items_in_batch is not None:
                    loss = loss * self.accelerator.num_processes
        self.record(logits, total, targets, inputs["attention_mask"])
        return (loss, outputs) if return_outputs else loss

    @torch.no_grad()
    def record(self, logits: Tensor, total: Tensor, targets: Tensor, attention: Tensor) -> None:
        """Entropy and accuracy over the labelled tokens of all processes, and tokens seen."""
        entropy = token_entropy(logits, total).sum()
        right = (logits.argmax(-1) == targets).sum()
        n = torch.tensor(len(targets), device=right.device)
        counts = torch.stack([entropy, right, n, attention.sum()]).float()
        totals = cast(Tensor, self.accelerator.reduce(counts, reduction="sum"))
        entropy, right, n, tokens = totals.tolist()
        metrics = self._metrics[self.mode]
        metrics["entropy"].append(entropy / max(n, 1))
        metrics["mean_token_accuracy"].append(right / max(n, 1))
        if self.mode == "train":
            self._tokens_seen += tokens
        metrics["num_tokens"] = [self._tokens_seen]

    def own_state(self) -> dict[str, Any]:
        """The tokens seen so far."""
        return {"tokens_seen": self._tokens_seen}

    def take_state(self, state: Mapping[str, Any]) -> None:
        """Go on counting."""
        self._tokens_seen = state.get("tokens_seen", 0.0)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add the means of what was recorded since the last log."""
        prefix = "" if self.mode == "train" else "eval_"
        metrics = self._metrics[self.mode]
        means = {prefix + k: sum(v) / len(v) for k, v in metrics.items() if v}
        metrics.clear()
        logs.update(means)
        super().log(logs, start_time)
