"""PPO: advantages of tokens over a value model that is trained beside the policy."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from core.collect.metrics import sum_and_count
from core.configs.ppo import PPOConfig
from core.forward.batches import Batch, trained_mask
from core.forward.critic import Critic
from core.forward.packing import unpad
from core.forward.values import frozen_values, token_values
from core.losses.aggregate import Scale
from core.losses.batch import Rollout
from core.losses.estimators import AdvantageSettings, Scored, token_advantages
from core.losses.kl import k3, next_coefficient
from core.losses.value import clipped_value_loss, clipped_values, explained_variance
from core.shards.adapters import has_adapters
from core.shards.sharding import gather_weights
from core.trainers.grpo import GRPOTrainer
from core.trainers.prompts import Rows
from core.trainers.publish import PAPERS
from core.trainers.resume import ProcessState
from eval.errors import BadValue


class PPOTrainer(GRPOTrainer):
    """Proximal policy optimisation, arXiv 1707.06347, of language models.

    A value model, initially the policy with a head that returns 0, is trained beside it. Rewards of
    tokens include the KL to the reference, and advantages are whitened over the rollout.
    """

    args: PPOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    gives = ("kl", "values")
    settings = PPOConfig
    _name = "PPO"
    _tag_names = ("ppo",)
    _paper = PAPERS["PPO"]

    def set_up(self) -> None:
        """Make the value model.

        Raises:
            BadValue: the model has adapters.
        """
        if has_adapters(self.policy()):
            raise BadValue("PPOTrainer trains no adapters: leave peft_config out")
        with gather_weights(self.policy(), self.frame) as policy:
            self.critic = Critic(policy, self.args)
        self.old_kl_coef = self.args.old_kl_coef
        self.moved: list[Tensor] = []  # sums and counts of the KL in the last pass over a rollout

    @property
    def advantage_settings(self) -> AdvantageSettings:
        """Settings of how rewards become advantages."""
        c = self.args
        rates = {"gamma": c.gamma, "lam": c.lam, "penalty_gamma": c.penalty_discount}
        return replace(super().advantage_settings, **rates)

    def assess(self, batch: Batch) -> Batch:
        """Return KL and value of each token, and its penalty if a reward has one for tokens."""
        assessed, mask = super().assess(batch), trained_mask(batch)
        learned, watched = self.pieces(batch)
        with self.phases("forward"), self.accelerator.autocast():
            values = frozen_values(self.critic.model, batch, [*watched, *learned])
        penalties = self.penalties(batch)
        extra = {} if penalties is None else {"penalties": penalties * mask}
        return {**assessed, "values": values * mask, **extra}

    def penalties(self, batch: Batch) -> Tensor | None:
        """Return the weighted sum of token rewards (n, T), None without such rewards."""
        pairs = zip(self.rewards, self.reward_weights.tolist(), strict=True)
        weighted = [(f.per_token, weight) for f, weight in pairs if f.per_token is not None]
        if not weighted:
            return None
        totals = torch.zeros(batch["completion_ids"].shape)
        rows = unpad(batch["completion_ids"], batch["completion_mask"])
        for place, ids in enumerate(rows):
            for per_token, weight in weighted:
                totals[place, : len(ids)] += weight * torch.tensor(per_token(ids))
        return totals.to(self.args.device)

    def columns(self, scored: Scored) -> Batch:
        """Return advantages, values at the time of the rollout, and returns R_t = A_t + V_t."""
        values = cast(Tensor, scored.values)
        returns = token_advantages(scored, self.advantage_settings) + values
        share = explained_variance(values, returns, cast(Tensor, scored.mask))
        self.record({"value_explained": share.item()})
        return {**super().columns(scored), "values": values, "returns": returns}

    def learns(self, inputs: Batch) -> Tensor:
        """Return a mask of ones (B,): all completions have a gradient, that of their values."""
        return torch.ones(len(inputs["completion_ids"]), dtype=torch.bool)

    def extra_loss(self, r: Rollout, inputs: Batch, scale: Scale) -> Tensor:
        """Return vf_coef times the value loss plus old_kl_coef times the KL from pi_old (k3)."""
        old, returns, width = inputs["values"], inputs["returns"], self.args.cliprange_value
        values = token_values(self.critic.model, inputs)
        errors = clipped_value_loss(values, old, returns, width)
        old_kl = k3(r.old_logps, r.logps)
        logged = {
            "value_loss": errors.detach(),
            "value_clip_ratio": clipped_values(values.detach(), old, returns, width),
            "old_kl": old_kl.detach(),
        }
        sums = {name: sum_and_count(x, r.mask) for name, x in logged.items()}
        self.seen[-1].totals.update(sums)
        if self.mode == "train":
            self.moved.append(sums["old_kl"])
        per_token = self.args.vf_coef * errors + self.old_kl_coef * old_kl
        return self.args.aggregate.mean(per_token, r.mask, scale)

    def training_step(
        self, model: nn.Module, inputs: Rows | Batch, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Train on one micro-batch; update the value model with the policy, and the KL weight.

        The weight of the KL from pi_old is updated once per rollout.
        """
        uses, parts = self.args.rollout_uses, self.args.rollout_parts
        if self._step % uses == uses - parts:
            self.moved.clear()  # the last pass begins
        loss = super().training_step(model, inputs, num_items_in_batch)
        if self.accelerator.sync_gradients:
            base_rate = self.args.learning_rate
            now = float(cast(LambdaLR, self.lr_scheduler).get_last_lr()[0])
            self.critic.step(self.accelerator, now / base_rate if base_rate else 1.0)
        if self._step % uses == 0:
            self.steer()
        return loss

    def steer(self) -> None:
        """Update the weight of the KL from pi_old at the end of a rollout."""
        total, count = self.gather(torch.stack(self.moved).sum(0)).view(-1, 2).sum(0).tolist()
        self.moved.clear()
        if self.args.old_kl_target is not None:
            kl = total / max(count, 1.0)
            self.old_kl_coef = next_coefficient(self.old_kl_coef, kl, self.args.old_kl_target)
            self.record({"old_kl_coef": self.old_kl_coef})

    def own_state(self) -> ProcessState:
        """Return the state of the rollouts, with the weight and the sums of the KL from pi_old."""
        return {**super().own_state(), "old_kl_coef": self.old_kl_coef, "moved": self.moved}

    def take_state(self, state: ProcessState) -> None:
        """Restore what `own_state` returned, in the middle of a rollout or at its end."""
        super().take_state(state)
        self.old_kl_coef = state.get("old_kl_coef", self.args.old_kl_coef)
        self.moved = list(state.get("moved", []))

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        if self.args.should_save:
            self.critic.save(Path(output_dir))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            self.critic.load(Path(checkpoint))
