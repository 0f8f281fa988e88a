"""Runs Cognitive Modules: a model's answer as a checked envelope.

>>> from cognitive import Runtime
>>> runtime = Runtime()
>>> result = runtime.run("code-reviewer", {"code": "eval(input())"})
>>> result.raise_for_error().data["verdict"]

Providers, keys and limits come from environment variables and from the settings file of the command line ``cog``.
"""

from ._cognitive import (
    Budget,
    ErrorInfo,
    ModelRequest,
    Module,
    Report,
    Result,
    Verdict,
    __version__,
    check_conformance,
    module_types,
)
from ._errors import CognitiveError, DataError, ProviderError, ToolError
from ._functions import ModuleFunction, default_runtime
from ._runtime import CognitiveRuntime, RunOptions
from ._stream import ChunkStream

#: The short name of the class.
Runtime = CognitiveRuntime

# Type checkers know this name.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from ._deps import Deps
    from ._frame import frame
    from ._hooks import Hooks, ModelCall, RunEnd, RunStart, ToolRun
    from ._journal import BatchReport
    from ._partial import Partial, PartialStream
    from ._pending import Pending, PendingCall
    from ._provider import Provider, Reply, ToolCall
    from ._task import AsyncTask, ModuleFiles, Task, task
    from ._tool import Tool, tool

__all__ = [
    "AsyncTask",
    "BatchReport",
    "Budget",
    "ChunkStream",
    "CognitiveError",
    "CognitiveRuntime",
    "DataError",
    "Deps",
    "ErrorInfo",
    "Hooks",
    "ModelCall",
    "ModelRequest",
    "Module",
    "ModuleFiles",
    "ModuleFunction",
    "Partial",
    "PartialStream",
    "Pending",
    "PendingCall",
    "Provider",
    "ProviderError",
    "Reply",
    "Report",
    "Result",
    "RunEnd",
    "RunOptions",
    "RunStart",
    "Runtime",
    "Task",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolRun",
    "Verdict",
    "__version__",
    "check_conformance",
    "default_runtime",
    "frame",
    "module_types",
    "task",
    "tool",
]

#: Names that are imported when they are used, so that other programs start faster.
_LATER = {
    "AsyncTask": "_task",
    "BatchReport": "_journal",
    "Deps": "_deps",
    "frame": "_frame",
    "Hooks": "_hooks",
    "ModelCall": "_hooks",
    "ModuleFiles": "_task",
    "Partial": "_partial",
    "PartialStream": "_partial",
    "Pending": "_pending",
    "PendingCall": "_pending",
    "Provider": "_provider",
    "Reply": "_provider",
    "RunEnd": "_hooks",
    "RunStart": "_hooks",
    "Tool": "_tool",
    "ToolCall": "_provider",
    "ToolRun": "_hooks",
    "Task": "_task",
    "task": "_task",
    "tool": "_tool",
}


# Type checkers report a misspelt name only if they do not see this function.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value: object = getattr(import_module(f".{_LATER[name]}", __name__), name)
        globals()[name] = value
        return value
