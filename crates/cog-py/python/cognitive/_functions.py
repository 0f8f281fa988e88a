"""Modules as Python functions."""

from __future__ import annotations

import keyword
import os
import threading
from typing import TYPE_CHECKING, Any

from ._errors import CognitiveError
from ._runtime import CognitiveRuntime, lists_options

if TYPE_CHECKING:
    import inspect

    from typing_extensions import Unpack

    from ._cognitive import Module, Result
    from ._runtime import RunOptions
    from ._stream import ChunkStream

#: Built-in types, which an import must not hide. ``cog types --stubs`` has the same list.
_TYPES = frozenset({"bool", "bytes", "dict", "float", "int", "list", "str"})

_lock = threading.Lock()
_default: CognitiveRuntime | None = None


def _new_lock() -> None:
    """Another thread of the parent may hold the lock when the process forks."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


def default_runtime() -> CognitiveRuntime:
    """The runtime of functions that get no other. It is created on first use, with the settings of the command line."""
    global _default
    with _lock:
        if _default is None:
            _default = CognitiveRuntime()
        return _default


class ModuleFunction:
    """A module as a function: ``from cognitive.modules import code_reviewer``.

    The input is a dict or another object that ``CognitiveRuntime.execute`` takes, or its fields as keyword arguments.
    """

    def __init__(
        self, module: Module, runtime: CognitiveRuntime | None = None, options: RunOptions | None = None
    ) -> None:
        self._module = module
        self._runtime = runtime
        self._options: RunOptions = options or {}
        self.__name__ = self.__qualname__ = identifier(module.name)
        self.__doc__ = _documentation(module)

    def __call__(self, input: Any = None, /, **inputs: Any) -> Result:
        """Runs the module, and returns its result, as ``CognitiveRuntime.execute`` does."""
        return self.runtime.execute(self._module.name, _input(input, inputs), **self._options)

    async def aio(self, input: Any = None, /, **inputs: Any) -> Result:
        """Runs the module without blocking the event loop."""
        return await self.runtime.execute_async(self._module.name, _input(input, inputs), **self._options)

    def stream(self, input: Any = None, /, **inputs: Any) -> ChunkStream:
        """Runs the module, and returns its chunks: for ``for`` and for ``async for``."""
        return self.runtime.execute_stream(self._module.name, _input(input, inputs), **self._options)

    @lists_options
    def with_options(
        self, *, runtime: CognitiveRuntime | None = None, **options: Unpack[RunOptions]
    ) -> ModuleFunction:
        """Returns the function with a runtime and options of its runs, such as ``provider`` (``RunOptions``)."""
        return ModuleFunction(self._module, runtime or self._runtime, {**self._options, **options})

    @property
    def runtime(self) -> CognitiveRuntime:
        """The runtime that runs the module."""
        return self._runtime or default_runtime()

    @property
    def module(self) -> Module:
        """The module, as it was loaded."""
        return self._module

    @property
    def __signature__(self) -> inspect.Signature:
        import inspect

        schema = self._module.input_schema or {}
        names = [name for name in schema.get("properties", {}) if name.isidentifier() and not keyword.iskeyword(name)]
        required = schema.get("required", [])
        empty = inspect.Parameter.empty
        return inspect.Signature(
            [inspect.Parameter("input", inspect.Parameter.POSITIONAL_ONLY, default=None)]
            + [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=empty if name in required else None)
                for name in names
                if name != "input"
            ]
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is pickled: another process finds the module again, and uses its own runtime."""
        if self._runtime is not None:
            raise TypeError(f"{self.__name__}: a runtime cannot be pickled; use a function without with_options(runtime=...)")
        return _restored, (self._module, self._options)

    def __repr__(self) -> str:
        return f"<function of the module {self._module.name}: {self._module.responsibility}>"


def _restored(module: Module, options: RunOptions) -> ModuleFunction:
    return ModuleFunction(module, None, options)


def load(module: str) -> Module:
    """Returns a module that was pickled."""
    return default_runtime().load(module)


def identifier(module: str) -> str:
    """Returns the name of a module as an identifier: ``code_reviewer``. A keyword or a type gets an underscore: ``list_``."""
    name = module.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) or name in _TYPES else name


def names() -> dict[str, str]:
    """Returns the modules, by their identifiers."""
    return {identifier(name): name for name in default_runtime().names()}


def find(name: str) -> ModuleFunction:
    """Returns the function of a module.

    Raises:
        ModuleNotFoundError: There is no such module.
        ImportError: Its files are invalid.
    """
    modules = names()
    if name not in modules:
        raise ModuleNotFoundError(_missing(name, list(modules)), name=f"cognitive.modules.{name}")
    try:
        return ModuleFunction(default_runtime().load(modules[name]))
    except CognitiveError as error:
        raise ImportError(str(error), name=f"cognitive.modules.{name}") from error


def _missing(name: str, known: list[str]) -> str:
    import difflib

    text = f"there is no module {name.replace('_', '-')!r}"
    near = difflib.get_close_matches(name, known, n=1)
    return f"{text}. Did you mean {near[0]!r}?" if near else f"{text}. `cog list` shows all modules."


def _input(input: Any, inputs: dict[str, Any]) -> Any:
    if input is None:
        return inputs
    if inputs:
        raise TypeError("the input is either one argument or keyword arguments, not both")
    return input


def _documentation(module: Module) -> str:
    lines = [module.responsibility]
    fields = (module.input_schema or {}).get("properties", {})
    described = [
        f"    {name}: {schema['description']}"
        for name, schema in fields.items()
        if isinstance(schema, dict) and isinstance(schema.get("description"), str)
    ]
    if described:
        lines += ["", "Args:", *described]
    return "\n".join(lines)
