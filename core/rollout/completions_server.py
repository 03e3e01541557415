"""A server of completions over HTTP: found when it is needed, its faults told in one line."""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from threading import Event, Lock
from time import monotonic, sleep
from typing import Any, TypeVar

import requests
from tenacity import RetryCallState, Retrying, retry_if_exception, sleep_using_event
from tenacity.wait import wait_random_exponential
from urllib3.exceptions import HTTPError, InvalidHeader, ProtocolError, ReadTimeoutError
from urllib3.util import Retry

from core.errors import EngineError
from core.rollout.bounded_http import LARGEST, TooLarge, bounded_session, exchange, parsed
from eval.errors import BadValue
from eval.terminal import say

AT_ONCE = 256  # requests in flight; a server batches them
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, 529})  # what may be over a moment later
GARBLED = 3  # answers to one request that are no JSON, until it is given up
LONGEST_WAIT_S = 1e9  # of what `Retry-After` can say
PAUSE = wait_random_exponential(multiplier=0.5, max=30)  # seconds
SAID = 300  # characters of a server's own words in an error
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
        self.http = bounded_session(AT_ONCE)
        if key is not None:
            self.http.headers["Authorization"] = f"Bearer {key}"
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
        while (health := self.health()) is not None:
            if monotonic() >= end:
                raise EngineError(
                    f"{self} is away after {self.timeout_s:g} s ({health}): {self.away}"
                )
            sleep(min(1.0, max(0.0, end - monotonic())))

    def health(self) -> str | None:
        """Return what is wrong with the server; None when it is up."""
        try:
            answer, _ = self.send("GET", "/health")
        except (requests.RequestException, HTTPError, TooLarge) as error:
            return type(error).__name__
        return None if is_success(answer) else f"answers {answer.status_code}"

    def send(self, method: str, path: str, **content: Any) -> tuple[requests.Response, bytes]:
        """Return the answer to one request, and its body."""
        return exchange(self.http, method, self.url + path, timeout_s=self.timeout_s, **content)

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
            answer, body = self.send(method, path, **content)
        except (requests.Timeout, ReadTimeoutError) as error:
            self.reached |= not isinstance(error, requests.ConnectTimeout)
            raise Unanswered(
                f"{self} did not answer {path} within {self.timeout_s:g} s: {self.slow}"
            ) from None
        except TooLarge:
            raise EngineError(
                f"{self} answered {path} with more than {LARGEST >> 20} MiB: expected one answer"
            ) from None
        except (requests.RequestException, HTTPError) as error:
            self.reached |= isinstance(error, ProtocolError) or isinstance(
                next(iter(error.args), None), ProtocolError
            )
            raise Unanswered(
                f"{self} died or broke off at {path} ({type(error).__name__}): {self.broken}"
            ) from None
        self.reached = True
        if not is_success(answer):
            raise self.refusal(path, answer, body)
        try:
            found = parsed(body) if body else None
        except ValueError as error:
            raise Unanswered(
                f"{self} answered {path} with no JSON: {error}", tries=GARBLED
            ) from None
        self.answered = monotonic()
        return found

    def refusal(self, path: str, answer: requests.Response, body: bytes) -> EngineError:
        """Return the error of an answer that is none of success."""
        if answer.is_redirect:
            return EngineError(
                f"{self} redirects {path} ({answer.status_code}) to "
                f"{self.quoted(answer.headers['Location'])}, where no prompt is sent: give the "
                "address of the server itself"
            )
        said = self.quoted(body.decode(errors="replace"))
        refusal = f"{self} refused {path}: {answer.status_code} {said}"
        if answer.status_code not in PASSING:
            return EngineError(refusal)
        wait_s = retry_after(answer)
        wish = "" if wait_s is None else f" (it asks to wait {wait_s:.0f} s)"
        return Unanswered(refusal + wish, wait_s=wait_s)

    @contextmanager
    def reading(self, path: str, expected: str) -> Generator[None]:
        """Say in one line where an answer has another form than expected.

        Raises:
            EngineError: a value is missing, or is of another type.
        """
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            said = self.quoted(f"{type(error).__name__}: {error}")
            raise EngineError(
                f"{self} answered {path} with another form ({said}): expected {expected}"
            ) from None

    def quoted(self, text: str) -> str:
        """Return a server's own words on one line, cut short and without the key."""
        line = " ".join(text.split())
        return (line.replace(self.key, "***") if self.key else line)[:SAID]

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
                say(f"{fault(state).args[0]}; asking again")

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


def is_success(answer: requests.Response) -> bool:
    """Return whether an answer is what was asked for: no redirect and no error."""
    return 200 <= answer.status_code < 300


def retry_after(answer: requests.Response) -> float | None:
    """Seconds of `Retry-After`, as a number or a date; None without one."""
    try:
        wait_s = Retry().get_retry_after(answer.raw)
    except (InvalidHeader, ValueError, OverflowError):
        return None
    return None if wait_s is None else float(min(wait_s, LONGEST_WAIT_S))
