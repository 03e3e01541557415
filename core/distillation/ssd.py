"""Simple self-distillation: the likelihood of unverified samples, arXiv 2604.01193."""

from typing import TYPE_CHECKING, cast

import torch
from accelerate.utils import set_seed
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from transformers.utils import logging

from core.collect.generation import Generated, pad_token_id
from core.collect.metrics import LossSums, sum_and_count
from core.collect.summary import length_summary
from core.data.best_fit import Data
from core.distillation.ssd_config import SSDConfig
from core.forward.batches import Batch, trained_mask
from core.forward.logps import token_logps
from core.losses.aggregate import global_token_mean
from core.rewards.completions import Completion, completion_text
from core.rollout.stops import end_tokens
from core.trainers.grpo import policy_and_tokenizer, rollout_datasets
from core.trainers.prompts import Rows
from core.trainers.publish import PAPERS
from core.trainers.sampling import SamplingTrainer
from core.trainers.setup import check_launch, resolve_settings

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

logger = logging.get_logger(__name__)
STUB = 10  # characters of a line from which on it is no stub


class SSDTrainer(SamplingTrainer):
    """Trainer of the likelihood of its own samples, with the interface of TRL's `SSDTrainer`.

    One completion of each prompt is sampled at `temperature`, `top_k` and `top_p`, and is not
    verified. The loss is the mean of -log pi over the completion tokens of an optimizer step.
    """

    args: SSDConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    rollout_func = None
    _name = "SSD"
    _tag_names = ("ssd",)
    _paper = PAPERS["SSD"]

    def __init__(
        self,
        model: str | PreTrainedModel,
        args: SSDConfig | None = None,
        train_dataset: Data | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        peft_config: "PeftConfig | None" = None,
    ):
        args = resolve_settings(args, SSDConfig, model, self._name)
        datasets = rollout_datasets(train_dataset, eval_dataset, args)
        set_seed(args.seed)
        policy, self.tokenizer = policy_and_tokenizer(model, processing_class, peft_config, args)
        self.eos_token_ids = end_tokens(policy, self.tokenizer)
        super().__init__(
            model=policy,
            args=args,
            processing_class=self.tokenizer,
            callbacks=callbacks,
            optimizers=optimizers,
            **datasets,
        )
        check_launch(self)
        if args.keeps_reference:
            self.keep_reference(adapters_off=peft_config is not None)
        self.prepare_engine()
        set_seed(args.seed, device_specific=True)

    def rollout(self, rows: Rows) -> Batch:
        """Sample a completion for each row, and leave out those that `filter_empty` names."""
        generated = self.generate([row["prompt"] for row in rows])
        batch = self.tensors(generated)
        is_active = batch["completion_mask"].any(1)
        self.record_lengths(generated)
        self.log_samples(rows, generated)
        share = self.gather(is_active.float()).mean().item()
        self.record({"ssd/active_sample_ratio": share})
        if not share:
            logger.warning(
                f"SSD: none of {len(rows)} completions is trained on; filter_empty leaves out "
                f"empty ones and single lines of fewer than {STUB} characters"
            )
        return batch

    def tensors(self, generated: Generated) -> Batch:
        """Return token ids and masks of a rollout; the mask is 0 on completions left out."""
        batch = super().tensors(generated)
        if self.args.filter_empty:
            are_whole = [[not is_stub(text)] for text in generated.completions]
            batch["completion_mask"] *= torch.tensor(are_whole, device=self.args.device)
        return batch

    def record_lengths(self, generated: Generated) -> None:
        """Record the lengths of all sampled completions, and count their tokens."""
        ends = [*self.eos_token_ids, pad_token_id(self.tokenizer)]
        lengths, tokens = length_summary(generated, ends, self.group, self.accelerator)
        self.record(lengths)
        count = len(generated.completion_ids) * self.accelerator.num_processes
        self.count_seen(count, tokens, 0.0)

    def learns(self, inputs: Batch) -> Tensor:
        """Return a mask (B,) of the completions that are not left out."""
        return trained_mask(inputs).any(1)

    def loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return the share of a piece in the loss of its optimizer step, and record its metrics."""
        losses, mask = -token_logps(model, inputs, 1.0).logps, trained_mask(inputs)
        total = sum_and_count(losses.detach().double(), mask)
        self.seen.append(LossSums({"ssd/cross_entropy_loss": total}, {}))
        return global_token_mean(losses, mask, self.scale(inputs))

    def held_out_weight(self, batch: Batch) -> Tensor:
        """Return the number of tokens of an evaluation batch, over all processes."""
        return cast(Tensor, batch["num_items_in_batch"]).double()


def is_stub(completion: Completion) -> bool:
    """Return whether a completion is empty, or one line of fewer than `STUB` characters."""
    text = completion_text(completion).strip()
    return not text or ("\n" not in text and len(text) < STUB)
