"""Waiting where gevent runs several greenlets in a thread: the others go on, and ``gevent.Timeout`` ends the wait."""

from __future__ import annotations

import sys

# Type checkers know this name.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def is_active() -> bool:
    """Whether gevent has replaced the threads of the program."""
    monkey: Any = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


class Signal:
    """What another thread sets, and a greenlet waits for."""

    def __init__(self) -> None:
        import gevent
        from gevent.event import Event

        self._event = Event()
        # The loop of gevent does not know what it waits for otherwise.
        self._watcher = gevent.get_hub().loop.async_()
        self._watcher.start(self._event.set)

    def set(self) -> None:
        """Ends the wait. Any thread may call it."""
        self._watcher.send()

    def close(self) -> None:
        """Ends its use. Whoever sets it later does nothing."""
        self._watcher.stop()
        self._watcher.close()
        self.set = lambda: None  # type: ignore[method-assign]

    def wait(self) -> None:
        """Waits until it is set, and resets it."""
        self._event.wait()
        self._event.clear()


class Results:
    """A queue that other threads put results into, and a greenlet waits for."""

    def __init__(self) -> None:
        from collections import deque

        self._waiting: deque[Any] = deque()
        self._signal = Signal()

    def put(self, result: Any) -> None:
        """Adds a result. Any thread may call it."""
        self._waiting.append(result)
        self._signal.set()

    def get(self) -> Any:
        """Waits for a result."""
        while not self._waiting:
            self._signal.wait()
        return self._waiting.popleft()

    def close(self) -> None:
        """Ends its use."""
        self._signal.close()


def finished(start: Callable[[Callable[[Any], object]], Any]) -> Any:
    """Starts a run, and waits for its result. ``start`` gets what receives the result."""
    results = Results()
    try:
        call = start(results.put)
        try:
            result = results.get()
        finally:
            call.cancel()
    finally:
        results.close()
    if isinstance(result, BaseException):
        raise result
    return result


def next_chunk(chunks: Any) -> Any:
    """Waits for the next chunk of a stream; None after the last."""
    signal = Signal()

    def notify() -> None:
        signal.set()

    try:
        while (chunk := chunks.take()) is None:
            if chunks.is_over:
                return None
            if not chunks.wake(notify):
                try:
                    signal.wait()
                finally:
                    chunks.forget(notify)
        return chunk
    finally:
        signal.close()
