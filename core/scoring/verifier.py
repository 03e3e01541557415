"""Verifiers, arXiv 2110.14168: a value at each token of a solution, of whether it is right."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from core.configs.verifier import VerifierConfig
from core.data.best_fit import Data
from core.data.labelled_solutions import SolutionEncoder
from core.data.labelled_steps import with_both_kinds
from core.data.sft import IGNORED
from core.forward.head import head_logps
from core.forward.head_scores import token_scores, unembedding
from core.losses.scoring import token_value
from core.models.scorers import VALUE_HEAD
from core.preference.collate import LABELS
from core.scoring.token_scores import TokenScoringTrainer
from core.trainers.publish import PAPERS

if TYPE_CHECKING:
    from peft import PeftConfig  # of an extra


class VerifierTrainer(TokenScoringTrainer):
    """Trainer of values of solutions, jointly with their likelihood.

    The loss of each token of a solution is the squared error of its value to the label of the
    solution, and `lm_coef` times its negative log-likelihood, for which the model's embeddings have
    to be its unembedding.
    """

    args: VerifierConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    _config = VerifierConfig
    head = VALUE_HEAD
    _name = "Verifier"
    _tag_names = ("verifier",)
    _paper = PAPERS["Verifier"]

    def load(
        self,
        model: str | PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None,
        peft_config: "PeftConfig | None",
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """Return the model with its head, and the tokenizer, see `ScoringTrainer`.

        Raises:
            BadValue: its embeddings are not its unembedding, which `lm_coef` reads.
        """
        scorer, scorer_tokenizer = super().load(model, tokenizer, peft_config)
        if self.args.lm_coef:
            unembedding(scorer)
        return scorer, scorer_tokenizer

    @classmethod
    def encoder(
        cls, args: VerifierConfig, tokenizer: PreTrainedTokenizerBase, *, all_labels: bool = True
    ) -> SolutionEncoder:
        """Return the function that encodes rows, with a label at each token of a solution."""
        del all_labels  # each is trained on
        return SolutionEncoder(tokenizer=tokenizer, max_length=args.max_length)

    def prepared(self, dataset: Data) -> Data:
        """Return rows of token ids and labels for the training; both labels have to occur."""
        return with_both_kinds(self.prepared_for_evaluation(dataset))

    def prepared_for_evaluation(self, dataset: Data) -> Data:
        """Return rows of token ids and labels."""
        return self.encoder(self.args, self.tokenizer).rows(dataset, self.args.dataset_num_proc)

    def scores(self, model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the value of each of M tokens of solutions (M, 1), or (M, 2) with its logarithm.

        The second column is the log-probability of the token.
        """
        if not self.args.lm_coef:
            return super().scores(model, inputs)
        mask = inputs["attention_mask"].bool()
        ids, labels = inputs["input_ids"][mask], inputs[LABELS][mask]
        outputs = token_scores(model, inputs["input_ids"], mask.long(), with_states=True)
        places = (labels != IGNORED).nonzero()[:, 0]
        states = outputs[places - 1, 1:]  # before each token, which is never the first of its row
        logps, *_ = head_logps(states, unembedding(model), ids[places], 1.0)
        return torch.stack([outputs[places, 0], logps], 1)

    def token_losses(
        self, scores: Tensor, labels: Tensor, inputs: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of each token, and whether its value is on the side of its label."""
        values, *logps = scores.unbind(1)
        losses = token_value(values, labels.to(values))
        self.record_mean("value_loss", losses)
        for logp in logps:  # at most one
            self.record_mean("lm_loss", -logp)
            losses = losses - self.args.lm_coef * logp
        del inputs
        return losses, (values >= 0.5) == labels.bool()

    @torch.no_grad()
    def record_mean(self, name: str, values: Tensor) -> None:
        """Record the mean of values (M,) of the tokens of all processes."""
        total, count = self.gathered([values.sum()[None], values.new_full((1,), len(values))]).sum(
            0
        )
        self.record({name: (total / count.clamp(min=1)).item()}, weight=count.item())
