"""Answers of a model behind an OpenAI-compatible server: vLLM, SGLang, `transformers serve`."""

from collections.abc import Sequence
from typing import Any, TypedDict

from core.errors import EngineError
from core.rollout.remote import Server
from core.rollout.sampler import ChunkedSampler
from core.rollout.stops import before_stop
from eval.errors import BadValue
from eval.scoring import Completion, Decoding

TIMEOUT_S = 600.0  # for one answer, its time in the server's queue included
REPEATS = 16  # answers equal to the first of their prompt, and none that is not: no sampling


class Answer(TypedDict):
    """What is kept of a server's answer."""

    text: str
    tokens: int
    finish: str
    stop: str | None  # the stop string that ended it, if the server tells


class ServerSampler(ChunkedSampler[Answer]):
    """Samples over `/v1/completions`, one request with a seed of its own for each completion.

    The prompts are written with the tokenizer here, so they are those of `PolicySampler`, and
    `model` is the name that the server knows the model by. Whether the same seed gives the same
    answer is up to the server.

    Raises:
        EngineError: the server is away or fails, does not serve this model, or answers greedily
            when it is asked to sample.
    """

    def __init__(self, url: str, model: str, tokenizer: Any, timeout_s: float = TIMEOUT_S):
        super().__init__(tokenizer)
        self.model = model
        self.server = Server(url.removesuffix("/").removesuffix("/v1"), timeout_s=timeout_s)

    def draw(self, prompts: list[list[int]], decoding: Decoding, seeds: list[int]) -> list[Answer]:
        """See `ChunkedSampler.draw`."""
        settings = {
            "model": self.model,
            "max_tokens": decoding.max_tokens,
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "stop": list(decoding.stop) or None,
        }
        asked = {name: value for name, value in settings.items() if value is not None}
        bodies = [
            {**asked, "prompt": self.text(ids), "seed": seed % 2**31}
            for ids, seed in zip(prompts, seeds, strict=True)
        ]
        answers = [answer for _, answer in sorted(self.server.each(self.ask, bodies))]
        if decoding.temperature > 0:
            self.check_sampled([body["prompt"] for body in bodies], answers)
        return answers

    def check_sampled(self, prompts: Sequence[str], answers: Sequence[Answer]) -> None:
        """Refuse a server that takes a temperature and does not use it."""
        first: dict[str, str] = {}
        pairs = [
            (first.setdefault(p, a["text"]), a["text"])
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
        found = self.server.call("POST", "/v1/completions", json=body)
        try:
            (choice,) = found["choices"]
            return Answer(
                text=str(choice["text"]),
                tokens=int(found["usage"]["completion_tokens"]),
                finish=str(choice["finish_reason"]),
                stop=choice.get("stop_reason"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise EngineError(
                f"{self.server} answered without {error}: expected choices and usage as OpenAI's "
                "/v1/completions gives them"
            ) from None

    def text(self, ids: list[int]) -> str:
        """What the server's tokenizer turns into these ids.

        Raises:
            BadValue: there is no such text.
        """
        text = self.tokenizer.decode(ids)
        for candidate in (text, text.removeprefix(self.tokenizer.bos_token or "")):
            if self.tokenizer(candidate)["input_ids"] == ids:
                return candidate
        raise BadValue(
            f"the prompt {text[:80]!r} ... is text that its tokenizer reads as other tokens, and a "
            "server takes text: evaluate without --server"
        )

    def completion(self, drawn: Answer, stop: Sequence[str] = ()) -> Completion:
        """See `ChunkedSampler.completion`."""
        head = before_stop(drawn["text"], stop)
        stopped = head is not None or drawn["stop"] in stop
        text = drawn["text"] if head is None else head
        cut = drawn["finish"] == "length" and not stopped
        return Completion(text, drawn["tokens"], truncated=cut, stopped=stopped)
