"""Sampling of completions by a student together with its teacher."""

from transformers import PreTrainedModel

from core.collect.generation import Generated, sample
from core.distillation.minillm_config import MiniLLMConfig
from core.distillation.sampled_tokens import check_head
from core.distillation.teacher import OtherModel, TeacherAttributes
from core.forward.batches import Batch
from core.rewards.completions import Completion
from core.rollout.merged_adapters import unwrap_peft
from core.rollout.mixed import MixedEngine
from core.shards.sharding import gather_weights
from core.trainers.grpo import GRPOTrainer
from eval.errors import BadValue


class TaughtSamplingTrainer(TeacherAttributes, GRPOTrainer):
    """Trainer with a frozen teacher, which samples in a mixture with the student if it is asked to.

    A subclass sets `source` before it builds this trainer.
    """

    args: MiniLLMConfig  # pyright: ignore[reportIncompatibleVariableOverride] - narrower
    source: OtherModel

    def set_up(self) -> None:
        """Check the tokens of the teacher, and put it in its place.

        Raises:
            BadValue: see `check_vocabularies`, or a rollout function samples beside a mixture.
        """
        if self.rollout_func is not None and self.args.teacher_mix_alpha:
            raise BadValue("teacher_mix_alpha cannot act: rollout_func makes the completions")
        self.router_weight = 0.0
        self.shared = self.source.shared_tokens(self.tokenizer, self.policy())
        self.teacher = self.source.placed(self)

    def sample_from(
        self, chosen: PreTrainedModel, prompts: list[Completion], seeds: list[int]
    ) -> Generated:
        """Sample one completion per prompt, in training from the mixture with the teacher."""
        alpha, own = self.args.teacher_mix_alpha, self.accelerator.autocast()
        if not alpha or self.mode == "eval":
            return super().sample_from(chosen, prompts, seeds)
        with own, gather_weights(chosen, self.frame) as model, self.teacher.whole() as teacher:
            engine, ends = MixedEngine(unwrap_peft(model), teacher, alpha), self.eos_token_ids
            return sample(model, self.tokenizer, prompts, self.args, ends, seeds, engine)

    def tensors(self, generated: Generated) -> Batch:
        """Return the rollout's tensors, after a check of its tokens."""
        check_head(generated, self.shared)
        return super().tensors(generated)
