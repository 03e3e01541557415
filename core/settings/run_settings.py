"""The settings of a run beside its trainer's: model, data, benchmarks, sampling and processes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from core.configs.idle import WATCHED, Idle
from core.configs.weight_schedule import BEMASchedule
from core.data.prompts import Prompts
from core.families.family import AVERAGES
from core.paper import Reward
from eval.errors import BadValue, UnknownName

LAUNCHES = ("ddp", "fsdp2", "zero1", "zero2", "zero3")  # files of core/spread/accelerate_configs
# What answers benchmarks: our engine, vLLM in this process, or a server that is started for it.
EVAL_ENGINES = ("native", "vllm", "server")
LIVE, EMA, BEMA = WEIGHTS = ("live", "ema", "bema")  # which weights of a training are scored
HELD_OUT = "held_out/accuracy"  # the metric of the held-out problems
HELD_OUT_KL = "held_out/kl_to_start"  # and of own answers to them
HELD_OUT_NLL = "held_out/nll"  # and of their completions
BENCHMARK = "benchmark/"  # begins the metric of a suite that is scored while training
# Settings that say how a run is watched, stored and spread, not what it computes.
NEUTRAL = WATCHED | {"launch", "processes"}
ONE_IN = 5  # rows of small data is held out, where nobody says how many are
LARGEST_SEED = 2**32 - 1  # that numpy takes
TRIAL_SEED = 1000  # of trainings that choose a learning rate, and of no run that is judged
ON_TRIAL = f"on valid, seed {TRIAL_SEED}"  # ends the source of a learning rate that was so chosen


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The settings of a run beside its trainer's; a profile or name=value can set each of them.

    `regime` stands for the settings of that name in `core.families.regimes`. `roles` are the models
    that a family takes beside the policy: names, folders or preparations. `scorers` are trained
    reward models, named in the same way, that rate solutions together with the one of the run.

    `twins` maps a benchmark of the paper to the suite that is scored in its place. `eval_limit`
    problems of each suite, a fixed sample, are scored (all if unset), in each of the `eval_modes`
    of answering, or as the paper's evaluations say if no mode is set; with `eval_temperature` one
    sample at that temperature takes the place of these evaluations. The `at_k_*` settings are those
    of the samples for Maj@K and Pass@K, which are drawn if a claim needs them, on the first
    `at_k_benchmarks` suites. `eval_engine` is the engine that answers benchmarks: native, vLLM with
    each layer spread over `eval_tensor_parallel` GPUs, or a server, which the command `eval_server`
    starts for each model ("vllm serve ..." if unset).

    Every `heldout_every` optimizer steps of the training, the policy answers `heldout_problems`
    held-out rows of the data (a fifth of small data if unset), greedily or at
    `heldout_temperature`, and `heldout_limit` problems of each of the `heldout_benchmarks`
    greedily, in the `heldout_mode` of answering; no setting may be chosen by these benchmarks. With
    `heldout_kl` it also logs the divergence from the start of answers at temperature 1, in nats per
    token, and with `heldout_nll` the loss of the rows' own completions, too. The training stops
    once `heldout_target` percent of the held-out rows are right. If claims compare arms, each arm
    is tried with its own learning rate times each of `rate_factors`, and the best rate is used.
    `threads` is the number of CPU threads, which decides the last bit of every sum. `launch` trains
    on `processes` processes.

    A prompt is the column `prompt`, or `prompt_column`, or the text that `prompt_template`, a Jinja
    template, makes of a row's columns: '{{ problem | with_request }}' asks as the benchmarks do. If
    one of these or `system_prompt` is set, and in the user's own data, a text becomes a message of
    the user. The system prompt precedes all prompts of the training, of held-out problems and of
    benchmarks.

    `chat_template` replaces the template of the model and is saved with the trained model: "plain"
    is a template for base models, which have none; any other value is a file with a Jinja template.
    `trainer` is a class that trains in place of the family's own, which it extends:
    `module:Class` or `FILE.py:Class`.

    `weights` of the training are scored: the trained ones ("live"), their moving average ("ema"),
    or the corrected average ("bema") of arXiv 2508.00180. `average_*` are the arguments of
    `BEMACallback`; `average_update_freq` is 400 by default if an average is scored, else there is
    none. A training with averages saves all three models, and logs numbers of the live one.

    `use_peft` trains LoRA adapters; it, `lora_*`, `use_rslora` and `use_dora` are fields of TRL's
    `ModelConfig`.
    """

    model: str
    regime: str | None = None
    data: str = ""
    prompt_column: str | None = None
    prompt_template: str | None = None
    system_prompt: str | None = None
    chat_template: str | None = None
    rewards: tuple[Reward, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    scorers: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    twins: Mapping[str, str] = field(default_factory=dict[str, str])
    eval_limit: int | None = None
    eval_modes: tuple[str, ...] = ()
    eval_temperature: float | None = None
    eval_max_tokens: int | None = None
    eval_engine: str = "native"
    eval_tensor_parallel: int = 1
    eval_server: str | None = None
    at_k_benchmarks: int = 2
    at_k_samples: int = 64
    at_k_limit: int | None = 64
    at_k_temperature: float = 0.7
    heldout_every: int = 5
    heldout_problems: int = 200
    heldout_benchmarks: tuple[str, ...] = ()
    heldout_limit: int | None = 100
    heldout_mode: str = "cot"
    heldout_temperature: float = 0.0
    heldout_target: float | None = None
    heldout_kl: bool = False
    heldout_nll: bool = False
    rate_factors: tuple[float, ...] = ()
    threads: int | None = None
    trainer: str | None = None
    weights: str = LIVE
    average_update_freq: int | None = None
    average_ema_power: float = 0.5
    average_bias_power: float = 0.2
    average_lag: int = 10
    average_update_after: int = 0
    use_peft: bool = False
    lora_r: int = 16
    lora_alpha: int = 32
    lora_dropout: float = 0.05
    lora_target_modules: str | list[str] | None = None
    lora_target_parameters: tuple[str, ...] = ()
    lora_modules_to_save: tuple[str, ...] = ()
    use_rslora: bool = False
    use_dora: bool = False
    launch: str | None = None
    processes: int = 1

    def __post_init__(self) -> None:
        self._check_values()
        self._check_dependent_fields()
        self._check_rate_factors()
        self._check_weights()
        self._check_engine()
        self._check_launch()
        _ = self.prompts  # raises if the columns or templates contradict each other

    def _check_values(self) -> None:
        """Check the settings that have a lower or upper bound."""
        for name, bound in AT_LEAST.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise BadValue(f"{name}={value}: expected at least {bound}")
        if not self.lora_dropout < 1:
            raise BadValue(f"lora_dropout={self.lora_dropout}: expected below 1")
        if not self.model:
            raise BadValue("model is empty: expected a shipped model, a folder or a hub id")

    def _check_dependent_fields(self) -> None:
        """Check that no setting has a value which acts only if another setting is set."""
        for names, needed, advice in DEPENDENT:
            changed = [name for name in names if getattr(self, name) != getattr(type(self), name)]
            if changed and not getattr(self, needed):
                raise BadValue(f"{changed[0]} is set and {needed} is not: {advice}")

    def _check_rate_factors(self) -> None:
        """Check that the factors are distinct and positive, with the arm's own rate among them."""
        factors = self.rate_factors
        if factors and (len({*factors}) < len(factors) or min(factors) <= 0 or 1 not in factors):
            raise BadValue(
                f"rate_factors={factors}: expected different numbers above 0, 1 among them, or ()"
            )

    def _check_weights(self) -> None:
        """Check which weights are scored, and that the settings of averages act."""
        if self.weights not in WEIGHTS:
            raise UnknownName("weights", self.weights, WEIGHTS)
        for name in () if self.averaging else AVERAGES:
            if getattr(self, name) != getattr(type(self), name):
                raise BadValue(
                    f"{name} is set and has no effect, as no weights are averaged: leave it out, "
                    "or set average_update_freq"
                )

    def _check_engine(self) -> None:
        """Check that the engine exists and that its options belong to it."""
        if self.eval_engine not in EVAL_ENGINES:
            raise UnknownName("eval_engine", self.eval_engine, EVAL_ENGINES)
        if self.eval_engine != "vllm" and self.eval_tensor_parallel > 1:
            raise BadValue(
                f"eval_tensor_parallel={self.eval_tensor_parallel}: the native engine answers on "
                "one device, and a server takes it in its command; leave it out, or set "
                "eval_engine=vllm"
            )
        if self.eval_engine != "server" and self.eval_server is not None:
            raise BadValue(
                f"eval_server={self.eval_server!r}: no server is started; leave it out, or set "
                "eval_engine=server"
            )

    def _check_launch(self) -> None:
        """Check that a launch exists and has several processes."""
        if self.launch not in (None, *LAUNCHES):
            raise UnknownName("launch", self.launch, LAUNCHES)
        if (self.launch is None) != (self.processes == 1):
            raise BadValue(
                f"launch={self.launch}, processes={self.processes}: several processes need a "
                f"launch ({', '.join(LAUNCHES)}), and a launch at least 2 processes"
            )

    @property
    def averaging(self) -> BEMASchedule | None:
        """The schedule of the averages, None if there are none.

        Raises:
            BadValue: a number is out of range.
        """
        if self.weights == LIVE and self.average_update_freq is None:
            return None
        values = {name.removeprefix("average_"): getattr(self, name) for name in AVERAGES}
        return BEMASchedule(**{name: v for name, v in values.items() if v is not None})

    @property
    def steps_between_averages(self) -> int | None:
        """The optimizer steps between two updates of the averages, None if there are none."""
        return self.averaging and self.averaging.update_freq

    @property
    def models(self) -> tuple[str, ...]:
        """The models that a run begins with or takes beside it."""
        return (self.model, *self.roles.values(), *self.scorers)

    @property
    def suites(self) -> dict[str, str]:
        """The suite that is scored for each of the paper's benchmarks."""
        return {name: self.twins.get(name, name) for name in self.benchmarks}

    @property
    def watched_suites(self) -> list[str]:
        """The suites that are scored during training, without duplicates."""
        return list(dict.fromkeys(self.twins.get(name, name) for name in self.heldout_benchmarks))

    @property
    def prompts(self) -> Prompts:
        """The prompts that are made of the rows of the data."""
        return Prompts(self.prompt_column, self.prompt_template, self.system_prompt)


AT_LEAST: Mapping[str, float] = {
    "eval_limit": 1,
    "eval_max_tokens": 1,
    "eval_temperature": 0.0,
    "eval_tensor_parallel": 1,
    "at_k_benchmarks": 0,
    "at_k_samples": 2,
    "at_k_limit": 1,
    "at_k_temperature": 0.01,
    "heldout_every": 1,
    "heldout_problems": 0,
    "heldout_temperature": 0.0,
    "heldout_target": 0.0,
    "heldout_limit": 1,
    "threads": 1,
    "lora_r": 1,
    "lora_alpha": 1,
    "lora_dropout": 0.0,
    "processes": 1,
}
WATCHING = ("heldout_limit", "heldout_mode")  # of the benchmarks that are scored while training
LORA_OPTIONS = ("lora_target_parameters", "lora_modules_to_save", "use_rslora", "use_dora")
LORA_FIELDS = ("lora_r", "lora_alpha", "lora_dropout", "lora_target_modules", *LORA_OPTIONS)
# Settings that act only if another one is set: their names, the other one, and what to do.
DEPENDENT = (
    (LORA_FIELDS, "use_peft", "set use_peft=true to train LoRA"),
    (
        WATCHING,
        "heldout_benchmarks",
        "name the benchmarks to score while training, or leave it out",
    ),
    (("heldout_kl", "heldout_nll"), "heldout_problems", "set heldout_problems=N, or leave it out"),
)
# Fields that cannot act beside others; those of a trainer's config are in core.configs.idle.
IDLE = (
    Idle(
        ("heldout_every", "eval_max_tokens"),
        lambda s: s.heldout_problems == 0 and not s.heldout_benchmarks,
    ),
    Idle(("heldout_benchmarks", *WATCHING), lambda s: not s.heldout_benchmarks),
    Idle(("heldout_temperature",), lambda s: s.heldout_temperature == 0),
    Idle(("heldout_target",), lambda s: s.heldout_target is None),
    Idle(("heldout_kl",), lambda s: not s.heldout_kl),
    Idle(("heldout_nll",), lambda s: not s.heldout_nll),
    Idle(("eval_tensor_parallel",), lambda s: s.eval_engine != "vllm"),
    Idle(("eval_server",), lambda s: s.eval_engine != "server"),
    Idle(("average_*",), lambda s: s.averaging is None),
    Idle(("lora_*",), lambda s: not s.use_peft),
    *(Idle((name,), lambda s, name=name: not getattr(s, name)) for name in LORA_OPTIONS),
    Idle(("roles",), lambda s: not s.roles),
    Idle(("scorers",), lambda s: not s.scorers),
    Idle(("prompt_column",), lambda s: s.prompt_column is None),
    Idle(("prompt_template",), lambda s: s.prompt_template is None),
    Idle(("system_prompt",), lambda s: s.system_prompt is None),
    Idle(("chat_template",), lambda s: s.chat_template is None),
    Idle(("trainer",), lambda s: s.trainer is None),
)
# Fields that say what is asked of a trained policy: no part of its training.
SCORING = frozenset(
    {"benchmarks", "scorers", "twins", "eval_limit", "eval_modes", "eval_temperature", "weights"}
    | {"eval_engine", "eval_server", "eval_tensor_parallel"}
) | {f"at_k_{part}" for part in ("benchmarks", "samples", "limit", "temperature")}
# Fields that choose among trainings: no part of one, nor of what its record says of it.
CHOOSING = frozenset({"rate_factors"})
# Fields that stand for others, which count by themselves.
BUNDLES = frozenset({"regime"})
RUN_FIELDS = frozenset(f.name for f in fields(RunSettings))
