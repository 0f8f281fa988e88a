"""Calls that wait for a confirmation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from ._runtime import lists_options

# The variable with a default is new in the type checkers' package only.
if TYPE_CHECKING:
    from typing_extensions import TypeVar, Unpack

    from ._cognitive import Module, Result
    from ._runtime import CognitiveRuntime, _AnyModule, RunOptions

    _Data = TypeVar("_Data", default=Any, covariant=True)
else:
    from typing import TypeVar

    _Data = TypeVar("_Data", covariant=True)


@dataclass(frozen=True)
class PendingCall:
    """A tool call that was not executed."""

    tool: str
    """The name of the tool."""
    arguments: dict[str, Any]
    """The arguments, as the tool receives them."""
    call_id: str
    """The id that the model gave the call."""
    part: str | None = None
    """The path of the part of a composition that made the call."""


class Pending(Generic[_Data]):
    """A run that waits for the confirmation of a tool call.

    >>> if result.pending:
    ...     result = result.pending.approve() if ask(result.pending.calls) else result.pending.deny()

    Attributes:
        id: The id, with which ``continue_run`` and ``cog run --continue`` continue the run too.
        calls: The calls that wait.
    """

    def __init__(self, halted: dict[str, Any], origin: tuple[CognitiveRuntime, _AnyModule | None, RunOptions] | None, kind: Any) -> None:
        self.id: str = halted["id"]
        call = PendingCall(halted["tool"], halted["arguments"], halted["call_id"], halted.get("part"))
        self.calls: tuple[PendingCall, ...] = (call,)
        self._origin = origin
        self._kind = kind

    @lists_options
    def approve(self, **options: Unpack[RunOptions]) -> Result[_Data]:
        """Executes the calls, and continues the run to its result, with its ``tools``, ``deps`` and ``hooks``.

        Args:
            options: The options of the run (``RunOptions``).

        Raises:
            CognitiveError: E4014 if the run has continued already.
            RuntimeError: The result was pickled, so that it has no runtime.
        """
        return self._continue(options, confirm="YES")

    @lists_options
    def deny(self, **options: Unpack[RunOptions]) -> Result[_Data]:
        """Continues the run without the calls; the model learns that they were denied. Takes the options of a run (``RunOptions``), and raises as ``approve``."""
        return self._continue(options, deny=True)

    async def approve_async(self, **options: Unpack[RunOptions]) -> Result[_Data]:
        """As ``approve``, without blocking the event loop."""
        return await self._continue_async(options, confirm="YES")

    async def deny_async(self, **options: Unpack[RunOptions]) -> Result[_Data]:
        """As ``deny``, without blocking the event loop."""
        return await self._continue_async(options, deny=True)

    def _continue(self, options: RunOptions, **decision: Any) -> Result[Any]:
        runtime, module, objects = self._runtime()
        given: Any = {**objects, **options, **decision}
        return self._typed(runtime.continue_run(self.id, module=module, **given))

    async def _continue_async(self, options: RunOptions, **decision: Any) -> Result[Any]:
        runtime, module, objects = self._runtime()
        given: Any = {**objects, **options, **decision}
        return self._typed(await runtime.continue_run_async(self.id, module=module, **given))

    def _runtime(self) -> tuple[CognitiveRuntime, _AnyModule | None, RunOptions]:
        if self._origin is None:
            raise RuntimeError(f"the result has no runtime; use runtime.continue_run({self.id!r}, ...)")
        return self._origin

    def _typed(self, result: Result[Any]) -> Result[Any]:
        return result if self._kind is None else result.typed(self._kind)

    def __repr__(self) -> str:
        return f"Pending(id={self.id!r}, calls={self.calls!r})"
