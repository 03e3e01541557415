"""Samplers for a model behind an OpenAI-compatible server: vLLM, SGLang, `transformers serve`."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias, TypedDict

from core.bounded_templates import Tokenizer
from core.errors import EngineError
from core.rollout.chat import ChatPrompt, Messages, chat_messages
from core.rollout.completions_server import Server
from core.rollout.stops import before_stop
from core.samplers.policy import ChunkedSampler, Prompt, TokenSampler
from eval.errors import BadValue
from eval.json_lines import JsonObject
from eval.samples.evaluation import Completion, Decoding

Choice: TypeAlias = JsonObject
TIMEOUT_S = 600.0  # for one answer, its time in the server's queue included
PATIENCE_S = 600.0  # for a server that is busy, or away for a while
MOST_TOKENS = 2**31 - 1  # that an answer may state; a record sums them
REPEATS = 16  # repeated answers from which a server without a differing one does not sample


class Answer(TypedDict):
    """Fields of a server's answer that the journal stores."""

    text: str
    tokens: int
    finish: str
    stop: str | int | None  # the stop string or token that ended it, if the server tells


class ServerSampler(ChunkedSampler[Prompt, Answer]):
    """Base of samplers over HTTP, which send one request with its own seed per completion.

    `model` is the server's name for the model. Whether equal seeds give equal answers depends on
    the server. Each answer enters the journal as it arrives.

    Raises:
        EngineError: the server is away or fails, does not serve this model, or answers greedily
            although it is asked to sample.
    """

    path: str  # of the requests
    server: Server
    model: str

    @abstractmethod
    def prompt_fields(self, prompt: Prompt) -> dict[str, object]:
        """Return the fields of a request body that hold the prompt."""

    @abstractmethod
    def choice_text(self, choice: Choice) -> str:
        """Return the text of one of an answer's `choices`."""

    def draw_journaled(
        self, prompts: list[Prompt], decoding: Decoding, seeds: list[int]
    ) -> list[Answer]:
        """See `ChunkedSampler.draw_journaled`."""
        if self.journal is None:
            return self.draw(prompts, decoding, seeds)
        pairs = list(zip(prompts, seeds, strict=True))
        requests = [{"prompt": prompt, **asdict(decoding), "seed": seed} for prompt, seed in pairs]
        answers = self.journal.get_or_compute_all(
            requests, lambda missing: self.request_answers(prompts, decoding, seeds, missing)
        )
        self.check_sampled(prompts, answers, decoding)
        return answers

    def draw(self, prompts: list[Prompt], decoding: Decoding, seeds: list[int]) -> list[Answer]:
        """See `ChunkedSampler.draw`."""
        indexed_answers = sorted(
            self.report_progress(
                self.request_answers(prompts, decoding, seeds, range(len(prompts)))
            )
        )
        answers = [answer for _, answer in indexed_answers]
        self.check_sampled(prompts, answers, decoding)
        return answers

    def request_answers(
        self, prompts: list[Prompt], decoding: Decoding, seeds: list[int], indices: Sequence[int]
    ) -> Iterator[tuple[int, Answer]]:
        """Yield (index, answer) for the prompts at these indices, in the order of arrival."""
        settings = {
            "model": self.model,
            "max_tokens": decoding.max_tokens,
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "stop": list(decoding.stop) or None,
        }
        fields = {name: value for name, value in settings.items() if value is not None}
        bodies = [
            {**fields, **self.prompt_fields(prompts[index]), "seed": seeds[index] % 2**31}
            for index in indices
        ]
        for place, answer in self.server.map_unordered(self.ask, bodies):
            yield indices[place], answer

    def check_sampled(
        self, prompts: Sequence[Prompt], answers: Sequence[Answer], decoding: Decoding
    ) -> None:
        """Raise `EngineError` if the server ignores the temperature.

        It does if at least `REPEATS` answers equal the first answer to their prompt, and none
        differs.
        """
        if decoding.temperature == 0:
            return
        first: dict[str, str] = {}
        pairs = [
            (first.setdefault(repr(prompt), answer["text"]), answer["text"])
            for prompt, answer in zip(prompts, answers, strict=True)
        ]
        if len(pairs) - len(first) >= REPEATS and all(old == new for old, new in pairs):
            raise EngineError(
                f"{self.server} gives every sample of a prompt the same text, though asked for a "
                "temperature: have it sample (`transformers serve` needs do_sample in the model's "
                "generation_config.json)"
            )

    def ask(self, body: dict[str, object]) -> Answer:
        """Send one request and return its answer."""
        content = self.server.call("POST", self.path, json=body)
        form = f"choices and usage as OpenAI's {self.path} gives them"
        with self.server.reading(self.path, form):
            (choice,) = content["choices"]
            return Answer(
                text=self.choice_text(choice),
                tokens=token_count(content["usage"]["completion_tokens"]),
                finish=answer_text(choice["finish_reason"], "finish_reason"),
                stop=stop_reason(choice.get("stop_reason")),
            )

    def completion(self, raw: Answer, stop: Sequence[str] = ()) -> Completion:
        """See `ChunkedSampler.completion`."""
        head = before_stop(raw["text"], stop)
        stopped = head is not None or raw["stop"] in stop
        text = raw["text"] if head is None else head
        is_cut = raw["finish"] == "length" and not stopped
        return Completion(text, raw["tokens"], truncated=is_cut, stopped=stopped)


class CompletionsSampler(TokenSampler[Answer], ServerSampler[list[int]]):
    """Sampler over `/v1/completions`; its prompts, encoded here, equal those of `PolicySampler`."""

    path = "/v1/completions"

    def __init__(self, server: Server, model: str, tokenizer: Tokenizer):
        super().__init__(tokenizer)
        self.server = server
        self.model = model

    def prompt_fields(self, prompt: list[int]) -> dict[str, object]:
        """See `ServerSampler.prompt_fields`.

        Raises:
            BadValue: no text is tokenized to these ids.
        """
        text = self.tokenizer.decode(prompt)
        for candidate in (text, text.removeprefix(self.tokenizer.bos_token or "")):
            if self.tokenizer(candidate)["input_ids"] == prompt:
                return {"prompt": candidate}
        raise BadValue(
            f"no text gives the tokens of the prompt {text[:80]!r} ..., and a server takes text: "
            "evaluate without --server, or with --api chat"
        )

    def choice_text(self, choice: Choice) -> str:
        """See `ServerSampler.choice_text`."""
        return answer_text(choice["text"])


class ChatSampler(ServerSampler[Messages]):
    """Sampler over `/v1/chat/completions`, whose server applies its own chat template."""

    path = "/v1/chat/completions"

    def __init__(self, server: Server, model: str):
        super().__init__()
        self.server = server
        self.model = model

    def encode(
        self, prompt: ChatPrompt, start: str = "", *, chat: bool = True, system: str | None = None
    ) -> Messages:
        """See `ChunkedSampler.encode`.

        Raises:
            BadValue: an answer's start is given, or `chat` is False.
        """
        if start or not chat:
            raise BadValue("--api chat takes user messages alone: expected --api completions")
        return chat_messages(prompt, system)

    def prompt_tokens(self, *_: object, **__: object) -> int:
        """Return 0, as the number is unknown; see `ChunkedSampler.prompt_tokens`."""
        return 0

    def prompt_fields(self, prompt: Messages) -> dict[str, object]:
        """See `ServerSampler.prompt_fields`."""
        return {"messages": prompt}

    def choice_text(self, choice: Choice) -> str:
        """See `ServerSampler.choice_text`. A missing content is an empty text."""
        content = choice["message"]["content"]
        return "" if content is None else answer_text(content)


def answer_text(value: object, name: str = "text") -> str:
    """Return a text field of a server's answer.

    Raises:
        TypeError: the value is no string.
        ValueError: it holds half of a surrogate pair, which is no character.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r:.80}, expected a string")
    value.encode()
    return value


def token_count(value: object) -> int:
    """Return the number of tokens that a server's answer states.

    Raises:
        TypeError: the value is no integer from 0 to `MOST_TOKENS`.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_TOKENS:
        raise TypeError(
            f"completion_tokens is {value!r:.80}, expected an integer from 0 to {MOST_TOKENS}"
        )
    return value


def stop_reason(value: object) -> str | int | None:
    """Return what ended an answer: a stop string, a token id, or None if the server omits it.

    Raises:
        TypeError: the value is of another type.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise TypeError(f"stop_reason is {value!r:.80}, expected a string, a token id or null")
    return value


@dataclass(frozen=True, kw_only=True)
class Service:
    """Address, API and key of a served model."""

    url: str
    api: Literal["completions", "chat"] = "completions"
    key: str | None = field(default=None, repr=False)

    @property
    def record_fields(self) -> dict[str, str]:
        """Fields about the server that sample files hold; they never include the key."""
        return {"server": self.url} | ({} if self.api == "completions" else {"api": self.api})

    def server(self) -> Server:
        """Return a client of the server that retries requests for up to `PATIENCE_S`.

        Raises:
            BadValue: the address is no HTTP address.
        """
        base = self.url.removesuffix("/").removesuffix("/v1")
        return Server(base, timeout_s=TIMEOUT_S, patience_s=PATIENCE_S, key=self.key)
