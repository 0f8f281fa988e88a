"""Calls of Python functions by runs, on threads of the runtime. The native part uses this."""

from __future__ import annotations

import contextvars
import functools
import logging
import os
import sys
import threading

# Type checkers know this name.
TYPE_CHECKING = False

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine
    from typing import Any

#: The maximum number of runs that functions of runs start within each other.
MAX_DEPTH = 8
#: The maximum length of the message of an exception, for a model.
MAX_MESSAGE = 2000

_log = logging.getLogger("cognitive")
_depth: contextvars.ContextVar[int] = contextvars.ContextVar("cognitive.depth", default=0)
#: What the tools and checks of the run receive.
current_deps: contextvars.ContextVar[object] = contextvars.ContextVar("cognitive.deps", default=None)
#: The event loops of the package by depth: a function that blocks its loop must not block the runs that it starts.
_loops: dict[int, asyncio.AbstractEventLoop] = {}
_lock = threading.Lock()


def _forget_loops() -> None:
    """A forked process has no threads of its parent."""
    global _lock
    _lock = threading.Lock()
    _loops.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_loops)


def new_context(deps: object) -> contextvars.Context:
    """Returns the context of the functions of a new run, with the ``deps`` that its tools and checks receive."""
    depth = _depth.get() + 1
    if depth > MAX_DEPTH:
        raise RecursionError(f"functions of runs start runs more than {MAX_DEPTH} deep")
    context = contextvars.copy_context()
    context.run(_depth.set, depth)
    context.run(current_deps.set, deps)
    return context


def running_loop() -> Any:
    """Returns the event loop that runs this code: of asyncio, or the token of trio's; None if there is none."""
    if "asyncio" not in sys.modules and "trio" not in sys.modules:
        return None
    from ._loops import running

    return running()


def own_loop(context: contextvars.Context) -> asyncio.AbstractEventLoop:
    """Returns the event loop for asynchronous functions of a run whose caller has none."""
    import asyncio

    depth = context[_depth]
    with _lock:
        loop = _loops.get(depth)
        if loop is None:
            loop = _loops[depth] = asyncio.new_event_loop()
            _start(functools.partial(_serve, loop), "cognitive-loop")
        return loop


def _start(work: Callable[[], object], name: str) -> None:
    """Starts a thread of the system, also where gevent makes greenlets of threads: they would wait for the thread that waits for them."""
    monkey: Any = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        monkey.get_original("_thread", "start_new_thread")(work, ())
    else:
        threading.Thread(target=work, name=name, daemon=True).start()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Runs a loop as long as the process lives, also after a function raised KeyboardInterrupt, which its run receives."""
    while True:
        try:
            loop.run_forever()
        except BaseException:
            continue


def start_thread(
    context: contextvars.Context,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    done: Callable[[Any], object],
) -> None:
    """Calls a function on a thread of its own, which does not keep the interpreter from ending."""

    def work() -> None:
        from concurrent.futures import Future

        future: Future[Any] = Future()
        try:
            future.set_result(context.run(function, *arguments))
        except BaseException as error:
            future.set_exception(error)
        try:
            done(future)
        finally:
            # The traceback of an exception refers to this frame.
            del future

    _start(work, "cognitive-call")


def submit(
    function: Callable[..., Coroutine[Any, Any, Any]],
    arguments: tuple[Any, ...],
    loop: asyncio.AbstractEventLoop | Any,
    done: Callable[[Any], object],
) -> Callable[[], None]:
    """Starts a task in a loop of another thread, and returns the function that cancels it. The loop is one of asyncio, or the token of
    trio's."""
    import asyncio

    if not isinstance(loop, asyncio.AbstractEventLoop):
        from ._loops import submit_to_trio

        return submit_to_trio(function, arguments, loop, done)
    work = function(*arguments)
    try:
        future = asyncio.run_coroutine_threadsafe(work, loop)
    except RuntimeError:
        work.close()
        raise
    future.add_done_callback(done)

    def cancel() -> None:
        if not loop.is_closed():
            future.cancel()

    return cancel


def tool_failed(tool: str, error: BaseException) -> tuple[str, str, Any]:
    """Describes the exception of a tool for the model, and logs one that was not meant for it."""
    from ._errors import ToolError

    if isinstance(error, ToolError):
        return error.error_type, error.message, error.details
    _log.error("the tool %r raised an exception; the model receives its message", tool, exc_info=error)
    forget_locals(error)
    return type(error).__name__, _message(error), None


def provider_failed(name: str, error: BaseException) -> tuple[str, str]:
    """Returns the code and the message of the exception of a provider."""
    from ._errors import ProviderError

    forget_locals(error)
    if isinstance(error, ProviderError):
        return error.code, error.message
    return _code(error), f"the provider `{name}` failed: {type(error).__name__}: {_message(error)}"


def forget_locals(error: BaseException | None) -> None:
    """Frees the local variables of the functions that an exception went through. A result keeps the exception, and its traceback."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        trace = error.__traceback__
        while trace is not None:
            try:
                trace.tb_frame.clear()
            except RuntimeError:
                pass  # it is still being executed
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


def _code(error: BaseException) -> str:
    """Returns the code of an exception. Those of vendors' clients have the status of HTTP."""
    status = getattr(error, "status_code", None)
    if status == 429:
        return "E4002"
    if status == 413:
        return "E4003"
    is_timeout = isinstance(error, TimeoutError) or type(error).__name__.endswith(("Timeout", "TimeoutError"))
    return "E2011" if is_timeout else "E4001"


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = ""
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"
