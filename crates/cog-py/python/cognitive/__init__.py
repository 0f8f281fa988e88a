"""Runs Cognitive Modules: a model's answer as a checked envelope.

>>> from cognitive import CognitiveRuntime
>>> runtime = CognitiveRuntime()
>>> result = runtime.execute("code-reviewer", {"code": "eval(input())"})
>>> result.raise_for_error().data["verdict"]

Providers, keys and limits come from environment variables and from the settings file of the command line ``cog``.
"""

from ._cognitive import ErrorInfo, ModelRequest, Module, Report, Result, Verdict, __version__
from ._errors import CognitiveError, DataError, ProviderError, ToolError
from ._functions import ModuleFunction, default_runtime
from ._runtime import ChunkStream, CognitiveRuntime, RunOptions

# Type checkers know this name.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from ._module import ModuleFiles, module
    from ._provider import Provider, Reply, ToolCall
    from ._tool import Tool, tool

__all__ = [
    "ChunkStream",
    "CognitiveError",
    "CognitiveRuntime",
    "DataError",
    "ErrorInfo",
    "ModelRequest",
    "Module",
    "ModuleFiles",
    "ModuleFunction",
    "Provider",
    "ProviderError",
    "Reply",
    "Report",
    "Result",
    "RunOptions",
    "Tool",
    "ToolCall",
    "ToolError",
    "Verdict",
    "__version__",
    "default_runtime",
    "module",
    "tool",
]

#: Names that are imported when they are used, so that other programs start faster.
_LATER = {
    "ModuleFiles": "_module",
    "Provider": "_provider",
    "Reply": "_provider",
    "Tool": "_tool",
    "ToolCall": "_provider",
    "module": "_module",
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
