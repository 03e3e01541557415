"""Online DPO, arXiv 2402.04792: the loss of DPO on pairs that the policy has just sampled."""

from collections.abc import Mapping

import torch
from torch import Tensor

from core.forward.batches import Batch
from core.losses.online import TIES, online_dpo_losses
from core.losses.paired_answers import Answers
from core.losses.preference import PreferenceLosses
from core.preference.online_trainer import OnlineTrainer
from core.preference.trainer import pair_metrics
from core.trainers.publish import PAPERS


class OnlineDPOTrainer(OnlineTrainer):
    """Trainer of pairs of the policy's completions, with the interface of TRL's `OnlineDPOTrainer`.

    `judge` compares two completions in place of rewards: it is called with `prompts`, `first` and
    `second`, lists of texts, and with the columns of the data, and returns the chances that the
    first ones are preferred. The likelier one is chosen; `tied_pairs` says what becomes of even
    ones.
    """

    _name = "Online DPO"
    _tag_names = ("online-dpo",)
    _paper = PAPERS["Online DPO"]

    def half_margin(self, margins: Tensor) -> Tensor:
        """Return 1/2 where the first completion has a higher reward than the second, or -1/2.

        `tied_pairs` says what equal rewards count.
        """
        halves = margins.sign() / 2
        return halves.where(margins != 0, TIES[self.args.tied_pairs].half)

    def losses(self, answers: Answers, inputs: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the losses of the pairs of a piece, and the values (n,) of each metric."""
        advantages = inputs["advantages"].to(answers.logps.dtype)
        result = online_dpo_losses(answers, advantages, self.args.loss_type, self.beta)
        return result.losses, {
            **self.metrics(answers, result, advantages),
            **self.score_metrics(answers, inputs),
        }

    def metrics(
        self, answers: Answers, result: PreferenceLosses, advantages: Tensor
    ) -> dict[str, Tensor]:
        """Return metrics of log-probabilities; the KL and the entropy leave padding out.

        Those of chosen and rejected answers are of the pairs that have a loss.
        """
        chosen, rejected = result.scores.chosen, result.scores.rejected
        rewards = [self.beta * side.ratio for side in (chosen, rejected)]
        of_pairs = pair_metrics(rewards, [chosen.logp, rejected.logp])
        has_loss = advantages[::2] != 0
        return {
            **{name: values[has_loss] for name, values in of_pairs.items()},
            "objective/kl": log_ratios(answers),
            "objective/entropy": -(answers.logps * answers.mask).sum(1),
            "beta": torch.full_like(chosen.logp, self.beta),
        }

    def score_metrics(self, answers: Answers, inputs: Batch) -> dict[str, Tensor]:
        """Return metrics of the rewards of completions and of their KL."""
        scores, penalties = inputs["scores"], -self.beta * log_ratios(answers)
        signs = inputs["advantages"][::2].sign()
        return {
            "objective/non_score_reward": penalties,
            "objective/rlhf_reward": scores + penalties,
            "objective/scores": scores,
            "objective/scores_margin": (scores[::2] - scores[1::2]) * signs,
        }


def log_ratios(answers: Answers) -> Tensor:
    """Return log(pi / pi_ref) of each answer (B,)."""
    return ((answers.logps - answers.ref_logps) * answers.mask).sum(1)
