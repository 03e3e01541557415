"""General online logit distillation: a teacher whose tokens may be others than the student's."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from core.collect.metrics import LossSums, sum_and_count
from core.distillation.aligned_losses import (
    alignment,
    at_ends,
    distances,
    in_rows,
    side,
    teacher_side,
)
from core.distillation.aligned_text import Reader
from core.distillation.distilling import ON_POLICY, DistillingTrainer
from core.distillation.divergence_config import MEANS
from core.distillation.gold_config import GOLDConfig
from core.distillation.teacher import OtherModel, head_rows
from core.forward.batches import Batch, trained_mask
from core.losses.transport import matches_of
from core.models.load import load_tokenizer
from core.rollout.stops import end_tokens
from core.trainers.publish import PAPERS
from eval.errors import BadValue


class GOLDTrainer(DistillingTrainer):
    """Trainer of a student of a teacher with any tokenizer, with the interface of TRL's.

    With `use_uld_loss` the teacher reads the text of a completion in tokens of its own. Groups of
    tokens of both sides that end at one byte are compared: by their sorted probabilities, or with
    `uld_use_hybrid_loss` entries of both vocabularies by D_beta and the others sorted. The negative
    log-likelihood beside it is of completions of the data alone. Without `use_uld_loss` the loss is
    that of GKD at the temperature of sampling.
    """

    args: GOLDConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings = GOLDConfig
    _name = "GOLD"
    _tag_names = ("gold",)
    _paper = PAPERS["GOLD"]

    def shared_tokens(self, source: OtherModel, policy: PreTrainedModel) -> int:
        """Return the number of tokens that a completion may have, and prepare to align texts.

        Raises:
            BadValue: the teacher has other tokens and `use_uld_loss` is not set, its tokenizer is
                unknown, or texts cannot be aligned, see `token_texts`.
        """
        args = cast(GOLDConfig, source.args)
        if not args.use_uld_loss:
            try:
                return super().shared_tokens(source, policy)
            except BadValue as error:
                raise BadValue(f"{error.args[0]}, or set use_uld_loss=True") from error
        chosen = args.teacher_tokenizer_name_or_path or source.name
        if not chosen:
            raise BadValue(
                "teacher_model is a model without a name: set teacher_tokenizer_name_or_path"
            )
        other = load_tokenizer(chosen, trust_code=args.trust_remote_code)
        compared = not args.uld_skip_student_eos, not args.uld_skip_teacher_eos
        ends, by_text = end_tokens(policy, self.tokenizer), args.use_extended_uld
        self.reader = Reader(self.tokenizer, other, ends, by_text, compared)
        if by_text:
            _ = self.reader.texts  # which may be refused
        shared = matches_of(self.tokenizer.get_vocab(), other.get_vocab())
        self.matches = shared if args.uld_use_hybrid_loss else None
        return head_rows(policy)

    def loss(self, model: nn.Module, inputs: Batch) -> Tensor:
        """Return the share of a piece in the loss of its optimizer step, and record its metrics."""
        args = self.args
        if not args.use_uld_loss:
            return super().loss(model, inputs)
        heats = args.uld_student_temperature, args.uld_teacher_temperature
        readings = self.reader.read_rows(inputs)
        with self.accelerator.autocast(), self.teacher.whole() as teacher:
            own = side(model, inputs, [reading.own for reading in readings], heats[0])
            other = teacher_side(teacher, readings, heats[1], self.reader.pad)
        found = distances(own, other, self.matches, args)
        nll = cross_entropy(own.logps * heats[0], own.tokens, reduction="none")
        self.record_sums({**found, **alignment(own, other)}, nll, inputs)
        mask, scale = trained_mask(inputs), self.scale(inputs)
        ends = in_rows(at_ends(torch.ones_like(found["loss"]), own), mask)
        apart = in_rows(at_ends(found["loss"], own), mask)
        of_data = in_rows(nll, mask) * (1 - inputs[ON_POLICY].unsqueeze(1))
        mean = MEANS[args.normalize].mean
        distance, likelihood = mean(apart, ends, scale), mean(of_data, mask, scale)
        return args.uld_distillation_weight * distance + args.uld_crossentropy_weight * likelihood

    def record_sums(self, values: dict[str, Tensor], nll: Tensor, inputs: Batch) -> None:
        """Record the metrics of a piece: means of groups, and of tokens of either side."""
        is_own = bool(inputs[ON_POLICY].any())
        values["on_policy_loss" if is_own else "off_policy_loss"] = values.pop("loss")
        if self.args.uld_crossentropy_weight and not is_own:
            values["cross_entropy"] = nll
        double = {name: x.detach().to(nll.device).double() for name, x in values.items()}
        sums = {name: sum_and_count(x, torch.ones_like(x)) for name, x in double.items()}
        self.seen.append(LossSums(sums, {}))
