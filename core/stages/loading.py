"""Loading of a model that answers: precision, device, engine and batch."""

import gc
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.models.chat_templates import template_text
from core.models.folders import ADAPTERS, locate
from core.samplers.serve_command import VLLM_SERVE, command_words
from core.settings.resolved import Resolved
from core.settings.run_settings import EVAL_ENGINES
from core.stages.kernels import advise_on_bfloat16
from eval.errors import BadValue, UnknownName

if TYPE_CHECKING:  # torch and transformers, which the plan of a run must not wait for
    from torch import device as Device
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from core.models.scorers import ScoringHead
    from core.samplers.policy import PolicySampler, TokenSampler

DTYPES = ("auto", "bfloat16", "float16", "float32")


@dataclass(frozen=True, kw_only=True)
class Loading:
    """The options with which a model is loaded to answer.

    Attributes:
        dtype: The precision of the weights; "auto" is that of the model's files.
        device: The device; None for the GPU if there is one, else the CPU.
        batch_size: The number of completions decoded at a time, which changes them by rounding only
            and is no part of a question. None for as many as the free memory of a GPU holds, see
            `rows_in_memory`.
        engine: The engine that answers benchmarks: "native", "vllm" in this process, or "server".
        tensor_parallel: The number of visible GPUs that each layer is spread over by vLLM.
        serve: The command that starts a server for the model, see `StartedServer`; precision and
            device are options of that command.
        chat_template: "plain" or a file, which replaces the model's own template.
        trust_code: Whether Python code in the model's folder may run.

    Raises:
        UnknownName, BadValue: there is no such precision, engine or device, the batch is below 1,
            or an option has no effect in this engine.
    """

    dtype: str = "float32"
    device: str | None = None
    batch_size: int | None = None
    engine: str = "native"
    tensor_parallel: int = 1
    serve: str = VLLM_SERVE
    chat_template: str | None = None
    trust_code: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise UnknownName("dtype", self.dtype, DTYPES)
        if self.batch_size is not None and self.batch_size < 1:
            raise BadValue(f"batch_size={self.batch_size}: expected at least 1")
        if self.engine not in EVAL_ENGINES:
            raise UnknownName("engine", self.engine, EVAL_ENGINES)
        if self.tensor_parallel < 1:
            raise BadValue(f"tensor_parallel={self.tensor_parallel}: expected at least 1")
        self._check_engine_options()
        if self.engine == "server":
            self._check_server()
        elif self.serve != VLLM_SERVE:
            raise BadValue(
                f"serve={self.serve!r}: no server is started; leave it out, or give --engine server"
            )
        if self.device is not None:
            check_device(self.device)

    def _check_engine_options(self) -> None:
        """Check that the GPUs and the device are options of the engine."""
        if self.engine != "vllm" and self.tensor_parallel > 1:
            raise BadValue(
                f"tensor_parallel={self.tensor_parallel} is for vLLM in this process: the native "
                "engine answers on one device, and a server takes it in its command; leave it out, "
                "or give --engine vllm"
            )
        if self.engine != "native" and self.device is not None:
            raise BadValue(
                f"device={self.device}: vLLM takes the GPUs that it sees; choose them with "
                "CUDA_VISIBLE_DEVICES, or leave --engine out"
            )

    def _check_server(self) -> None:
        """Check the command of a server, and that no option is set which belongs in it."""
        command_words(self.serve, "model", 0)
        for name, value, allowed in (
            ("batch_size", self.batch_size, (None,)),
            ("dtype", self.dtype, ("auto", "float32")),
        ):
            if value not in allowed:
                raise BadValue(f"{name}={value}: a server takes it in its command; leave it out")

    @property
    def place(self) -> "Device":
        """The device on this machine."""
        import torch

        return torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))

    def __str__(self) -> str:
        if self.engine == "server":
            return f"by {self.serve}"
        return f"{self.dtype} on {self.place.type}" + (" by vLLM" if self.engine == "vllm" else "")

    @property
    def record_fields(self) -> dict[str, object]:
        """The options, beside the precision, that answers depend on; empty for the usual ones."""
        source = self.chat_template
        template = {} if source is None else {"chat_template": template_text(source)}
        engines: dict[str, dict[str, object]] = {
            "native": {},
            "vllm": {"engine": self.engine, "tensor_parallel": self.tensor_parallel},
            "server": {"engine": self.engine, "serve": self.serve},
        }
        return {**engines[self.engine], **template}

    def answerer(self, model: str) -> "TokenSampler[Any]":
        """Load a model by name or folder into the engine that answers benchmarks.

        Raises:
            BadValue: the engine is vLLM or a server, and the model's folder holds adapters only.
            EngineError: vLLM is not installed, or the server does not start.
        """
        if self.engine == "native":
            return self.sampler(model)
        place = locate(model)
        if (Path(place) / ADAPTERS).is_file():
            raise BadValue(
                f"{model} holds adapters, which the engine {self.engine} does not add to their "
                "model here: merge them (peft's merge_and_unload), or evaluate with the engine "
                "native"
            )
        self.make_room()
        if self.engine == "server":
            from core.samplers.started import StartedSampler

            return StartedSampler(self.serve, place, self.tokenizer(model))
        from core.samplers.on_vllm import VllmSampler

        return VllmSampler(
            place,
            self.tokenizer(model),
            dtype=self.dtype,
            tensor_parallel=self.tensor_parallel,
            rows=self.batch_size,
        )

    def sampler(self, model: str) -> "PolicySampler":
        """Load a model by name or folder into the native engine.

        Raises:
            BadValue, DamagedFile, MissingFile, UnknownName: see `load_policy`.
        """
        from core.models.load import load_policy
        from core.samplers.policy import CHUNK, DEVICE_CHUNK, PolicySampler

        if self.dtype == "bfloat16" and self.place.type == "cpu":
            advise_on_bfloat16()
        self.make_room()
        policy: Any = load_policy(model, self.dtype, trust_code=self.trust_code)  # Any: half typed
        return PolicySampler(
            policy.eval().to(self.place),
            self.tokenizer(model),
            rows=self.batch_size,
            chunk=CHUNK if self.place.type == "cpu" else DEVICE_CHUNK,
        )

    def scorer(self, model: str, head: "ScoringHead", seed: int | None) -> "PreTrainedModel":
        """Load a model that scores by name or folder; a seed draws a head that it lacks.

        Raises:
            BadValue: it lacks a head and there is no seed, or see `load_scorer`.
            DamagedFile, MissingFile, UnknownName: see `load_scorer`.
        """
        from core.models.scorers import load_drawn_scorer, load_trained_scorer

        self.make_room()
        options = {"dtype": self.dtype, "trust_remote_code": self.trust_code}
        scorer: Any = (  # Any: half typed
            load_trained_scorer(model, head, **options)
            if seed is None
            else load_drawn_scorer(model, head, seed, **options)
        )
        return scorer.eval().to(self.place)

    def denoiser(self, model: str) -> "PreTrainedModel":
        """Load a model that reads in both directions by name or folder.

        Raises:
            BadValue, DamagedFile, MissingFile, UnknownName: see `load_denoiser`.
        """
        from core.models.denoisers import load_denoiser

        self.make_room()
        options = {"dtype": self.dtype, "trust_remote_code": self.trust_code}
        denoiser: Any = load_denoiser(model, **options)  # Any: half typed
        return denoiser.eval().to(self.place)

    def tokenizer(self, model: str) -> "PreTrainedTokenizerBase":
        """Load the tokenizer of a model by name or folder.

        Raises:
            BadValue, DamagedFile, MissingFile, UnknownName: see `load_tokenizer`.
        """
        from core.models.load import load_tokenizer

        return load_tokenizer(model, self.chat_template, trust_code=self.trust_code)

    def make_room(self) -> None:
        """Free the memory of a trainer or an engine that is no longer used."""
        gc.collect()
        if self.place.type == "cuda":
            import torch

            torch.cuda.empty_cache()


def check_device(name: str) -> None:
    """Check that a device exists before anything loads.

    Raises:
        BadValue: the name is no device, or the device is not on this machine.
    """
    if name == "cpu":
        return
    import torch

    try:
        if torch.device(name).type not in ("cpu", "cuda"):
            raise BadValue(f"device={name}: expected cpu, cuda or cuda:N")
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).split("\n")[0]
        raise BadValue(f"device={name}: {reason}; expected cpu, or cuda:N with that GPU") from error


def loading_of(resolved: Resolved) -> Loading:
    """Return the loading of a run's policies in the native engine.

    Device and precision are those of the training.
    """
    config = resolved.config
    dtype = "float32" if config.get("bf16") is False else "bfloat16"  # unset is on, as in TRL
    return Loading(
        dtype="float16" if config.get("fp16") else dtype,
        device="cpu" if config.get("use_cpu") else None,
        chat_template=resolved.run.chat_template,
        trust_code=bool(config.get("trust_remote_code")),
    )


def scoring_of(resolved: Resolved) -> Loading:
    """Return the loading of a run's policies in the engine that answers benchmarks.

    vLLM and a server choose their device themselves, whatever the training uses.
    """
    run, loading = resolved.run, loading_of(resolved)
    if run.eval_engine == "native":
        return loading
    if run.eval_engine == "server":
        serve = run.eval_server or VLLM_SERVE
        return replace(loading, dtype="auto", device=None, engine="server", serve=serve)
    spread = run.eval_tensor_parallel
    return replace(loading, device=None, engine=run.eval_engine, tensor_parallel=spread)
