"""The options of `repro eval`, and which of them go with each kind of evaluation."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from core.cli.options import AsJson, Data, Mode, Reported
from eval.errors import BadValue

if TYPE_CHECKING:  # torch and scipy, which --help must not wait for
    from core.samplers.served import Service
    from core.stages.loading import Loading
    from eval.samples.evaluation import Decoding

# The options of each kind of evaluation; other options are refused.
ASKED = {"model", "mode", "system_prompt", "chat_template"}
DRAWN = {"samples", "temperature", "top_p", "seed", "max_tokens"} | ASKED
SCORED = {"benchmarks", "data", "limit", "reported", "out", "as_json"}
LOADED = {"dtype", "device", "batch_size"}
RATED = {"scorer", "step_separator"}
TAKES = {
    "contamination": {"contamination", "benchmarks", "data", "as_json"},
    "power": {"power", "benchmarks", "samples", "seeds", "rate", "seed_spread", "limit", "as_json"},
    "lm_eval": {"lm_eval", "model", "data", "limit", "seed", "as_json"} | LOADED,
    "server": {"server", "api", "api_key_env"} | DRAWN | SCORED | RATED,
    "benchmarks": {"top_k", "engine", "serve", "tensor_parallel"} | DRAWN | SCORED | LOADED | RATED,
}


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions:
    """The command line of `repro eval`; options that the chosen evaluation ignores are refused.

    Raises:
        BadValue: there is no benchmark or task, or an option goes with another kind of evaluation.
    """

    ctx: typer.Context
    model: Annotated[
        str | None,
        typer.Argument(help="A shipped model, a folder, a hub id, or a run of `repro runs`."),
    ] = None
    benchmarks: Annotated[str | None, typer.Option(help="Names joined by commas.")] = None
    lm_eval: Annotated[
        str | None, typer.Option(help="Instead: tasks of lm-eval joined by commas, or task files.")
    ] = None
    mode: Mode = "cot"
    samples: Annotated[int, typer.Option(min=1, help="Samples of each problem.")] = 1
    temperature: Annotated[
        float | None, typer.Option(min=0.0, help="Default: 0 for one sample, else 0.7.")
    ] = None
    top_p: Annotated[
        float, typer.Option(help="Draw from the likeliest tokens with this share together.")
    ] = 1.0
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Draw from so many of the likeliest tokens.")
    ] = None
    system_prompt: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A system prompt before each question.")
    ] = None
    chat_template: Annotated[
        str | None,
        typer.Option(
            metavar="plain|FILE",
            help="In place of the model's own: a plain one for base models, or a Jinja file.",
        ),
    ] = None
    scorer: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="With --samples: a reward model, verifier or model of steps that rates answers.",
        ),
    ] = None
    step_separator: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="With a --scorer of steps: what ends each; default: a line break."
        ),
    ] = None
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="The longest answer; default: the benchmark's own.")
    ] = None
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Only so many: a fixed sample (of lm-eval, the first)."),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0
    reported: Reported = None
    power: Annotated[
        bool, typer.Option("--power", help="Only say what such an evaluation can see; no model.")
    ] = False
    seeds: Annotated[int, typer.Option(min=1, help="With --power: training runs.")] = 1
    rate: Annotated[float, typer.Option(help="With --power: the expected score.")] = 50.0
    seed_spread: Annotated[
        float, typer.Option(help="With --power: standard deviation over seeds, in points.")
    ] = 0.0
    contamination: Annotated[
        Path | None,
        typer.Option(
            metavar="TRAINFILE",
            help="Only look for test questions in it, reworded ones too; 1 if any.",
        ),
    ] = None
    data: Data = None
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="An OpenAI-compatible server (vLLM, ...) that has MODEL."),
    ] = None
    api: Annotated[
        str | None,
        typer.Option(help="With --server: completions (default), or chat, by its own template."),
    ] = None
    api_key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="With --server: where its key is; default: OPENAI_API_KEY, if set."
        ),
    ] = None
    dtype: Annotated[
        str, typer.Option(help="Of the weights: float32, bfloat16, float16; auto: as in its files.")
    ] = "float32"
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda or cuda:N; default: the GPU if there is one.")
    ] = None
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Answers decoded at a time; default: as many as a GPU's free memory holds, "
            "on a CPU 128.",
        ),
    ] = None
    engine: Annotated[
        str,
        typer.Option(
            help="What answers: native, vllm in this process, or a server that is started for it."
        ),
    ] = "native"
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="With --engine server: what starts it, with {model} and {port}; default: "
            "vllm serve.",
        ),
    ] = None
    tensor_parallel: Annotated[
        int, typer.Option(min=1, help="With --engine vllm: GPUs that share each layer.")
    ] = 1
    out: Annotated[
        Path | None,
        typer.Option(help="Keep samples and a page to browse them here; resumable after a kill."),
    ] = None
    as_json: AsJson = False

    def __post_init__(self) -> None:
        if (self.benchmarks is None) == (self.lm_eval is None):
            raise BadValue("what to score: expected one of --benchmarks NAMES and --lm-eval TASKS")
        check_options(self.ctx)
        if not self.names or len(set(self.names)) < len(self.names):
            raise BadValue(
                f"what to score: {self.names}: expected different names joined by commas"
            )

        if self.scorer is None and self.step_separator is not None:
            raise BadValue(f"--step-separator {self.step_separator!r} goes with --scorer")
        if self.scorer is not None and self.samples == 1:
            raise BadValue(
                f"--scorer {self.scorer} chooses among answers: give --samples of at least 2"
            )

    @property
    def names(self) -> list[str]:
        """The names of the benchmarks or tasks."""
        text = self.benchmarks or self.lm_eval or ""
        return [name.strip() for name in text.split(",") if name.strip()]

    @property
    def loading(self) -> "Loading":
        """The settings by which the model is loaded here."""
        from core.samplers.serve_command import VLLM_SERVE
        from core.stages.loading import Loading

        return Loading(
            dtype=self.dtype,
            device=self.device,
            batch_size=self.batch_size,
            engine=self.engine,
            tensor_parallel=self.tensor_parallel,
            serve=VLLM_SERVE if self.serve is None else self.serve,
            chat_template=self.chat_template,
        )

    @property
    def decoding(self) -> "Decoding":
        """The sampling settings of answers, without `--max-tokens`, which is passed separately.

        The temperature is 0 for one sample and 0.7 for several if the option is not given.

        Raises:
            BadValue: `--chat-template` is given with a mode that asks in plain text.
        """
        from eval.samples.evaluation import Decoding
        from eval.sets.fewshot import FEW_SHOT, PAL

        chat, usual = self.mode not in (FEW_SHOT, PAL), 0.0 if self.samples == 1 else 0.7
        if self.chat_template is not None and not chat:
            raise BadValue(
                f"--mode {self.mode} asks in plain text, without a chat template: leave "
                "--chat-template out"
            )
        return Decoding(
            samples=self.samples,
            temperature=usual if self.temperature is None else self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            seed=self.seed,
            chat=chat,
            system=self.system_prompt,
        )

    @property
    def service(self) -> "Service | None":
        """The server of the model, with the key from the environment; None without a server.

        Raises:
            BadValue: the interface or the variable does not exist, or a request cannot carry the
                key.
        """
        from core.samplers.served import Service

        if self.server is None:
            return None
        api = self.checked_api()
        variable = self.api_key_env or "OPENAI_API_KEY"
        key = os.environ.get(variable, "").strip()
        if self.api_key_env and not key:
            raise BadValue(f"--api-key-env {variable}: no key in this environment variable")
        if not key.isascii() or not key.isprintable():
            raise BadValue(f"the key in {variable} has characters that no request can carry")
        return Service(url=self.server, api=api, key=key or None)

    def checked_api(self) -> Literal["completions", "chat"]:
        """Return the interface of the server, "completions" by default.

        Raises:
            BadValue: there is no such interface, or other options exclude it.
        """
        if self.api in (None, "completions"):
            return "completions"
        if self.api != "chat":
            raise BadValue(f"--api {self.api}: expected completions or chat")
        if self.mode != "cot":
            raise BadValue(
                f"--api chat asks with user turns alone: --mode {self.mode} needs completions"
            )
        if self.chat_template is not None:
            raise BadValue(
                "--api chat asks by the server's own template: leave --chat-template out"
            )
        return "chat"


def check_options(ctx: typer.Context) -> None:
    """Raise if an option is given that the chosen kind of evaluation ignores.

    Raises:
        BadValue: the first such option, and the options that it goes with.
    """
    options = {p.name or "": p.opts[0] for p in ctx.command.params} | {"model": "MODEL"}
    names = [name for name in options if is_on_command_line(ctx, name)]
    kind = next(filter(names.__contains__, TAKES))
    for name in names:
        if name not in TAKES[kind]:
            suitable = " or ".join(options[k] for k in TAKES if name in TAKES[k])
            raise BadValue(f"{options[name]} goes with {suitable}, not with {options[kind]}")


def is_on_command_line(ctx: typer.Context, name: str) -> bool:
    """Return whether the user gave this parameter."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
