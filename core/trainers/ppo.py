"""PPO: advantages of tokens against a value model that learns beside the policy."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from core.collect.metrics import sum_and_count
from core.configs.ppo import PPOConfig
from core.forward.batches import Batch, trained_mask
from core.forward.packing import unpad
from core.forward.values import frozen_values, token_values
from core.losses.aggregate import Scale
from core.losses.batch import Rollout
from core.losses.estimators import AdvantageSettings, Scored, token_advantages
from core.losses.kl import k3, next_coefficient
from core.losses.value import clipped_value_loss, clipped_values, explained_variance
from core.shards.adapters import has_adapters
from core.shards.sharding import gather_weights
from core.trainers.critic import Critic
from core.trainers.grpo import GRPOTrainer
from eval.errors import BadValue

PROXIMAL = {
    "title": "Proximal Policy Optimization Algorithms",
    "id": "1707.06347",
    "citation": """@misc{schulman2017proximal,
  title = {{Proximal Policy Optimization} Algorithms},
  author = {John Schulman and Filip Wolski and Prafulla Dhariwal and Alec Radford and Oleg Klimov},
  year = {2017},
  eprint = {1707.06347},
  archivePrefix = {arXiv},
}""",
}


class PPOTrainer(GRPOTrainer):
    """Proximal policy optimisation, arXiv 1707.06347, of language models.

    A value model, at first the policy with a head that says 0, learns beside it. Rewards of tokens
    have the KL to the reference in them; their advantages are whitened over the rollout.
    """

    args: PPOConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    gives = ("kl", "values")
    settings = PPOConfig
    _name = "PPO"
    _tag_names = ("ppo",)
    _paper = PROXIMAL

    def __init__(self, *args: Any, **keywords: Any):
        super().__init__(*args, **keywords)
        if has_adapters(self.policy()):
            raise BadValue("PPOTrainer trains no adapters: leave peft_config out")
        with gather_weights(self.policy(), self.frame) as policy:
            self.critic = Critic(policy, self.args)
        self.old_kl_coef = self.args.old_kl_coef
        self.moved: list[Tensor] = []  # sums and counts of the KL in the last pass over a rollout

    @property
    def weighing(self) -> AdvantageSettings:
        """How rewards become advantages."""
        c = self.args
        rates = {"gamma": c.gamma, "lam": c.lam, "penalty_gamma": c.penalty_discount}
        return replace(super().weighing, **rates)

    def assess(self, batch: Batch) -> Batch:
        """The KL of each token, its value, and its penalty if there are rewards of tokens."""
        found, mask = super().assess(batch), trained_mask(batch)
        learned, watched = self.pieces(batch)
        with self.phases("forward"), self.accelerator.autocast():
            values = frozen_values(self.critic.model, batch, [*watched, *learned])
        penalties = self.penalties(batch)
        given = {} if penalties is None else {"penalties": penalties * mask}
        return {**found, "values": values * mask, **given}

    def penalties(self, batch: Batch) -> Tensor | None:
        """The weighted sum of the rewards of each token (n, T), None if there are none."""
        pairs = zip(self.rewards, self.reward_weights.tolist(), strict=True)
        each = [(f.per_token, weight) for f, weight in pairs if f.per_token is not None]
        if not each:
            return None
        found = torch.zeros(batch["completion_ids"].shape)
        rows = unpad(batch["completion_ids"], batch["completion_mask"])
        for place, ids in enumerate(rows):
            for per_token, weight in each:
                found[place, : len(ids)] += weight * torch.tensor(per_token(ids))
        return found.to(self.args.device)

    def columns(self, scored: Scored) -> Batch:
        """Advantages, values at rollout, and returns: R_t = V_t and what is gained beyond it."""
        values = cast(Tensor, scored.values)
        returns = token_advantages(scored, self.weighing) + values
        share = explained_variance(values, returns, cast(Tensor, scored.mask))
        self.record({"value_explained": share.item()})
        return {**super().columns(scored), "values": values, "returns": returns}

    def learns(self, inputs: Batch) -> Tensor:
        """Which completions have a gradient: all, of their values."""
        return torch.ones(len(inputs["completion_ids"]), dtype=torch.bool)

    def beyond(self, r: Rollout, inputs: Batch, scale: Scale) -> Tensor:
        """vf_coef times the loss of values, and old_kl_coef times the KL from pi_old (k3)."""
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
        self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None
    ) -> Tensor:
        """One micro-batch; the value model moves with the policy, the KL's weight by rollouts."""
        uses, parts = self.args.rollout_uses, self.args.rollout_parts
        if self._step % uses == uses - parts:
            self.moved.clear()  # the last pass begins
        loss = super().training_step(model, inputs, num_items_in_batch)
        if self.accelerator.sync_gradients:
            full = self.args.learning_rate
            now = cast(Any, self.lr_scheduler).get_last_lr()[0]
            self.critic.step(self.accelerator, now / full if full else 1.0)
        if self._step % uses == 0:
            self.steer()
        return loss

    def steer(self) -> None:
        """Weigh the KL from pi_old anew, at the end of a rollout."""
        total, count = self.gather(torch.stack(self.moved).sum(0)).view(-1, 2).sum(0).tolist()
        self.moved.clear()
        if self.args.old_kl_target is not None:
            kl = total / max(count, 1.0)
            self.old_kl_coef = next_coefficient(self.old_kl_coef, kl, self.args.old_kl_target)
            self.record({"old_kl_coef": self.old_kl_coef})

    def own_state(self) -> dict[str, Any]:
        """That of every method with rollouts, and where the KL's weight is."""
        return {**super().own_state(), "old_kl_coef": self.old_kl_coef, "moved": self.moved}

    def take_state(self, state: Mapping[str, Any]) -> None:
        """Go on in the middle of a rollout, or at its end."""
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
