"""Hooks: what a program learns of its runs and their calls, such as for a log."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._cognitive import Result

_log = logging.getLogger("cognitive")


@dataclass(frozen=True, kw_only=True)
class RunStart:
    """A run that starts."""

    module: str
    """The name of the module."""
    is_nested: bool
    """Whether the run is a part of a composition, or of a module that was called as a tool."""


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """A call to a model that has ended, with its retries, or that was not sent."""

    module: str
    """The name of the module that was run."""
    provider: str
    """The name of the provider."""
    model: str
    """The model of the request."""
    messages: list[dict[str, Any]]
    """The messages of the request, as a ``ModelRequest`` has them."""
    reply: str
    """The text of the reply; empty if there is none."""
    tool_calls: list[dict[str, Any]]
    """The calls of tools that the reply requests: ``id``, ``name`` and ``arguments``, which is JSON."""
    finish_reason: str | None
    """Why the model stopped."""
    input_tokens: int | None
    """The tokens of the request, if they are known."""
    output_tokens: int | None
    """The tokens of the reply, if they are known."""
    cost: float | None
    """The cost in US dollars, if the price is known."""
    duration: float
    """The seconds from the first attempt to the end of the reply."""
    error: str | None
    """The code of the error, such as ``E4002``; None for a complete reply, and for one that the run stopped to read."""


@dataclass(frozen=True, kw_only=True)
class ToolRun:
    """A call of a tool that has ended."""

    module: str
    """The name of the module that was run."""
    tool: str
    """The name of the tool."""
    call_id: str
    """The id that the model gave the call."""
    arguments: str
    """The arguments as JSON."""
    result: str | None
    """The result as the model receives it; None if the call did not end."""
    error: str | None
    """The code or the type of the error; ``halted`` for a call that waits for a confirmation, ``dropped`` for one whose run ended."""


@dataclass(frozen=True, kw_only=True)
class RunEnd:
    """A run that has ended."""

    module: str
    """The name of the module."""
    is_nested: bool
    """Whether the run is a part of a composition, or of a module that was called as a tool."""
    result: Result | None
    """The result; None for a run that was cancelled."""
    attempts: int
    """How often the model was asked for an answer; a refused run has 0. Rounds of tool calls are not counted."""
    input_tokens: int | None
    """The tokens of all requests, if they are known."""
    output_tokens: int | None
    """The tokens of all replies, if they are known."""
    cost: float | None
    """The cost in US dollars, if the prices are known."""
    duration: float
    """The seconds from its start to its end."""


class Hooks:
    """Learns what happens in runs. A subclass has the methods that it needs.

    >>> class Log(Hooks):
    ...     def model_called(self, call):
    ...         log.info("%s: %s tokens, %s USD, %s", call.model, call.output_tokens, call.cost, call.error)
    >>> runtime = CognitiveRuntime(hooks=Log())

    The methods see the context variables of the caller. They are called within the run, which waits for them, on a thread of the package.
    They must not start runs. An exception is logged in the logger ``cognitive``, and changes nothing.
    """

    def run_started(self, run: RunStart) -> None:
        """A run starts. ``run_ended`` follows for each."""

    def model_called(self, call: ModelCall) -> None:
        """A call to a model has ended, or was not sent."""

    def tool_called(self, call: ToolRun) -> None:
        """A call of a tool has ended, or waits for a confirmation."""

    def run_ended(self, run: RunEnd) -> None:
        """A run has ended, or was refused before the provider was called."""


_EVENTS = {"run_started": RunStart, "model_called": ModelCall, "tool_called": ToolRun, "run_ended": RunEnd}


def dispatch(hooks: Iterable[Hooks], name: str, fields: Mapping[str, Any]) -> None:
    """Calls a method of each. The native part uses it."""
    event = _EVENTS[name](**fields)
    for hook in hooks:
        try:
            getattr(hook, name)(event)
        except Exception:
            _log.exception("%s.%s raised an exception; the run continues", type(hook).__name__, name)
