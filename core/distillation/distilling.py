"""The trainers' base: completions, numbers of both models at each of their tokens, and the loss."""

from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
from accelerate.utils import set_seed
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from core.collect.generation import Generated, pad_token_id, sample
from core.collect.metrics import LossSums, sum_and_count
from core.collect.summary import length_summary
from core.data.best_fit import Data
from core.distillation.completed import (
    check_completions,
    given_completions,
    pairs_of_messages,
)
from core.distillation.divergence_config import MEANS, DivergenceConfig
from core.distillation.sampled_tokens import check_head
from core.distillation.teacher import OtherModel, TeacherAttributes, TeacherSource
from core.forward.batches import Batch, trained_mask
from core.forward.logps import frozen_logps
from core.forward.two_heads import entropy_of
from core.losses.divergence import divergence
from core.rollout.engines import make_engine
from core.rollout.seeds import seed_of
from core.rollout.stops import end_tokens
from core.shapes import BT
from core.shards.sharding import gather_weights
from core.trainers.grpo import policy_and_tokenizer, rollout_datasets
from core.trainers.prompts import Rows
from core.trainers.sampling import SamplingTrainer
from core.trainers.setup import check_launch, refuse, resolve_settings
from core.trainers.uncalled_methods import TEACHER_METHODS

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra

ENTROPY = 0  # column of a measure
OLD = "old_per_token_logps"
ON_POLICY = "on_policy"  # 1 for each completion that the student sampled (B,)


class DistillingTrainer(TeacherAttributes, SamplingTrainer):
    """Trainer that brings a student's probabilities of tokens near to those of a frozen teacher.

    The completions of a rollout are sampled by the student, sampled by the teacher, or given in the
    data. The loss is a divergence of each of their tokens, `beta` chooses which.
    """

    args: DivergenceConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings: ClassVar[type[DivergenceConfig]]
    UNCALLED = TEACHER_METHODS
    rollout_func = None

    def __init__(
        self,
        model: str | PreTrainedModel,
        teacher_model: str | PreTrainedModel | None = None,
        args: DivergenceConfig | None = None,
        data_collator: object = None,
        train_dataset: Data | None = None,
        eval_dataset: Data | dict[str, Data] | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        compute_metrics: object = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Optimizer | None, LambdaLR | None] = (None, None),
        preprocess_logits_for_metrics: object = None,
        peft_config: "PeftConfig | None" = None,
    ):
        refuse(
            type(self).__name__,
            data_collator=data_collator,
            compute_metrics=compute_metrics,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
        )
        args = resolve_settings(args, self.settings, model, self._name)
        train_pairs, eval_pairs = pairs_of_messages(train_dataset), pairs_of_messages(eval_dataset)
        datasets = rollout_datasets(cast(Data, train_pairs), eval_pairs, args)
        if args.reads_data:
            check_completions({"train_dataset": train_pairs, "eval_dataset": eval_pairs})
        source = self.teacher_source(teacher_model, model, args, is_adapted=peft_config is not None)
        set_seed(args.seed)
        policy, self.tokenizer = policy_and_tokenizer(model, processing_class, peft_config, args)
        self.shared = self.shared_tokens(source, policy)
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
        self.teacher = source.placed(self)
        self.prepare_engine()
        set_seed(args.seed, device_specific=True)

    def teacher_source(
        self,
        teacher: str | PreTrainedModel | None,
        student: str | PreTrainedModel,
        args: Any,  # Any: of the trainer's own class
        *,
        is_adapted: bool,  # noqa: ARG002 - for those who override it
    ) -> TeacherSource:
        """Return the source of the teacher; `is_adapted` if the student gets adapters."""
        return OtherModel(teacher, student, args)

    def shared_tokens(self, source: Any, policy: PreTrainedModel) -> int:  # Any: as above
        """Return the number of tokens that a completion may have, those of both heads.

        Raises:
            BadValue: see `TeacherSource`.
        """
        return source.shared_tokens(self.tokenizer, policy)

    def get_eval_dataloader(self, eval_dataset: Data | str | None = None) -> DataLoader:
        """Return the loader of rows of any form that the training data may have."""
        return super().get_eval_dataloader(pairs_of_messages(eval_dataset))

    def get_test_dataloader(self, test_dataset: Data) -> DataLoader:  # pyright: ignore[reportIncompatibleMethodOverride] - as above
        """Return the loader of rows of any form that the training data may have."""
        return super().get_test_dataloader(pairs_of_messages(test_dataset))

    def measure(self, logps: Tensor, teacher_logps: Tensor, tokens: Tensor) -> Tensor:  # noqa: ARG002 - for those who override it
        """Return numbers of each token (N, K) from both models' log-probabilities (N, V).

        The first is the student's entropy, without gradient, the others are for `token_losses`.
        """
        apart = divergence(logps, teacher_logps, self.args.divergence_beta)
        return torch.stack([entropy_of(logps), apart], dim=-1)

    def token_losses(self, numbers: Tensor, inputs: Batch) -> BT:  # noqa: ARG002 - as above
        """Return the loss of each token from the numbers of `measure` (B, T, K)."""
        return numbers[..., 1]

    def rollout(self, rows: Rows) -> Batch:
        """Collect the completion of each row, and record lengths."""
        is_own = self.is_sampled_by_student()
        generated = self.sampled(rows) if is_own else self.given_or_taught(rows)
        check_head(generated, self.shared)
        batch = self.tensors(generated)
        batch[ON_POLICY] = torch.full((len(rows),), float(is_own), device=self.args.device)
        ends = [*self.eos_token_ids, pad_token_id(self.tokenizer)]
        lengths, tokens = length_summary(generated, ends, self.group, self.accelerator)
        if not is_own:  # nobody's samples are said to be cut or alike
            lengths = {name: x for name, x in lengths.items() if name.endswith("_length")}
        self.record({**lengths, "on_policy_fraction": float(is_own)})
        self.count_seen(len(rows) * self.accelerator.num_processes, tokens, 0.0)
        self.log_samples(rows, generated)
        return batch

    def sampled(self, rows: Rows) -> Generated:
        """Return completions of the student."""
        return self.generate([row["prompt"] for row in rows])

    def is_sampled_by_student(self) -> bool:
        """Return whether the student samples the next rollout, alike on all processes.

        In evaluation it does if it samples all rollouts of the training.
        """
        if self.mode == "eval":
            return self.args.own_share == 1
        moment = (self.args.seed, "source", self.state.global_step, self._rollouts)
        return seed_of(*moment) < self.args.own_share * 2**63

    def given_or_taught(self, rows: Rows) -> Generated:
        """Return completions that the student did not sample: of the data, or of the teacher.

        In evaluation the completions of the data come first.
        """
        reads_data = self.args.reads_data or (self.mode == "eval" and "completion" in rows[0])
        if reads_data:
            limits = {name: getattr(self.args, name) for name in ("longest_prompt", "longest_row")}
            return given_completions(rows, self.tokenizer, template=self.args.template, **limits)
        prompts = [row["prompt"] for row in rows]
        name = "native" if self.args.use_vllm else self.args.rollout_engine
        with self.phases("rollout"), self.accelerator.autocast(), self.teacher.whole() as teacher:
            pad = pad_token_id(self.tokenizer)
            engine = make_engine(name, teacher, pad, self.args.batching_keywords)
            ends, seeds = self.eos_token_ids, self.seeds(prompts)
            return sample(teacher, self.tokenizer, prompts, self.args, ends, seeds, engine)

    def learns(self, inputs: Batch) -> Tensor:
        """Return a mask (B,) of the completions with a trained token."""
        return trained_mask(inputs).any(1)

    def loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return the share of a piece in the loss of its optimizer step, and record its metrics."""
        temperature = self.args.loss_temperature
        with self.accelerator.autocast():
            numbers = self.teacher.numbers(model, inputs, temperature, self.measure)
        losses, mask = self.token_losses(numbers, inputs), trained_mask(inputs)
        measured = {"entropy": numbers[..., ENTROPY]}
        measured |= dict.fromkeys(self.loss_names(inputs), losses.detach())
        sums = {name: sum_and_count(values.double(), mask) for name, values in measured.items()}
        further = self.further_sums(numbers, inputs)
        self.seen.append(LossSums({**sums, **further.totals}, further.by_row))
        return MEANS[self.args.normalize].mean(losses, mask, self.scale(inputs))

    def keep_old_logps(self, batches: list[Batch]) -> None:
        """Add the log-probabilities of the student that sampled to the batches of a rollout."""
        whole = gather_weights(self.policy(), self.frame)
        with self.phases("forward"), self.accelerator.autocast(), whole as policy:
            for batch in batches:
                learned, watched = self.pieces(batch)
                rows, temperature = [*watched, *learned], self.args.loss_temperature
                batch[OLD] = frozen_logps(policy, batch, temperature, rows).logps

    def loss_names(self, inputs: Batch) -> tuple[str, ...]:
        """Return the names under which the mean loss of a token is logged."""
        return ("on_policy_loss" if inputs[ON_POLICY].any() else "off_policy_loss",)

    def further_sums(self, numbers: Tensor, inputs: Batch) -> LossSums:  # noqa: ARG002 - for those who override it
        """Return the sums of further metrics of a piece, without gradient."""
        return LossSums({}, {})

    def held_out_weight(self, batch: Batch) -> Tensor:
        """Return the weight of an evaluation batch: its tokens for a mean over tokens."""
        if MEANS[self.args.normalize].weighs_tokens:
            return batch["num_items_in_batch"].double()
        return super().held_out_weight(batch)
