"""Runs Cognitive Modules: a model's answer as a checked envelope.

>>> from cognitive import CognitiveRuntime
>>> runtime = CognitiveRuntime()
>>> result = runtime.execute("code-reviewer", {"code": "eval(input())"})
>>> result.raise_for_error().data["verdict"]

Providers, keys and limits come from environment variables and from the settings file of the command line ``cog``.
"""

from ._cognitive import ErrorInfo, Module, Report, Result, __version__
from ._errors import CognitiveError, DataError
from ._functions import ModuleFunction, default_runtime
from ._runtime import ChunkStream, CognitiveRuntime, RunOptions

__all__ = [
    "ChunkStream",
    "CognitiveError",
    "CognitiveRuntime",
    "DataError",
    "ErrorInfo",
    "Module",
    "ModuleFunction",
    "Report",
    "Result",
    "RunOptions",
    "__version__",
    "default_runtime",
]
