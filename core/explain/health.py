"""Warnings of a training that looks alive but learns nothing, with the likely cause."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import filter as fnmatch_filter
from fnmatch import fnmatchcase

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from eval.terminal import say

Logs = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Watch:
    """A condition with hysteresis: it begins at `bad` and ends below `good`.

    Attributes:
        name: its name in logs, `health/<name>`.
        measure: function (logs, first log of the run, completions per prompt) to a number that
            is large when things are bad; None if the log lacks the metrics.
        bad: value from which the condition holds.
        good: value below which it is over.
        patience: number of consecutive logs at or above `bad` before it holds.
        finding: what is wrong, in the message.
        context: metrics that the message shows; `*` matches any part of a name.
        cause: likely causes, in the message.
        remedy: what to do, in the message.
    """

    name: str
    measure: Callable[[Logs, Logs, int], float | None]
    bad: float
    good: float
    patience: int
    finding: str
    context: tuple[str, ...]
    cause: str
    remedy: str


def _value(metric: str, sign: float = 1.0) -> Callable[[Logs, Logs, int], float | None]:
    """Return a measure that is the metric times `sign`; None where the metric is missing."""
    return lambda logs, _first, _group: (
        None if logs.get(metric) is None else sign * logs[metric]  # None: of no reward at all
    )


def _clones(logs: Logs, _first: Logs, group: int) -> float | None:
    """Return 1 if every group repeats one completion, 0 if no two completions are equal."""
    if "completions/unique_fraction" not in logs or group < 2:
        return None
    return (1 - logs["completions/unique_fraction"]) * group / (group - 1)


def _not_finite(logs: Logs, _first: Logs, _group: int) -> float | None:
    if "grad_norm" not in logs:
        return None
    return float(any(not math.isfinite(logs.get(k, 0.0)) for k in ("loss", "grad_norm", "kl")))


def _entropy_rise(logs: Logs, first: Logs, _group: int) -> float | None:
    return logs["entropy"] - first["entropy"] if "entropy" in logs and "entropy" in first else None


def _silent_reward(logs: Logs, _first: Logs, _group: int) -> float | None:
    """Return 1 if one of several rewards is equal for all completions, 0 if each varies."""
    spreads = [logs[name] for name in logs if fnmatchcase(name, "rewards/*/std")]
    return float(0.0 in spreads) if len(spreads) > 1 else None


WATCHES = (
    Watch(
        name="equal_rewards",
        measure=_value("frac_reward_zero_std"),
        bad=0.8,
        good=0.7,
        patience=3,
        finding="in most groups all rewards are equal, so these groups have no advantage",
        context=("frac_reward_zero_std", "reward", "completions/clipped_ratio"),
        cause="a low mean reward: the problems are too hard, answers are cut off or the grader "
        "cannot read them; a high one: the problems are too easy by now; with beta > 0 the KL "
        "term still pulls such groups back to the reference",
        remedy="look at some completions and their rewards; mix in easier or harder problems, "
        "raise num_generations or the temperature, or start from a better model",
    ),
    Watch(
        name="silent_reward",
        measure=_silent_reward,
        bad=1.0,
        good=0.5,
        patience=10,
        finding="one of the rewards is the same for every completion, so nothing is learnt from it",
        context=("rewards/*/mean", "rewards/*/std"),
        cause="what it looks for is in no completion or in all of them, or it is a penalty that "
        "nothing incurs",
        remedy="call it on some completions; mend what it looks for, or leave it out",
    ),
    Watch(
        name="all_cut",
        measure=_value("completions/clipped_ratio"),
        bad=0.99,
        good=0.9,
        patience=2,
        finding="every completion is cut at the length limit, so hardly one can contain its answer",
        context=("completions/clipped_ratio", "completions/mean_length", "reward"),
        cause="max_completion_length is too short, or the model never emits its end token "
        "(wrong chat template, or eos_token_id of model and tokenizer differ)",
        remedy="print a completion; raise max_completion_length or set the end token",
    ),
    Watch(
        name="clones",
        measure=_clones,
        bad=0.98,
        good=0.9,
        patience=2,
        finding="all completions of a group are identical, so no group has an advantage",
        context=("completions/unique_fraction", "entropy"),
        cause="the sampler uses one seed for the whole group or decodes greedily "
        "(temperature near 0, top_k=1), or the policy has collapsed onto one answer",
        remedy="raise the temperature and check the sampler's seed; if the entropy fell to 0 in "
        "training, lower the learning rate or return to an earlier checkpoint",
    ),
    Watch(
        name="no_gradient",
        measure=_value("grad_norm", sign=-1.0),
        bad=-1e-10,
        good=-1e-8,
        patience=2,
        finding="the gradient is zero, so the weights do not move",
        context=("grad_norm", "frac_reward_zero_std", "reward", "completions/clipped_ratio"),
        cause="all advantages are zero (all rewards of each group equal, or none given), all "
        "completions are masked (mask_truncated_completions with everything cut), or the weights "
        "are frozen",
        remedy="see frac_reward_zero_std and completions/clipped_ratio; check which parameters "
        "require a gradient",
    ),
    Watch(
        name="not_finite",
        measure=_not_finite,
        bad=1.0,
        good=0.5,
        patience=1,
        finding="loss, gradient or KL is not a finite number",
        context=("loss", "grad_norm", "kl"),
        cause="an overflow: the learning rate is too high, fp16 is in use, or the policy moved so "
        "far from the reference that the KL estimate exp(d) - d - 1 overflows",
        remedy="go back to the last good checkpoint; lower the learning rate, set max_grad_norm, "
        "or train in bf16 or float32",
    ),
    Watch(
        name="kl_high",
        measure=_value("kl"),
        bad=2.0,
        good=1.0,
        patience=2,
        finding="the policy is far from its reference, in nats per token",
        context=("kl", "reward", "entropy"),
        cause="the learning rate is too high or beta too small; a few tokens that the reference "
        "finds almost impossible dominate the estimate",
        remedy="lower the learning rate or raise beta; check that the rewards are not being gamed",
    ),
    Watch(
        name="entropy_low",
        measure=_value("entropy", sign=-1.0),
        bad=-0.005,
        good=-0.01,
        patience=3,
        finding="the policy's entropy is close to zero: it no longer explores",
        context=("entropy", "completions/unique_fraction", "frac_reward_zero_std"),
        cause="the policy has settled on one answer per prompt: too many updates, too high a "
        "learning rate, or a start model that was fine-tuned too long",
        remedy="stop here, or raise epsilon_high, the temperature or beta, or lower the "
        "learning rate",
    ),
    Watch(
        name="entropy_high",
        measure=_entropy_rise,
        bad=1.5,
        good=1.0,
        patience=2,
        finding="the policy's entropy is far above its start: it drifts towards random text",
        context=("entropy", "reward", "completions/mean_length"),
        cause="the learning rate is too high or the clip too wide, or noise in the rewards pushes "
        "down whatever is sampled",
        remedy="lower the learning rate, narrow epsilon_high, raise beta",
    ),
)


@dataclass
class _Status:
    """State of a condition: consecutive bad logs, and whether it holds."""

    streak: int = 0
    holds: bool = False


@dataclass
class Diagnosis:
    """State of all conditions of one run, updated by its logs."""

    watches: tuple[Watch, ...] = WATCHES
    group: int = 0
    first: dict[str, float] = field(default_factory=dict)
    status: dict[str, _Status] = field(default_factory=dict)

    def update(self, logs: Logs) -> dict[Watch, bool]:
        """Update the conditions; return those that this log begins (True) or ends (False)."""
        for metric, value in logs.items():
            self.first.setdefault(metric, value)
        changes = {}
        for watch in self.watches:
            status = self.status.setdefault(watch.name, _Status())
            before = status.holds
            _advance(status, watch, watch.measure(logs, self.first, self.group))
            if status.holds != before:
                changes[watch] = status.holds
        return changes

    @property
    def holding(self) -> list[str]:
        """Names of the conditions that hold now."""
        return [name for name, status in self.status.items() if status.holds]


class HealthCallback(TrainerCallback):
    """Callback that prints each condition when it begins and when it is over, and logs it.

    A log during which a condition holds gets `health/<name>` = 1.0, the one that ends it 0.0; so
    this callback must come before those that write logs. After a resume the earlier logs are
    replayed without messages, so nothing is reported twice.
    """

    def __init__(self, watches: tuple[Watch, ...] = WATCHES):
        self.diagnosis = Diagnosis(watches=watches)

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        **_: object,
    ) -> None:
        """Restore the state from the logs of the run so far."""
        group = getattr(args, "num_generations", None) or 0
        self.diagnosis = Diagnosis(watches=self.diagnosis.watches, group=group)
        for row in state.log_history:
            self.diagnosis.update(row)

    def on_log(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        logs: dict[str, float] | None = None,
        **_: object,
    ) -> None:
        """Update the conditions with one log, print changes and add `health/` entries to it."""
        if not logs:
            return
        changes = self.diagnosis.update(logs)
        if state.is_world_process_zero:
            _report(changes, logs, state.global_step)
        if "loss" in logs:
            ended = {f"health/{w.name}": 0.0 for w, appeared in changes.items() if not appeared}
            flags = {f"health/{name}": 1.0 for name in self.diagnosis.holding} | ended
            logs.update(flags)
            if state.log_history and state.log_history[-1].get("step") == state.global_step:
                state.log_history[-1].update(flags)


def _advance(status: _Status, watch: Watch, value: float | None) -> None:
    """Update one condition with a new value; None and NaN change nothing."""
    if value is None or math.isnan(value):
        return
    status.streak = status.streak + 1 if value >= watch.bad else 0
    if status.holds:
        status.holds = value >= watch.good
    else:
        status.holds = status.streak >= watch.patience


def _report(changes: Mapping[Watch, bool], logs: Logs, step: int) -> None:
    """Print the conditions that begin (True) or end (False) at this step."""
    for watch, appeared in changes.items():
        line = _message(watch, logs) if appeared else f"health/{watch.name} is over"
        say(f"step {step}: {line}")


def _message(watch: Watch, logs: Logs) -> str:
    metrics = [m for pattern in watch.context for m in fnmatch_filter(logs, pattern)]
    context = ", ".join(f"{m} = {logs[m]:.4g}" for m in metrics if logs[m] is not None)
    return (
        f"health/{watch.name}: {watch.finding} ({context}). "
        f"Likely cause: {watch.cause}. What to do: {watch.remedy}."
    )
