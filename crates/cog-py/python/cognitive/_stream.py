"""The chunks of a run as they arrive."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from . import _cognitive

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    from ._cognitive import Result


class Closing:
    """A stream that is closed at the end of its ``with`` or ``async with``."""

    def close(self) -> None:
        """Cancels the run, unless it has ended."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ChunkStream(Closing):
    """The chunks of a run, each as a dict. Closing or dropping it cancels the run.

    >>> for chunk in runtime.execute_stream("code-reviewer", {"code": "eval(input())"}):
    ...     print(chunk)
    """

    def __init__(self, chunks: _cognitive.Chunks, kept: Callable[[Result], Result]) -> None:
        self._chunks = chunks
        self._kept = kept

    @property
    def result(self) -> Result | None:
        """The result of the run; None before the last chunk was read."""
        result = self._chunks.result
        return None if result is None else self._kept(result)

    @property
    def data(self) -> Any:
        """The answer so far; None before its first chunk."""
        result = self.result
        if result is None:
            return self._chunks.data
        return result.data if result.ok else result.partial_data

    def display(self) -> None:
        """Shows the answer in a notebook while it arrives. ``result`` is available then."""
        from ._display import display

        display(self)

    def close(self) -> None:
        self._chunks.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> dict[str, Any]:
        chunk = self._next()
        if chunk is None:
            raise StopIteration
        return chunk

    def _next(self) -> dict[str, Any] | None:
        if "gevent" in sys.modules:
            from . import _gevent

            if _gevent.is_active():
                chunk: dict[str, Any] | None = _gevent.next_chunk(self._chunks)
                return chunk
        return self._chunks.next()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> dict[str, Any]:
        while (chunk := self._chunks.take()) is None:
            if self._chunks.is_over:
                raise StopAsyncIteration
            await _ready(self._chunks)
        return chunk


async def _ready(chunks: _cognitive.Chunks) -> None:
    """Waits until there is a chunk, or no further one."""
    from ._loops import waiter

    ready = waiter()

    def notify() -> None:
        ready.set(None)

    if chunks.wake(notify):
        return
    try:
        await ready.wait()
    except BaseException:
        # A consumer that is cancelled reads no further chunk, and the traceback may keep the stream for long.
        chunks.close()
        raise
    finally:
        chunks.forget(notify)
