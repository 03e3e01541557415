"""HTTP answers within bounds: one deadline for headers and body together, and a largest size."""

import json
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from socket import socket
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LARGEST = 2**25  # bytes of an answer; 100,000 tokens with their log-probabilities are a third of it
PIECE = 2**16  # bytes per read


class TooLarge(Exception):
    """Error raised for an answer of more than `LARGEST` bytes."""


class BoundedReader(RawIOBase):
    """Reader of the bytes of one answer. The timeout of the socket bounds the whole answer.

    Raises:
        TimeoutError: the answer takes longer than the timeout.
        TooLarge: the answer has more than `LARGEST` bytes.
    """

    def __init__(self, connection: socket):
        self.connection = connection
        self.source = cast(RawIOBase, connection.makefile("rb", buffering=0))
        self.deadline = monotonic() + (connection.gettimeout() or float("inf"))
        self.left = LARGEST

    def readable(self) -> bool:
        """See `RawIOBase.readable`."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int | None:
        """See `RawIOBase.readinto`."""
        seconds = self.deadline - monotonic()
        if seconds <= 0:
            raise TimeoutError("timed out")
        if self.deadline < float("inf"):
            self.connection.settimeout(seconds)
        count = self.source.readinto(buffer)
        self.left -= count or 0
        if self.left < 0:
            raise TooLarge
        return count

    def close(self) -> None:
        """See `RawIOBase.close`."""
        self.source.close()
        super().close()


class BoundedResponse(HTTPResponse):
    """A response that is read through a `BoundedReader`, its status line included."""

    def __init__(
        self, sock: socket, debuglevel: int = 0, method: str | None = None, url: str | None = None
    ):
        super().__init__(sock, debuglevel, method, url)
        self.fp.close()
        self.fp = BufferedReader(BoundedReader(sock))


class BoundedConnection(HTTPConnection):
    """A connection over HTTP whose answers are bounded."""

    response_class = BoundedResponse


class BoundedTlsConnection(HTTPSConnection):
    """A connection over HTTPS whose answers are bounded."""

    response_class = BoundedResponse


class BoundedPool(HTTPConnectionPool):
    """Connections over HTTP whose answers are bounded."""

    ConnectionCls: Any = BoundedConnection  # Any: the declared protocol fits no class of urllib3


class BoundedTlsPool(HTTPSConnectionPool):
    """Connections over HTTPS whose answers are bounded."""

    ConnectionCls: Any = BoundedTlsConnection  # Any: as above


class BoundedAdapter(HTTPAdapter):
    """Transport adapter of a `requests` session; its connections bound the answers they read."""

    def init_poolmanager(
        self, connections: int, maxsize: int, block: bool = False, **pool_kwargs: object
    ) -> None:
        """See `HTTPAdapter.init_poolmanager`."""
        super().init_poolmanager(connections, maxsize, block, **pool_kwargs)
        pools = {"http": BoundedPool, "https": BoundedTlsPool}
        self.poolmanager.pool_classes_by_scheme = pools


def bounded_session(connections: int) -> requests.Session:
    """Return a session for up to `connections` simultaneous connections.

    The session ignores proxy settings. Answers are not compressed, so their size is the size
    received.
    """
    session = requests.Session()
    session.trust_env = False  # a server of one's own is not behind a proxy
    # A connection is not kept: the server drops idle ones while the policy is trained.
    session.headers.update({"Connection": "close", "Accept-Encoding": "identity"})
    for scheme in ("http://", "https://"):
        session.mount(scheme, BoundedAdapter(pool_maxsize=connections))
    return session


def exchange(
    session: requests.Session, method: str, url: str, *, timeout_s: float, **content: Any
) -> tuple[requests.Response, bytes]:
    """Send one request; return the answer and its body. Redirects are not followed."""
    answer = session.request(
        method, url, timeout=timeout_s, allow_redirects=False, stream=True, **content
    )
    with answer:
        return answer, b"".join(answer.raw.stream(PIECE, decode_content=False))


def parse_json(body: bytes) -> Any:  # Any: of JSON
    """Parse a JSON body.

    Raises:
        ValueError: the body is not JSON (`Infinity` and `NaN` are refused) or is nested too
            deeply.
    """
    try:
        return json.loads(body, parse_constant=refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def refuse_constant(name: str) -> None:
    """Raise `ValueError` for a constant such as `Infinity`, which JSON does not have."""
    raise ValueError(f"{name} is not JSON")
