"""Waiting in an event loop of asyncio or of trio, and so in one of anyio."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable


class Waiter(Protocol):
    """What a task waits for, and another thread sets."""

    def set(self, value: Any) -> None:
        """Ends the wait with a value or an exception. Any thread may call it. It does nothing after the first time, and once the loop is
        closed."""

    async def wait(self) -> Any:
        """Waits for the value. Raises the exception."""


def waiter() -> Waiter:
    """Returns a waiter for the running event loop.

    Raises:
        RuntimeError: There is none.
    """
    return _TrioWaiter() if is_trio() else _AsyncioWaiter()


class _AsyncioWaiter:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[Any] = self._loop.create_future()

    def set(self, value: Any) -> None:
        self._loop.call_soon_threadsafe(self._settle, value)

    def _settle(self, value: Any) -> None:
        if self._future.done():
            return
        if isinstance(value, BaseException):
            self._future.set_exception(value)
        else:
            self._future.set_result(value)

    async def wait(self) -> Any:
        return await self._future


class _TrioWaiter:
    def __init__(self) -> None:
        trio = _trio()
        self._token: Any = trio.lowlevel.current_trio_token()
        self._event: Any = trio.Event()
        self._value: Any = None

    def set(self, value: Any) -> None:
        self._value = value
        self._token.run_sync_soon(self._event.set)

    async def wait(self) -> Any:
        await self._event.wait()
        if isinstance(self._value, BaseException):
            raise self._value
        return self._value


def _trio() -> Any:
    return sys.modules.get("trio")


def is_trio() -> bool:
    """Whether the code runs in a task of trio."""
    trio = _trio()
    if trio is None:
        return False
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


def running() -> Any:
    """Returns the running event loop: of asyncio, or the token of trio's; None if there is none."""
    if is_trio():
        return _trio().lowlevel.current_trio_token()
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def sleep(seconds: float) -> None:
    """Waits."""
    await (_trio().sleep(seconds) if is_trio() else asyncio.sleep(seconds))


async def all_of(works: Iterable[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Runs functions at the same time. The first exception cancels the others, and is raised."""
    if is_trio():
        await _all_of_trio(works)
        return
    tasks = [asyncio.ensure_future(work()) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _all_of_trio(works: Iterable[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    raised: list[Exception] = []

    async def guarded(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except Exception as error:
            # The nursery would raise a group.
            raised.append(error)
            nursery.cancel_scope.cancel()

    async with _trio().open_nursery() as nursery:
        for work in works:
            nursery.start_soon(guarded, work)
    if raised:
        raise raised[0]


def submit_to_trio(
    function: Callable[..., Coroutine[Any, Any, Any]], arguments: tuple[Any, ...], token: Any, done: Callable[[Any], object]
) -> Callable[[], None]:
    """Starts a task in a loop of trio from another thread, and returns the function that cancels it. ``done`` receives a future."""
    import contextvars
    from concurrent.futures import CancelledError, Future

    trio = _trio()
    scope = trio.CancelScope()
    context = contextvars.copy_context()

    async def work() -> None:
        future: Future[Any] = Future()
        with scope:
            try:
                future.set_result(await function(*arguments))
            except trio.Cancelled:
                raise
            except BaseException as error:
                future.set_exception(error)
        if not future.done():
            future.set_exception(CancelledError())
        done(future)

    def cancel() -> None:
        try:
            token.run_sync_soon(scope.cancel)
        except trio.RunFinishedError:
            pass

    # A task of the system: the one that started the run waits, and has no nursery.
    token.run_sync_soon(lambda: trio.lowlevel.spawn_system_task(work, context=context))
    return cancel
