"""Settings of importance-weighted on-policy distillation, with TRL's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.distillation.distilling_config import DistillingConfig, SharedSourceConfig
from core.losses.token_weights import TOTALS
from core.option import option
from eval.errors import BadValue

SERVER = "a teacher is a model on this machine"
WEIGHTED, JSD = "iw_opd", "jsd"
OF_WEIGHTED = ("iw_opd_gamma", "iw_opd_epsilon", "iw_opd_total", "iw_opd_signed", "epsilon")
OF_WEIGHTED += ("dual_clip",)
OF_JSD = ("beta", "lmbda", "loss_top_k", "loss_add_tail", "reverse_kl_top_1_mode")


@dataclass
class IWOPDConfig(SharedSourceConfig):
    """Settings of `IWOPDTrainer`, with the names and defaults of TRL 1.16, and of rollouts.

    `iw_opd_total`, `iw_opd_signed`, `loss_positions`, `epsilon` and `dual_clip` are no settings of
    TRL. `generation_batch_size` counts completions, as in every trainer here; in TRL it counts
    prompts.

    Raises:
        BadValue: see `DistillingConfig`, a value is out of range, or a setting is of the objective
            that is not chosen.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **DistillingConfig.UNSUPPORTED,
        "use_teacher_server": SERVER,
        "teacher_model_server_url": SERVER,
        "vllm_sync_frequency": "vLLM samples from the latest weights",
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **DistillingConfig.CHOICES,
        "distillation_objective": (WEIGHTED, JSD),
        "reverse_kl_top_1_mode": ("sampled", "argmax"),
        "iw_opd_total": tuple(TOTALS),
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **DistillingConfig.AT_LEAST,
        "max_length": 2,
        "max_prompt_length": 1,
        "iw_opd_gamma": 0.0,
        "iw_opd_epsilon": 0.0,
        "loss_top_k": 0,
        "log_completions_steps": 1,
        "epsilon": 0.0,
        "dual_clip": 1.0,
    }

    disable_dropout: bool = option(True, "Train without dropout.")
    top_p: float = option(0.95, "Sample within this probability mass.")
    vllm_server_port: int = option(8001, "Port of the vLLM server.")
    max_length: int | None = option(1024, "Longest prompt with its completion in tokens.")
    max_prompt_length: int | None = option(
        None,
        "Longest prompt in tokens; a longer one loses its beginning. Unset, max_length less "
        "max_completion_length.",
    )
    lmbda: float = option(1.0, "Probability that the student samples a rollout.")
    distillation_objective: str = option(
        WEIGHTED,
        f"What is trained: '{WEIGHTED}', sampled tokens weighted by their place; '{JSD}', a "
        "divergence on the most likely tokens.",
    )
    iw_opd_gamma: float = option(0.5, "Weight of a first token above that of a last one, 1.")
    iw_opd_epsilon: float = option(1e-8, "Least sum that weights are divided by.")
    iw_opd_total: str = option(
        "all", "Which tokens that sum is over: 'all', or 'without_last' as in the paper."
    )
    iw_opd_signed: bool = option(False, "Let discrepancies of both signs cancel before a token.")
    loss_positions: list[float] | None = option(
        None, "Trained part of each completion, as two shares of its tokens; unset, all."
    )
    epsilon: float | None = option(None, "Clip of the ratio to the sampling policy; unset, none.")
    dual_clip: float | None = option(
        None, "Greatest ratio with a gradient where the advantage is negative; unset, none."
    )
    loss_top_k: int = option(1, "Tokens that the divergence is over; 0 is all.")
    loss_add_tail: bool = option(True, "Count the mass of all other tokens as one more.")
    reverse_kl_top_1_mode: str = option(
        "sampled", "The token if loss_top_k=1: 'sampled', or the student's 'argmax'."
    )
    use_teacher_server: bool = option(False, "Ask a server for the teacher's probabilities.")
    teacher_model_server_url: str | None = option(None, "Address of that server.")
    vllm_sync_frequency: int = option(1, "Optimizer steps between two updates of vLLM's weights.")
    log_completions_steps: int = option(100, "Optimizer steps between two logs of completions.")

    def resolve(self) -> None:
        """Resolve the settings, and refuse those of the objective that is not chosen."""
        super().resolve()
        idle = OF_JSD if self.is_weighted else OF_WEIGHTED
        for name in idle:
            if self.is_set(name):
                raise BadValue(
                    f"IWOPDConfig.{name}={getattr(self, name)!r} is no setting of "
                    f"distillation_objective={self.distillation_objective!r}: leave it out"
                )
        self.check_lengths()
        self.check_loss()

    def check_lengths(self) -> None:
        """Refuse limits that leave no token for the prompt, or that exceed that of both parts."""
        prompt = self.max_prompt_length or 1
        if self.max_length is not None and prompt + self.max_completion_length > self.max_length:
            raise BadValue(
                f"max_length={self.max_length}: expected at least {prompt} tokens of the prompt "
                f"and max_completion_length={self.max_completion_length}"
            )

    def check_loss(self) -> None:
        """Refuse settings of the loss that have no effect beside others, or no meaning."""
        if self.iw_opd_epsilon == 0:
            raise BadValue("iw_opd_epsilon=0: expected above 0, as weights are divided by it")
        if self.dual_clip is not None and self.epsilon is None:
            raise BadValue("dual_clip without epsilon: no ratio is clipped; set both, or neither")
        if self.loss_top_k != 1 and self.reverse_kl_top_1_mode != "sampled":
            raise BadValue(
                f"reverse_kl_top_1_mode={self.reverse_kl_top_1_mode!r} with loss_top_k="
                f"{self.loss_top_k}: it chooses a single token; leave it out"
            )
        if self.loss_top_k == 0 and not self.loss_add_tail:
            raise BadValue("loss_add_tail=False with loss_top_k=0: all tokens have no tail")
        if not self.is_weighted and self.loss_top_k == 1 and not self.loss_add_tail:
            raise BadValue(
                "loss_top_k=1 without a tail: one token has probability 1 under both models, and "
                "the loss is always 0; set loss_add_tail=True or more tokens"
            )
        part = self.loss_positions
        if part is not None and not (len(part) == 2 and 0 <= part[0] < part[1] <= 1):
            raise BadValue(f"loss_positions={part!r}: expected two shares, such as [0.0, 0.3]")

    @property
    def is_weighted(self) -> bool:
        """True if sampled tokens are weighted; otherwise the loss is a divergence."""
        return self.distillation_objective == WEIGHTED

    @property
    def trained_part(self) -> tuple[float, float]:
        """Shares of a completion's tokens at which the trained part begins and ends."""
        first, last = self.loss_positions or (0.0, 1.0)
        return first, last

    @property
    def has_ratio(self) -> bool:
        """True if the loss has a clipped ratio to the student that sampled."""
        return self.epsilon is not None

    @property
    def longest_prompt(self) -> int | None:
        """Number of tokens to which prompts are cut, from the left."""
        if self.max_prompt_length is not None or self.max_length is None:
            return self.max_prompt_length
        return self.max_length - self.max_completion_length

    @property
    def completion_log_steps(self) -> int:
        """Optimizer steps between two logs of completions."""
        return self.log_completions_steps
