"""A server of completions over HTTP: found when it is needed, its faults told in one line."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from time import monotonic, sleep
from typing import Any, TypeVar

import requests
from requests.adapters import HTTPAdapter

from core.errors import EngineError
from eval.errors import BadValue

AT_ONCE = 256  # requests in flight; a server batches them
Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class Server:
    """`url`: where it is; `timeout_s`: how long to wait for it to come up, and for each answer.

    Messages call it `name`, and say what to do when it is away, slow, or has broken off.

    Raises:
        BadValue: the address is none of HTTP.
        EngineError: it is away, slow or dies, or refuses a request.
    """

    name = "server"
    away = "start it, or give another address"
    slow = "see its log"
    broken = "start it again, then give the same command"

    def __init__(self, url: str, *, timeout_s: float):
        if not url.startswith(("http://", "https://")):
            raise BadValue(f"{self.name} at {url!r}: expected an address such as http://host:8000")
        self.url = url.rstrip("/")
        self.timeout_s = timeout_s
        self.http = requests.Session()
        self.http.trust_env = False  # a server of one's own is not behind a proxy
        # A connection is not kept: the server drops idle ones while the policy is trained.
        self.http.headers["Connection"] = "close"
        for scheme in ("http://", "https://"):
            self.http.mount(scheme, HTTPAdapter(pool_maxsize=AT_ONCE))

    def __str__(self) -> str:
        return f"the {self.name} at {self.url}"

    def wait(self) -> None:
        """Return when the server is up."""
        end = monotonic() + self.timeout_s
        while True:
            try:
                answer = self.http.get(self.url + "/health", timeout=self.timeout_s)
                found = f"answers {answer.status_code}"
            except requests.RequestException as error:
                answer, found = None, type(error).__name__
            if answer is not None and answer.ok:
                return
            if monotonic() >= end:
                raise EngineError(
                    f"{self} is away after {self.timeout_s:g} s ({found}): {self.away}"
                )
            sleep(min(1.0, max(0.0, end - monotonic())))

    def call(self, method: str, path: str, **content: Any) -> Any:
        """What the server answers, from JSON."""
        try:
            answer = self.http.request(method, self.url + path, timeout=self.timeout_s, **content)
            if answer.ok:
                return answer.json() if answer.content else None
        except requests.Timeout:
            raise EngineError(
                f"{self} did not answer {path} within {self.timeout_s:g} s: {self.slow}"
            ) from None
        except requests.RequestException as error:
            raise EngineError(
                f"{self} died or broke off at {path} ({type(error).__name__}): {self.broken}"
            ) from None
        text = " ".join(answer.text.split())[:300]
        raise EngineError(f"{self} refused {path}: {answer.status_code} {text}")

    def each(
        self, ask: Callable[[Asked], Answer], asked: Sequence[Asked]
    ) -> Iterator[tuple[int, Answer]]:
        """The number of what was asked and its answer, as they come."""
        with ThreadPoolExecutor(min(AT_ONCE, len(asked))) as pool:
            numbers = {pool.submit(ask, one): number for number, one in enumerate(asked)}
            try:
                for answer in as_completed(numbers):
                    yield numbers[answer], answer.result()
            finally:
                pool.shutdown(cancel_futures=True)
