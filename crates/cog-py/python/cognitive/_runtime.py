"""The runtime and its streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _cognitive

if TYPE_CHECKING:
    import asyncio
    import os
    from collections.abc import Iterable
    from types import TracebackType

    from typing_extensions import Self, Unpack

    from ._cognitive import Module, Report, Result


class RunOptions(TypedDict, total=False):
    """The options of one run. An option that is missing or None comes from the module or from the settings."""

    provider: str | None
    """The provider, or several in call order: ``"openai,anthropic"``."""
    model: str | None
    """The model of the first provider."""
    timeout: float | None
    """The maximum duration in seconds."""
    strict: bool | None
    """Whether every repair is a violation."""
    max_attempts: int | None
    """The maximum number of calls to the model, 1 to 10."""
    on_violation: Literal["continue", "abort", "retry"] | None
    """What happens when the answer violates its schema while it arrives."""
    chunk_type: Literal["delta", "snapshot"] | None
    """How content is streamed."""
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None
    """How much the model thinks."""
    verbosity: Literal["low", "medium", "high"] | None
    """How much the model writes."""
    service_tier: Literal["auto", "standard", "flex", "priority"] | None
    """The class of service at the provider."""
    risk: Literal["none", "low", "medium", "high"] | None
    """The risk of the run."""
    max_tool_rounds: int | None
    """The maximum number of rounds of tool calls."""
    max_tool_calls: int | None
    """The maximum number of tool calls."""
    handoff_to: str | None
    """The agent that the run hands over to."""


class CognitiveRuntime:
    """Loads and runs modules. It is created once, and can be used from any thread and any event loop.

    Providers, keys and limits come from environment variables, ``./cog.toml`` and ``~/.config/cog/config.toml``. The arguments
    replace them.

    Args:
        streaming: Whether ``execute_stream`` streams. Without it, a stream has one data chunk with the complete answer.
        multimodal: Whether inputs may have media. Without it, they fail with E4011.
        provider: The provider, or several in call order: ``"openai,anthropic"``; ``"offline"`` calls no model.
        model: The model of the first provider.
        timeout: The maximum duration of a run, in seconds.
        strict: Whether every repair of an answer is a violation.
        modules: Directories of further modules, or directories that contain modules.
    """

    def __init__(
        self,
        *,
        streaming: bool = True,
        multimodal: bool = True,
        provider: str | None = None,
        model: str | None = None,
        timeout: float | None = None,
        strict: bool | None = None,
        modules: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        self._native = _cognitive.Runtime(
            streaming=streaming,
            multimodal=multimodal,
            provider=provider,
            model=model,
            timeout=timeout,
            strict=strict,
            modules=list(modules),
        )

    def names(self) -> list[str]:
        """The names of all modules, as ``cog list`` finds them."""
        return self._native.names()

    def load(self, module: str | os.PathLike[str] | Module) -> Module:
        """Loads a module by name or path.

        Raises:
            CognitiveError: E4006 if there is no such module, E4008 if its files are invalid.
        """
        return self._native.load(module)

    def validate(
        self, module: str | os.PathLike[str] | Module, *, level: Literal["v2.2", "v2.5"] | None = None
    ) -> Report:
        """Checks the files of a module, and the modules that it calls.

        Raises:
            CognitiveError: E4006 if there is no such module.
        """
        return self._native.validate(module, level)

    def execute(
        self, module: str | os.PathLike[str] | Module, input: Any, **options: Unpack[RunOptions]
    ) -> Result:
        """Runs a module, and returns its result. Other threads run meanwhile; Ctrl-C cancels the run.

        Args:
            module: A name, a path, or a loaded module.
            input: The input: a dict, a dataclass or a Pydantic model. A text becomes the text field of the module's input. In
                it, bytes become media, and ``pathlib.Path`` objects become files.

        Returns:
            The result, also of a run that failed: ``result.ok`` says which, and ``result.raise_for_error()`` raises.

        Raises:
            TypeError: The input has an object that JSON cannot represent.
            ValueError: The input has a number that JSON cannot represent, or contains itself.
        """
        return self._native.execute(module, input, options)

    async def execute_async(
        self, module: str | os.PathLike[str] | Module, input: Any, **options: Unpack[RunOptions]
    ) -> Result:
        """Runs a module as ``execute`` does, without blocking the event loop. Cancelling the task cancels the run."""
        import asyncio

        loop = asyncio.get_running_loop()
        done: asyncio.Future[Result] = loop.create_future()
        call = self._native.start(
            module, input, options, lambda result: loop.call_soon_threadsafe(_settle, done, result)
        )
        try:
            return await done
        finally:
            call.cancel()

    def execute_stream(
        self, module: str | os.PathLike[str] | Module, input: Any, **options: Unpack[RunOptions]
    ) -> ChunkStream:
        """Runs a module, and returns its chunks: for ``for`` and for ``async for``. The run starts when the first one is read.

        The first chunk raises ``CognitiveError`` if the run is refused before the provider is called.

        Raises:
            TypeError: The input has an object that JSON cannot represent.
            ValueError: The input has a number that JSON cannot represent, or contains itself.
        """
        return ChunkStream(self._native.stream(module, input, options))

    def __repr__(self) -> str:
        return f"<CognitiveRuntime: {self._native.note}>"


class ChunkStream:
    """The chunks of a run, each as a dict. Closing or dropping it cancels the run.

    >>> for chunk in runtime.execute_stream("code-reviewer", {"code": "eval(input())"}):
    ...     print(chunk)
    """

    def __init__(self, chunks: _cognitive.Chunks) -> None:
        self._chunks = chunks

    @property
    def result(self) -> Result | None:
        """The result of the run; None before the last chunk was read."""
        return self._chunks.result

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
        """Cancels the run, unless it has ended."""
        self._chunks.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> dict[str, Any]:
        chunk = self._chunks.next()
        if chunk is None:
            raise StopIteration
        return chunk

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> dict[str, Any]:
        while (chunk := self._chunks.take()) is None:
            if self._chunks.is_over:
                raise StopAsyncIteration
            await _ready(self._chunks)
        return chunk

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


async def _ready(chunks: _cognitive.Chunks) -> None:
    """Waits until there is a chunk, or no further one."""
    import asyncio

    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def notify() -> None:
        loop.call_soon_threadsafe(_settle, ready, None)

    if chunks.wake(notify):
        return
    try:
        await ready
    finally:
        chunks.forget(notify)


def _settle(future: asyncio.Future[Any], value: object) -> None:
    """Sets the result of a future, unless its task was cancelled."""
    if not future.done():
        future.set_result(value)
