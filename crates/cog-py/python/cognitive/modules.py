"""The modules as functions.

>>> from cognitive.modules import code_reviewer
>>> result = code_reviewer(code="eval(input())")
>>> result.raise_for_error().data["verdict"]

Every module of ``cog list`` is here; a hyphen in its name is an underscore. ``cog types --stubs typings`` writes the types of
inputs and answers for type checkers and editors.
"""

from typing import TYPE_CHECKING

from . import _functions

if TYPE_CHECKING:
    # The file that `cog types --stubs` writes.
    from cognitive_modules import *  # type: ignore[import-not-found] # noqa: F403


def __getattr__(name: str) -> _functions.ModuleFunction:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _functions.find(name)


def __dir__() -> list[str]:
    return sorted(_functions.names())
