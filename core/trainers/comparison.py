"""Log-probabilities of a rollout's tokens under the policy, its reference and the engine."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor
from transformers import PreTrainedModel

from core.collect.correction import correct_sampling, sampling_difference, sampling_logps
from core.collect.generation import Generated
from core.collect.metrics import gather_valid, sum_and_count
from core.configs.grpo import GRPOConfig
from core.forward.batches import Batch, trained_mask
from core.forward.logps import TokenLogps, frozen_logps
from core.losses.entropy import ENDS
from core.losses.kl import k1
from core.shards.sharding import gather_weights
from core.trainers.on_policy import OnPolicyTrainer


class ComparingTrainer(OnPolicyTrainer):
    """Trainer that adds log-probabilities to rollouts before advantages, and to micro-batches."""

    args: GRPOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower

    def assess(self, batch: Batch) -> Batch:
        """Return the KL of each token to the reference, if rewards or advantages depend on it."""
        args, mask = self.args, trained_mask(batch)
        if not args.reward_kl:
            kl = torch.zeros_like(mask, dtype=torch.float32)
            return {"kl": kl, "mask": mask} if "kl" in self.needs else {}
        with self.phases("forward"):
            (policy_logps,) = self.policy_logps(self.policy(), [batch])
        with self.phases("reference"):
            (reference_logps,) = self.policy_logps(self.reference(), [batch])
        kl = k1(policy_logps.logps, reference_logps.logps) * mask
        total, tokens = self.gather(sum_and_count(kl, mask)).view(-1, 2).sum(0).tolist()
        self.record({"kl": total / max(tokens, 1.0)})
        if args.rollout_moves and self.mode == "train":
            batch["old_per_token_logps"] = policy_logps.logps
        return {"kl": kl, "mask": mask}

    def tensors(self, generated: Generated) -> Batch:
        """Return the rollout's tensors, with the engine's log-probabilities if they are used."""
        batch = super().tensors(generated)
        if self.args.reads_sampler:
            logps = sampling_logps(generated, like=batch["completion_mask"])
            batch["sampling_logps"] = logps.to(self.args.device)
        return batch

    def compare(self, batches: list[Batch]) -> None:
        """Add log-probabilities of the reference, and of the old policy if it moves in a rollout.

        They are computed on the same pieces as the training, so that equal policies are equal to
        the last bit: the ratio is 1, and the KL and its gradient are 0. A policy that does not move
        during a rollout has ratio 1 without them; they are then computed only for the comparison
        with the engine.
        """
        args = self.args
        moves = self.mode == "train" and args.rollout_moves
        has_old = "old_per_token_logps" in batches[0]
        if (moves or args.watches_sampler) and not has_old:
            with self.phases("forward"):
                self.add_logps("old_per_token_logps", self.policy(), batches)
        if args.penalises_kl:
            with self.phases("reference"):
                self.add_logps("ref_per_token_logps", self.reference(), batches)
        if args.watches_sampler:
            self.record(sampling_difference(batches, self.accelerator))
        if args.corrects_sampling:
            self.record(correct_sampling(batches, args.correction, self.accelerator))

    def add_logps(self, name: str, policy: PreTrainedModel, batches: list[Batch]) -> None:
        """Add the log-probabilities of a policy to micro-batches under a name."""
        for batch, result in zip(batches, self.policy_logps(policy, batches), strict=True):
            batch[name] = result.logps

    def policy_logps(
        self, policy: PreTrainedModel, batches: Sequence[Batch], *, with_entropy: bool = False
    ) -> list[TokenLogps]:
        """Return a policy's log-probabilities of micro-batches, in the pieces of the training."""
        options = {"with_entropy": with_entropy, "with_router": self.router_weight != 0.0}
        outputs: list[TokenLogps] = []
        # the policy has autocast in its forward, the reference has not
        with self.accelerator.autocast(), gather_weights(policy, self.frame) as model:
            for batch in batches:
                learned, watched = self.pieces(batch)
                rows = [*watched, *learned]
                outputs.append(frozen_logps(model, batch, self.args.temperature, rows, **options))
        return outputs

    def mark_tokens(self, batch: Batch) -> Batch:
        """Add the mask of tokens selected by their entropy among the tokens of all processes."""
        if not self.args.chooses_tokens:
            return batch
        with self.phases("forward"):
            outputs = self.policy_logps(self.policy(), [batch], with_entropy=True)[0]
        entropy, mask = cast(Tensor, outputs.entropy), trained_mask(batch).bool()
        all_entropies = gather_valid(entropy[mask], self.accelerator)
        end = ENDS[self.args.top_entropy_tokens]
        selected = end.select(entropy, all_entropies, self.args.top_entropy_quantile)
        return {**batch, "kept_tokens": selected & mask}
