"""Answers of a model behind an OpenAI-compatible server: vLLM, SGLang, `transformers serve`."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypedDict

from core.errors import EngineError
from core.rollout.chat import Asked, Turns, turns_of
from core.rollout.completions_server import Server
from core.rollout.samplers.policy import ChunkedSampler, Prompt, TokenSampler
from core.rollout.stops import before_stop
from eval.errors import BadValue
from eval.samples.evaluation import Completion, Decoding

TIMEOUT_S = 600.0  # for one answer, its time in the server's queue included
PATIENCE_S = 600.0  # for a server that is busy, or away for a while
REPEATS = 16  # answers equal to the first of their prompt, and none that is not: no sampling


class Answer(TypedDict):
    """What is kept of a server's answer."""

    text: str
    tokens: int
    finish: str
    stop: str | int | None  # the stop string or token that ended it, if the server tells


class ServerSampler(ChunkedSampler[Prompt, Answer]):
    """Samples over HTTP, one request with a seed of its own for each completion.

    `model` is the name that the server knows the model by. Whether the same seed gives the same
    answer is up to the server. Each answer enters the journal as it comes.

    Raises:
        EngineError: the server is away or fails, does not serve this model, or answers greedily
            when it is asked to sample.
    """

    path: str  # of the requests
    server: Server
    model: str

    @abstractmethod
    def question(self, prompt: Prompt) -> dict[str, Any]:
        """The fields of a request that hold the prompt."""

    @abstractmethod
    def written(self, choice: Mapping[str, Any]) -> str:
        """The text of a choice among the server's."""

    def once(self, prompts: list[Prompt], decoding: Decoding, seeds: list[int]) -> list[Answer]:
        """See `ChunkedSampler.once`."""
        if self.journal is None:
            return self.draw(prompts, decoding, seeds)
        pairs = list(zip(prompts, seeds, strict=True))
        asked = [{"prompt": prompt, **asdict(decoding), "seed": seed} for prompt, seed in pairs]
        answers = self.journal.each(
            asked, lambda missing: self.some(prompts, decoding, seeds, missing)
        )
        self.check_sampled(prompts, answers, decoding)
        return answers

    def draw(self, prompts: list[Prompt], decoding: Decoding, seeds: list[int]) -> list[Answer]:
        """See `ChunkedSampler.draw`."""
        found = sorted(self.counted(self.some(prompts, decoding, seeds, range(len(prompts)))))
        answers = [answer for _, answer in found]
        self.check_sampled(prompts, answers, decoding)
        return answers

    def some(
        self, prompts: list[Prompt], decoding: Decoding, seeds: list[int], numbers: Sequence[int]
    ) -> Iterator[tuple[int, Answer]]:
        """The answers to the prompts of these numbers, as they come."""
        settings = {
            "model": self.model,
            "max_tokens": decoding.max_tokens,
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "stop": list(decoding.stop) or None,
        }
        asked = {name: value for name, value in settings.items() if value is not None}
        bodies = [{**asked, **self.question(prompts[n]), "seed": seeds[n] % 2**31} for n in numbers]
        for place, answer in self.server.each(self.ask, bodies):
            yield numbers[place], answer

    def check_sampled(
        self, prompts: Sequence[Prompt], answers: Sequence[Answer], decoding: Decoding
    ) -> None:
        """Refuse a server that takes a temperature and does not use it."""
        if decoding.temperature == 0:
            return
        first: dict[str, str] = {}
        pairs = [
            (first.setdefault(repr(p), a["text"]), a["text"])
            for p, a in zip(prompts, answers, strict=True)
        ]
        if len(pairs) - len(first) >= REPEATS and all(old == new for old, new in pairs):
            raise EngineError(
                f"{self.server} gives every sample of a prompt the same text, though asked for a "
                "temperature: have it sample (`transformers serve` needs do_sample in the model's "
                "generation_config.json)"
            )

    def ask(self, body: dict[str, Any]) -> Answer:
        """The answer to one request."""
        found = self.server.call("POST", self.path, json=body)
        form = f"choices and usage as OpenAI's {self.path} gives them"
        with self.server.reading(self.path, form):
            (choice,) = found["choices"]
            return Answer(
                text=self.written(choice),
                tokens=token_count(found["usage"]["completion_tokens"]),
                finish=answer_text(choice["finish_reason"], "finish_reason"),
                stop=stop_reason(choice.get("stop_reason")),
            )

    def completion(self, drawn: Answer, stop: Sequence[str] = ()) -> Completion:
        """See `ChunkedSampler.completion`."""
        head = before_stop(drawn["text"], stop)
        stopped = head is not None or drawn["stop"] in stop
        text = drawn["text"] if head is None else head
        cut = drawn["finish"] == "length" and not stopped
        return Completion(text, drawn["tokens"], truncated=cut, stopped=stopped)


class CompletionsSampler(TokenSampler[Answer], ServerSampler[list[int]]):
    """Samples over `/v1/completions`: prompts are written here, so they are `PolicySampler`'s."""

    path = "/v1/completions"

    def __init__(self, server: Server, model: str, tokenizer: Any):
        super().__init__(tokenizer)
        self.server = server
        self.model = model

    def question(self, prompt: list[int]) -> dict[str, Any]:
        """See `ServerSampler.question`.

        Raises:
            BadValue: there is no text that the server's tokenizer turns into these ids.
        """
        text = self.tokenizer.decode(prompt)
        for candidate in (text, text.removeprefix(self.tokenizer.bos_token or "")):
            if self.tokenizer(candidate)["input_ids"] == prompt:
                return {"prompt": candidate}
        raise BadValue(
            f"the prompt {text[:80]!r} ... is text that its tokenizer reads as other tokens, and a "
            "server takes text: evaluate without --server, or with --api chat"
        )

    def written(self, choice: Mapping[str, Any]) -> str:
        """See `ServerSampler.written`."""
        return answer_text(choice["text"])


class ChatSampler(ServerSampler[Turns]):
    """Samples over `/v1/chat/completions`: the server applies its own chat template."""

    path = "/v1/chat/completions"

    def __init__(self, server: Server, model: str):
        super().__init__()
        self.server = server
        self.model = model

    def encode(
        self, prompt: Asked, start: str = "", *, chat: bool = True, system: str | None = None
    ) -> Turns:
        """See `ChunkedSampler.encode`.

        Raises:
            BadValue: the prompt is no user turn alone.
        """
        if start or not chat:
            raise BadValue("--api chat asks with user turns alone: expected --api completions")
        return turns_of(prompt, system)

    def prompt_tokens(self, *_: object, **__: object) -> int:
        """Unknown: see `ChunkedSampler.prompt_tokens`."""
        return 0

    def question(self, prompt: Turns) -> dict[str, Any]:
        """See `ServerSampler.question`."""
        return {"messages": prompt}

    def written(self, choice: Mapping[str, Any]) -> str:
        """See `ServerSampler.written`; a model that came to no answer wrote none."""
        content = choice["message"]["content"]
        return "" if content is None else answer_text(content)


def answer_text(value: object, name: str = "text") -> str:
    """Return a text of a server's answer.

    Raises:
        TypeError: the value is no string.
        ValueError: it holds half of a surrogate pair, which is no character.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r:.80}, expected a string")
    value.encode()
    return value


def token_count(value: object) -> int:
    """Return a number of tokens of a server's answer.

    Raises:
        TypeError: the value is no integer of at least 0.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"completion_tokens is {value!r:.80}, expected an integer of at least 0")
    return value


def stop_reason(value: object) -> str | int | None:
    """Return what ended an answer: a stop string, a token, or None where the server does not tell.

    Raises:
        TypeError: the value is of another type.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise TypeError(f"stop_reason is {value!r:.80}, expected a string, a token id or null")
    return value


@dataclass(frozen=True, kw_only=True)
class Service:
    """Where a served model is, what it is asked by, and the key that goes along."""

    url: str
    api: Literal["completions", "chat"] = "completions"
    key: str | None = field(default=None, repr=False)

    @property
    def recorded(self) -> dict[str, str]:
        """What samples say of it: never the key."""
        return {"server": self.url} | ({} if self.api == "completions" else {"api": self.api})

    def server(self) -> Server:
        """The server, which is asked again where it fails for a while.

        Raises:
            BadValue: the address is none of HTTP.
        """
        base = self.url.removesuffix("/").removesuffix("/v1")
        return Server(base, timeout_s=TIMEOUT_S, patience_s=PATIENCE_S, key=self.key)
