"""Client of a completions server over HTTP: retries, patience and one-line error messages."""

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
from core.rollout.bounded_http import LARGEST, TooLarge, bounded_session, exchange, parse_json
from eval.errors import BadValue
from eval.terminal import say

AT_ONCE = 256  # requests in flight; a server batches them
RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504, 529})  # statuses of temporary failures
GARBLED = 3  # answers to one request that are not JSON before it fails
LONGEST_WAIT_S = 1e9  # upper bound of `Retry-After`
PAUSE = wait_random_exponential(multiplier=0.5, max=30)  # seconds
QUOTED_CHARS = 300  # of a server's own text in an error message
REPORT_S = 60.0  # seconds between two lines about retries
POLL_S = 0.1  # between two requests to a server that starts
Body = TypeVar("Body")
Answer = TypeVar("Answer")


class Unanswered(EngineError):
    """Error of a request that may succeed when it is sent again.

    Attributes:
        wait_s: seconds to wait first, if the server states them.
        tries: number of failures of this kind after which the request is not sent again.
    """

    def __init__(self, text: str, *, wait_s: float | None = None, tries: float = float("inf")):
        super().__init__(text)
        self.wait_s = wait_s
        self.tries = tries


class Server:
    """Client of a completions server.

    A request that fails for a temporary reason is sent again until the server has answered nothing
    for `patience_s`. A server that was never reached is not waited for. Error messages call the
    server `name` and end with advice: `away`, `slow` or `broken`.

    Args:
        url: address of the server.
        timeout_s: seconds to wait for the server to start, and for each answer.
        patience_s: seconds without any answer after which failed requests are not sent again.
        key: API key that is sent with every request; no message shows it.

    Raises:
        BadValue: the address is no HTTP address.
        EngineError: the server is away, too slow, dies or refuses a request.
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
        self.reached = False  # whether the server has ever been connected to
        self.answered = monotonic()  # time of the last successful answer
        self.ended = Event()  # set: no request is sent again
        self.report_lock = Lock()
        self.last_report = -REPORT_S

    def __str__(self) -> str:
        return f"the {self.name} at {self.url}"

    def wait(self) -> None:
        """Wait until the server is up.

        Raises:
            EngineError: the server is not up after `timeout_s`.
        """
        end = monotonic() + self.timeout_s
        while (health := self.health()) is not None:
            if monotonic() >= end:
                raise EngineError(
                    f"{self} is away after {self.timeout_s:g} s ({health}): {self.away}"
                )
            sleep(min(POLL_S, max(0.0, end - monotonic())))

    def health(self) -> str | None:
        """Return what is wrong with the server; None when it is up."""
        try:
            answer, _ = self.send("GET", "/health")
        except (requests.RequestException, HTTPError, TooLarge) as error:
            return type(error).__name__
        return None if is_success(answer) else f"answers {answer.status_code}"

    def send(self, method: str, path: str, **content: object) -> tuple[requests.Response, bytes]:
        """Send one request; return the answer and its body."""
        return exchange(self.http, method, self.url + path, timeout_s=self.timeout_s, **content)

    def call(self, method: str, path: str, **content: object) -> Any:
        """Send a request, again after temporary failures; return its answer, parsed from JSON."""
        patient = Retrying(
            retry=retry_if_exception(self.is_retryable),
            wait=retry_wait,
            stop=self.stops_retrying,
            sleep=sleep_using_event(self.ended),
            before_sleep=self.report_retry,
            reraise=True,
        )
        return patient(self.call_once, method, path, **content)

    def call_once(self, method: str, path: str, **content: object) -> Any:
        """Send a request once; return its answer, parsed from JSON; None for an empty body.

        Raises:
            Unanswered: the request failed and may succeed when it is sent again.
            EngineError: the answer is too large, or the server refuses the request.
        """
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
            content_json = parse_json(body) if body else None
        except ValueError as error:
            raise Unanswered(
                f"{self} answered {path} with no JSON: {error}", tries=GARBLED
            ) from None
        self.answered = monotonic()
        return content_json

    def refusal(self, path: str, answer: requests.Response, body: bytes) -> EngineError:
        """Return the error for an answer whose status is not a success."""
        if answer.is_redirect:
            return EngineError(
                f"{self} redirects {path} ({answer.status_code}) to "
                f"{self.quote(answer.headers['Location'])}, where no prompt is sent: give the "
                "address of the server itself"
            )
        quote = self.quote(body.decode(errors="replace"))
        refusal = f"{self} refused {path}: {answer.status_code} {quote}"
        if answer.status_code not in RETRYABLE:
            return EngineError(refusal)
        wait_s = retry_after(answer)
        advice = "" if wait_s is None else f" (it asks to wait {wait_s:.0f} s)"
        return Unanswered(refusal + advice, wait_s=wait_s)

    @contextmanager
    def reading(self, path: str, expected: str) -> Generator[None]:
        """Turn errors of parsing an answer into a one-line `EngineError`.

        Raises:
            EngineError: a value is missing or has another type than `expected` describes.
        """
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            quote = self.quote(f"{type(error).__name__}: {error}")
            raise EngineError(
                f"{self} answered {path} with another form ({quote}): expected {expected}"
            ) from None

    def quote(self, text: str) -> str:
        """Return server text on one line, at most `QUOTED_CHARS` characters, without the key."""
        line = " ".join(text.split())
        return (line.replace(self.key, "***") if self.key else line)[:QUOTED_CHARS]

    def is_retryable(self, error: BaseException) -> bool:
        """Return whether a request that failed with this error is to be sent again."""
        if not isinstance(error, Unanswered) or not self.reached:
            return False
        return error.wait_s is None or error.wait_s <= self.patience_s

    def stops_retrying(self, state: RetryCallState) -> bool:
        """Return whether to stop retrying: too long without an answer, or too many attempts."""
        error = last_error(state)
        silent_s = min(monotonic() - self.answered, state.seconds_since_start or 0.0)
        return (
            self.ended.is_set()
            or silent_s >= self.patience_s
            or state.attempt_number >= error.tries
        )

    def report_retry(self, state: RetryCallState) -> None:
        """Print on standard error what is being retried, at most once per `REPORT_S` seconds."""
        with self.report_lock:
            if monotonic() - self.last_report >= REPORT_S:
                self.last_report = monotonic()
                say(f"{last_error(state).args[0]}; asking again")

    def map_unordered(
        self, send: Callable[[Body], Answer], bodies: Sequence[Body]
    ) -> Iterator[tuple[int, Answer]]:
        """Send requests concurrently; yield (index, answer) pairs in the order of completion.

        After one request fails, the answers of those in flight are still yielded; then its error is
        raised.

        Args:
            send: function that sends one request and returns its answer.
            bodies: the arguments of `send`.
        """
        self.ended.clear()
        first_error: BaseException | None = None
        with ThreadPoolExecutor(max(1, min(AT_ONCE, len(bodies)))) as pool:
            indices = {pool.submit(send, body): index for index, body in enumerate(bodies)}
            try:
                for completed in as_completed(indices):
                    if completed.cancelled():
                        continue
                    error = completed.exception()
                    if error is None:
                        yield indices[completed], completed.result()
                    elif first_error is None:
                        first_error = error
                        self.ended.set()
                        for future in indices:
                            future.cancel()
            finally:
                self.ended.set()
                pool.shutdown(cancel_futures=True)
        if first_error is not None:
            raise first_error


def last_error(state: RetryCallState) -> Unanswered:
    """Return the error of the last attempt."""
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, Unanswered)
    return error


def retry_wait(state: RetryCallState) -> float:
    """Return the seconds until the next attempt: those of `Retry-After` plus a random backoff."""
    return (last_error(state).wait_s or 0.0) + PAUSE(state)


def is_success(answer: requests.Response) -> bool:
    """Return whether an answer has a success status: neither a redirect nor an error."""
    return 200 <= answer.status_code < 300


def retry_after(answer: requests.Response) -> float | None:
    """Return the seconds of `Retry-After`, a number or a date; None without this header."""
    try:
        wait_s = Retry().get_retry_after(answer.raw)
    except (InvalidHeader, ValueError, OverflowError):
        return None
    return None if wait_s is None else float(min(wait_s, LONGEST_WAIT_S))
