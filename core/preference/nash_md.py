"""Nash-MD, arXiv 2312.00886: the policy plays against a mixture with its reference."""

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor

from core.collect.generation import Generated, sample
from core.collect.metrics import Metrics
from core.forward.batches import Batch
from core.losses.online import nash_md_losses
from core.losses.paired_answers import Answers
from core.preference.online_config import NashMDConfig
from core.preference.online_dpo import log_ratios
from core.preference.online_trainer import OnlineTrainer, alternate, end_shares
from core.rewards.completions import Completion
from core.rollout.merged_adapters import unwrap_peft
from core.rollout.native.mixture import MixtureEngine
from core.trainers.prompts import Rows
from core.trainers.publish import PAPERS
from eval.errors import BadValue


class NashMDTrainer(OnlineTrainer):
    """Trainer of the policy's completions against those of a mixture with the reference.

    It has the interface of `NashMDTrainer` of TRL 1.13, and a `judge` as `OnlineDPOTrainer`; of
    rewards, P(y > y') is the logistic function of their difference. The other completion is sampled
    from pi^(1 - mixture_coef) pi_ref^mixture_coef / Z of each token.
    """

    args: NashMDConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    settings = NashMDConfig
    rows_together = 1  # the loss reads the policy's completions alone
    _name = "Nash-MD"
    _tag_names = ("nash-md",)
    _paper = PAPERS["Nash-MD"]

    @property
    def mixture_coef(self) -> float:
        """Weight of the reference in the mixture in this epoch."""
        return self.at_epoch("mixture_coef")

    def half_margin(self, margins: Tensor) -> Tensor:
        """Return P(first over second) - 1/2 of each pair.

        A judge gives P and 1 - P, half of whose difference it is; rewards give sigma(difference).
        """
        return margins / 2 if self.is_judged else margins.sigmoid() - 0.5

    def generate(self, prompts: list[Completion]) -> Generated:
        """Sample the first completion of each pair from the policy, the second from the mixture.

        Raises:
            BadValue: see `sample` and `sample_mixture`.
        """
        seeds = self.seeds(prompts)
        with self.phases("rollout"):
            own = self.sample_from(self.policy(), prompts[::2], seeds[::2])
            others = self.sample_mixture(prompts[1::2], seeds[1::2])
        return alternate(own, others)

    def sample_mixture(self, prompts: list[Completion], seeds: list[int]) -> Generated:
        """Sample one completion per prompt from the mixture of policy and reference.

        Raises:
            BadValue: weights are sharded over processes, which gather one model at a time.
        """
        if self.frame is not None:
            raise BadValue(
                "NashMDTrainer samples from two models at a time, whose weights are sharded here: "
                "expected whole weights on each process, such as with DDP or ZeRO-2"
            )
        policy, reference = (unwrap_peft(m) for m in (self.policy(), self.reference()))
        with self.accelerator.autocast():
            engine = MixtureEngine(policy, reference, self.mixture_coef)
            return sample(
                policy, self.tokenizer, prompts, self.args, self.eos_token_ids, seeds, engine
            )

    def rollout(self, rows: Rows) -> Batch:
        """Collect and score pairs; return the policy's completions with the others' rewards."""
        batch = super().rollout(rows)
        own = {name: values[::2] for name, values in batch.items()}
        return {**own, "other_scores": batch["scores"][1::2]}

    def losses(self, answers: Answers, inputs: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the losses of the policy's completions, and the values (n,) of each metric."""
        advantages = inputs["advantages"].to(answers.logps.dtype)
        result = nash_md_losses(answers, advantages, self.beta, self.args.kl_weight)
        ratios, logps = log_ratios(answers), (answers.logps * answers.mask).sum(1)
        return result.losses, {
            "loss/kl": ratios,
            "loss/score": result.score,
            "objective/entropy": -logps,
            "logps/chosen": logps,
            "logps/rejected": cast(Tensor, answers.ref_logps * answers.mask).sum(1),
            "rewards/chosen": inputs["scores"],
            "rewards/rejected": inputs["other_scores"],
            "rewards/probabilities": advantages + 0.5,
            "rewards/margins": ratios,
            "rewards/accuracies": (ratios > 0).to(ratios.dtype),
            "beta": torch.full_like(ratios, self.beta),
            "mixture_coef": torch.full_like(ratios, self.mixture_coef),
        }

    def end_metrics(self, has_end: Tensor) -> Metrics:
        """Return which completions of the policy and of the mixture have an end token."""
        return end_shares(has_end)
