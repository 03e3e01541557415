"""One event loop on its own thread, so that async reward functions keep their connections."""

import asyncio
import threading
import weakref
from collections.abc import Coroutine
from typing import Any


class AsyncLoop:
    """Runs coroutines to their end from ordinary code, inside a notebook's loop too.

    The loop starts with the first coroutine and stops when this object is collected or the
    interpreter ends.
    """

    def __init__(self):
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(
        self, coroutine: Coroutine[Any, Any, Any]
    ) -> Any:  # Any: whatever the coroutine returns
        """Wait for the coroutine's result."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            thread = threading.Thread(target=self._loop.run_forever, daemon=True)
            thread.start()
            weakref.finalize(self, close_loop, self._loop, thread)
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


def close_loop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Stop the loop, wait for its thread and free what it holds."""
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
