"""Runs for many inputs, with a limit of simultaneous ones."""

from __future__ import annotations

import json
import sys
from collections.abc import Sized
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from ._cognitive import Result
from ._errors import CognitiveError
from ._loops import all_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from ._cognitive import Call
    from ._gevent import Results

_END: Any = object()


def map_rows(
    rows: Iterable[Any], concurrency: int, start: Callable[[Any, Callable[[Any], object]], Call], *, progress: bool = False
) -> list[Result]:
    """Runs each row, and returns the results in the order of the rows. ``start`` starts a run that notifies of its end."""
    results: dict[int, Result] = {}
    with Progress(progress, _length(rows)) as bar:
        for index, result in run_rows(enumerate(rows), concurrency, start):
            results[index] = result
            bar.add(result)
    return [results[index] for index in range(len(results))]


def run_rows(
    rows: Iterable[tuple[int, Any]], concurrency: int, start: Callable[[Any, Callable[[Any], object]], Call]
) -> Iterator[tuple[int, Result]]:
    """Runs rows with their positions, and yields each result as it arrives. Closing it cancels the runs."""
    check(concurrency)
    waiting = iter(rows)
    finished = _queue()
    running: dict[int, Call] = {}
    try:
        while True:
            while len(running) < concurrency and (row := next(waiting, _END)) is not _END:
                index, input = row
                try:
                    running[index] = start(input, _notify(finished, index))
                except CognitiveError:
                    raise
                except Exception as error:
                    yield index, refused(error)
            if not running:
                return
            index, result = finished.get()
            del running[index]
            if isinstance(result, BaseException):
                raise result
            yield index, result
    finally:
        for call in running.values():
            call.cancel()
        if not isinstance(finished, SimpleQueue):
            finished.close()


def _queue() -> SimpleQueue[tuple[int, Any]] | Results:
    """Returns the queue of results. Where gevent has replaced threads, other greenlets run while one waits for it."""
    if "gevent" in sys.modules:
        from . import _gevent

        if _gevent.is_active():
            return _gevent.Results()
    return SimpleQueue()


def _notify(finished: SimpleQueue[tuple[int, Any]] | Results, index: int) -> Callable[[Any], object]:
    """Returns what receives the result of a row."""
    return lambda result: finished.put((index, result))


async def map_rows_async(
    rows: Iterable[Any], concurrency: int, run: Callable[[Any], Awaitable[Result]], *, progress: bool = False
) -> list[Result]:
    """Runs each row as ``map_rows`` does, without blocking the event loop."""
    check(concurrency)
    waiting = enumerate(rows)
    results: dict[int, Result] = {}

    async def work() -> None:
        # The workers share the iterator: each takes the next row when it is done with its last one.
        for index, row in waiting:
            try:
                results[index] = await run(row)
            except CognitiveError:
                raise
            except Exception as error:
                results[index] = refused(error)
            bar.add(results[index])

    with Progress(progress, _length(rows)) as bar:
        await all_of([work] * concurrency)
    return [results[index] for index in range(len(results))]


class Progress:
    """A progress bar of tqdm, if it is wanted and installed: for terminals and notebooks."""

    def __init__(self, is_wanted: bool, total: int | None) -> None:
        self._bar: Any = None
        self._failed = 0
        if is_wanted:
            try:
                from tqdm.auto import tqdm
            except ModuleNotFoundError as error:
                raise ImportError("progress=True needs tqdm: pip install tqdm", name="tqdm") from error
            self._bar = tqdm(total=total, unit="row")

    def add(self, result: Result) -> None:
        """Counts a result."""
        if self._bar is None:
            return
        if not result.ok:
            self._failed += 1
            self._bar.set_postfix(failed=self._failed, refresh=False)
        self._bar.update()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _length(rows: Iterable[Any]) -> int | None:
    return len(rows) if isinstance(rows, Sized) else None


def check(concurrency: int) -> None:
    """Raises ``ValueError`` for a limit that allows no run."""
    if concurrency < 1:
        raise ValueError(f"concurrency: found {concurrency}; allowed: 1 and more")


def refused(error: Exception) -> Result:
    """Returns the result of an input that cannot be converted. What converts it may raise anything, such as for a damaged image."""
    return failure("E1003", str(error) or type(error).__name__)


def failure(code: str, message: str) -> Result:
    """Returns the result of a run that failed."""
    meta = {"confidence": 0.0, "risk": "high", "explain": message[:280]}
    return Result(json.dumps({"ok": False, "meta": meta, "error": {"code": code, "message": message}}))
