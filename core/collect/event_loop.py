"""An event loop on its own thread, so that async reward functions keep their connections."""

import asyncio
import threading
import weakref
from collections.abc import Coroutine
from typing import TypeVar

Result = TypeVar("Result")


class AsyncLoop:
    """Event loop that runs coroutines from synchronous code, also inside a notebook's own loop.

    The loop starts with the first coroutine. It stops when this object is garbage-collected or the
    interpreter exits.
    """

    def __init__(self):
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[object, None, Result]) -> Result:
        """Wait for a coroutine and return its result."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            thread = threading.Thread(target=self._loop.run_forever, daemon=True)
            thread.start()
            weakref.finalize(self, close_loop, self._loop, thread)
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


def close_loop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Stop the loop, join its thread and release its resources."""
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
