"""Providers: Python objects that answer instead of a vendor."""

from __future__ import annotations

import contextlib
import inspect
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from . import _cognitive
from ._cognitive import ModelRequest
from ._loops import sleep

#: The seconds after which a provider looks again whether its parts were read.
PAUSE = 0.01


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call that the model requests."""

    name: str
    """The name of the tool."""
    arguments: Mapping[str, Any]
    """The arguments."""
    id: str = field(default_factory=lambda: f"call_{secrets.token_hex(8)}")
    """The identifier to which the result refers."""


@dataclass(frozen=True)
class Reply:
    """The reply of a model, or the end of a stream."""

    text: str = ""
    """The answer, or the rest of it."""
    _: KW_ONLY
    tool_calls: Sequence[ToolCall] = ()
    """The calls that the model requests before it answers."""
    finish_reason: Literal["stop", "length", "refusal", "content_filter", "tool_calls"] | None = None
    """Why the model stopped; None if it is complete."""
    input_tokens: int | None = None
    """The tokens of the request."""
    output_tokens: int | None = None
    """The tokens of the reply."""
    model: str | None = None
    """The model that replied, if it is another one than requested."""
    reasoning: str | None = None
    """The reasoning of the model, which is not part of the answer."""


class Provider:
    """Answers instead of a vendor. A subclass has ``complete`` or ``stream``; each can be ``async``.

    >>> class Echo(Provider):
    ...     model = "echo-1"
    ...     def complete(self, request):
    ...         return '{"ok": true, ...}'
    >>> runtime = CognitiveRuntime(providers={"echo": Echo()}, provider="echo")

    An exception fails the call: E4001, E4002 for one with ``status_code`` 429, E2002 for a ``TimeoutError`` (E2011 in a stream), and the code of a
    ``ProviderError``. It is the ``__cause__`` of the ``CognitiveError``.
    """

    model: str = ""
    """The model if a run names none; if it is empty, the name of the provider."""
    images: bool = False
    """Whether the model reads images: parts of the content of messages."""

    def complete(self, request: ModelRequest) -> str | Reply | Awaitable[str | Reply]:
        """Returns the reply of the model."""
        raise NotImplementedError(f"{type(self).__name__} has neither complete nor stream")

    def stream(self, request: ModelRequest) -> Iterator[str | Reply] | AsyncIterator[str | Reply]:
        """Yields the reply in parts. A ``Reply`` is the last one."""
        raise NotImplementedError


def native_providers(providers: Mapping[str, Provider]) -> list[_cognitive.NativeProvider]:
    """Returns providers for the native part."""
    return [_native(name, provider) for name, provider in providers.items()]


def _native(name: str, provider: Provider) -> _cognitive.NativeProvider:
    if not isinstance(provider, Provider):
        raise TypeError(f"providers: {name!r} is {type(provider).__name__}; allowed: a subclass of Provider")
    streams = type(provider).stream is not Provider.stream
    function: Callable[..., Any] = provider.stream if streams else provider.complete
    if not streams and type(provider).complete is Provider.complete:
        raise TypeError(f"providers: {type(provider).__name__} has neither complete nor stream")
    is_async = inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function)
    respond = _Respond(name, function, streams)
    return _cognitive.NativeProvider(
        name=name,
        model=provider.model or name,
        images=provider.images,
        respond=respond.in_loop if is_async else respond.in_thread,
        is_async=is_async,
    )


class _Respond:
    """Puts the reply of a provider into the parts of a run."""

    def __init__(self, name: str, function: Callable[..., Any], streams: bool) -> None:
        self.name = name
        self.function = function
        self.streams = streams

    def in_thread(self, request: ModelRequest, parts: _cognitive.ReplyParts) -> None:
        if not self.streams:
            self.end(self.function(request), parts)
            return
        with contextlib.closing(self.iterator(self.function(request))) as reply:
            for part in reply:
                while not parts.push(self.checked(part)):
                    time.sleep(PAUSE)
                if isinstance(part, Reply):
                    return
        self.end("", parts)

    async def in_loop(self, request: ModelRequest, parts: _cognitive.ReplyParts) -> None:
        if not self.streams:
            self.end(await self.function(request), parts)
            return
        reply = self.function(request)
        if inspect.iscoroutine(reply):
            reply = await reply
        async with contextlib.aclosing(reply):
            async for part in reply:
                while not parts.push(self.checked(part)):
                    await sleep(PAUSE)
                if isinstance(part, Reply):
                    return
        while not parts.push(Reply()):
            await sleep(PAUSE)

    def end(self, reply: object, parts: _cognitive.ReplyParts) -> None:
        """Puts the last part."""
        last = self.checked(reply)
        while not parts.push(last if isinstance(last, Reply) else Reply(last)):
            time.sleep(PAUSE)

    def checked(self, part: object) -> str | Reply:
        if isinstance(part, (str, Reply)):
            return part
        if inspect.iscoroutine(part):
            part.close()
        raise TypeError(f"the provider {self.name!r} returned {type(part).__name__}; allowed: str, Reply")

    def iterator(self, reply: Any) -> Any:
        """Returns a generator, also for another iterable."""
        return reply if hasattr(reply, "close") else (part for part in reply)
