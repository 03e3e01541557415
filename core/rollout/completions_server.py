"""A server of completions over HTTP: found when it is needed, its faults told in one line."""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event, Lock
from time import monotonic, sleep
from typing import Any, TypeVar

import requests
from requests.adapters import HTTPAdapter
from tenacity import RetryCallState, Retrying, retry_if_exception, sleep_using_event
from tenacity.wait import wait_random_exponential
from urllib3.exceptions import InvalidHeader, ProtocolError
from urllib3.util import Retry

from core.errors import EngineError
from eval.errors import BadValue
from eval.tables.filters import visible

AT_ONCE = 256  # requests in flight; a server batches them
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, 529})  # what may be over a moment later
GARBLED = 3  # answers to one request that are no JSON, until it is given up
PAUSE = wait_random_exponential(multiplier=0.5, max=30)  # seconds
TOLD_S = 60.0  # between two lines about waiting
Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class Unanswered(EngineError):
    """A request that may be answered when it is asked again: in `wait_s`, if the server says so.

    After `tries` of the same kind it is given up.
    """

    def __init__(self, text: str, *, wait_s: float | None = None, tries: float = float("inf")):
        super().__init__(text)
        self.wait_s = wait_s
        self.tries = tries


class Server:
    """`url`: where it is; `timeout_s`: how long to wait for it to come up, and for each answer.

    A request that fails for a passing reason is asked again until the server has answered none for
    `patience_s`; a server that was never there is not waited for. `key` goes along with every
    request and into no message. Messages call it `name`, and say what to do when it is away, slow,
    or has broken off.

    Raises:
        BadValue: the address is none of HTTP.
        EngineError: it is away, slow or dies, or refuses a request.
    """

    name = "server"
    away = "start it, or give another address"
    slow = "see its log"
    broken = "start it again, then give the same command"

    def __init__(
        self, url: str, *, timeout_s: float, patience_s: float = 0.0, key: str | None = None
    ):
        if not url.startswith(("http://", "https://")):
            raise BadValue(f"{self.name} at {url!r}: expected an address such as http://host:8000")
        self.url = url.rstrip("/")
        self.timeout_s = timeout_s
        self.patience_s = patience_s
        self.key = key
        self.http = requests.Session()
        self.http.trust_env = False  # a server of one's own is not behind a proxy
        # A connection is not kept: the server drops idle ones while the policy is trained.
        self.http.headers["Connection"] = "close"
        if key is not None:
            self.http.headers["Authorization"] = f"Bearer {key}"
        for scheme in ("http://", "https://"):
            self.http.mount(scheme, HTTPAdapter(pool_maxsize=AT_ONCE))
        self.reached = False  # whether there has been a connection
        self.answered = monotonic()  # when it last gave what was asked for
        self.ended = Event()  # set: nothing is asked again
        self.telling = Lock()
        self.told = -TOLD_S

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
        patient = Retrying(
            retry=retry_if_exception(self.passing),
            wait=pause,
            stop=self.given_up,
            sleep=sleep_using_event(self.ended),
            before_sleep=self.tell,
            reraise=True,
        )
        return patient(self.once, method, path, **content)

    def once(self, method: str, path: str, **content: Any) -> Any:
        """What the server answers to one request."""
        try:
            answer = self.http.request(
                method,
                self.url + path,
                timeout=self.timeout_s,
                allow_redirects=False,
                **content,
            )
            self.reached = True
            if answer.ok and not answer.is_redirect:
                found = answer.json() if answer.content else None
                self.answered = monotonic()
                return found
        except requests.Timeout as error:
            self.reached |= isinstance(error, requests.ReadTimeout)
            raise Unanswered(
                f"{self} did not answer {path} within {self.timeout_s:g} s: {self.slow}"
            ) from None
        except requests.JSONDecodeError:
            raise Unanswered(f"{self} answered {path} with no JSON", tries=GARBLED) from None
        except requests.RequestException as error:
            self.reached |= isinstance(next(iter(error.args), None), ProtocolError)
            raise Unanswered(
                f"{self} died or broke off at {path} ({type(error).__name__}): {self.broken}"
            ) from None
        text = visible(" ".join(answer.text.split()))
        said = (text.replace(self.key, "***") if self.key else text)[:300]
        refusal = f"{self} refused {path}: {answer.status_code} {said}"
        if answer.status_code not in PASSING:
            raise EngineError(refusal)
        wait_s = retry_after(answer)
        wish = "" if wait_s is None else f" (it asks to wait {wait_s:.0f} s)"
        raise Unanswered(refusal + wish, wait_s=wait_s)

    def passing(self, error: BaseException) -> bool:
        """Whether a request that failed like this is worth another try."""
        if not isinstance(error, Unanswered) or not self.reached:
            return False
        return error.wait_s is None or error.wait_s <= self.patience_s

    def given_up(self, state: RetryCallState) -> bool:
        """Whether the server has answered nothing for too long, or this request too badly."""
        error = fault(state)
        silent_s = min(monotonic() - self.answered, state.seconds_since_start or 0.0)
        return (
            self.ended.is_set()
            or silent_s >= self.patience_s
            or state.attempt_number >= error.tries
        )

    def tell(self, state: RetryCallState) -> None:
        """Say on standard error what is waited for, now and then."""
        with self.telling:
            if monotonic() - self.told >= TOLD_S:
                self.told = monotonic()
                print(f"{fault(state).args[0]}; asking again", file=sys.stderr, flush=True)

    def each(
        self, ask: Callable[[Asked], Answer], asked: Sequence[Asked]
    ) -> Iterator[tuple[int, Answer]]:
        """The number of what was asked and its answer, as they come.

        When one fails, what is asked already may still be answered; then its error is raised.
        """
        self.ended.clear()
        failed: BaseException | None = None
        with ThreadPoolExecutor(max(1, min(AT_ONCE, len(asked)))) as pool:
            numbers = {pool.submit(ask, one): number for number, one in enumerate(asked)}
            try:
                for answer in as_completed(numbers):
                    if answer.cancelled():
                        continue
                    error = answer.exception()
                    if error is None:
                        yield numbers[answer], answer.result()
                    elif failed is None:
                        failed = error
                        self.ended.set()
                        for other in numbers:
                            other.cancel()
            finally:
                self.ended.set()
                pool.shutdown(cancel_futures=True)
        if failed is not None:
            raise failed


def fault(state: RetryCallState) -> Unanswered:
    """The error of the try that failed last."""
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, Unanswered)
    return error


def pause(state: RetryCallState) -> float:
    """Seconds until the next try: what the server asks for, and more at random after each try."""
    return (fault(state).wait_s or 0.0) + PAUSE(state)


def retry_after(answer: requests.Response) -> float | None:
    """Seconds of `Retry-After`, as a number or a date; None without one."""
    try:
        return Retry().get_retry_after(answer.raw)
    except InvalidHeader:
        return None
