"""Tools: Python functions that a model may call."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any, Generic, ParamSpec, TypeVar, overload

from . import _cognitive, _deps, _schema
from ._types import _convert

P = ParamSpec("P")
R = TypeVar("R")


#: What a call can do, by the names of the policies that allow it.
EFFECTS = ("network", "filesystem_write", "side_effects", "code_execution")


class Tool(Generic[P, R]):
    """A function that a model may call, if the manifest of its module allows it.

    The schema of the arguments comes from the annotations, the description from the docstring. A parameter ``Deps[T]`` is not for the
    model: it receives the ``deps`` of the run. A tool is still a function.

    Args:
        function: The function; with ``async def``, it runs in the event loop of the run's caller.
        name: The name for the manifest and the model; otherwise the function's.
        description: What the tool does, for the model; otherwise the docstring.
        network: A call uses the network.
        filesystem_write: A call writes files.
        side_effects: A call changes something outside the run.
        code_execution: A call runs code.
        confirm: A person must confirm each call.
        timeout: The time limit of a call in seconds, if it is shorter than the settings'.

    Raises:
        TypeError: A parameter has no annotation, or one that JSON cannot represent.
        ValueError: The function has no description, or its name is not one that vendors accept.
    """

    __name__: str

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        network: bool = False,
        filesystem_write: bool = False,
        side_effects: bool = False,
        code_execution: bool = False,
        confirm: bool = False,
        timeout: float | None = None,
    ) -> None:
        if not callable(function):
            raise TypeError(f"tool: found {type(function).__name__}; allowed: a function")
        functools.update_wrapper(self, function)
        self.function = function
        self.name: str = name or str(getattr(function, "__name__", type(function).__name__))
        self.description: str = description or inspect.getdoc(function) or ""
        if not self.description:
            raise ValueError(f"{self.name}: the model needs a description; write a docstring")
        found = _schema.parameters(function, self.name)
        self.parameters = found.schema
        #: The parameters that receive the ``deps`` of a run.
        self._deps = found.deps
        self._options: dict[str, Any] = {
            "name": name,
            "description": description,
            "network": network,
            "filesystem_write": filesystem_write,
            "side_effects": side_effects,
            "code_execution": code_execution,
            "confirm": confirm,
            "timeout": timeout,
        }
        is_async = _is_coroutine_function(function)
        # It does not refer to this object, which would never be freed otherwise.
        call = _Call(function, self.name, found)
        self._native = _cognitive.NativeTool(
            name=self.name,
            description=self.description,
            parameters=self.parameters,
            effects=(network, filesystem_write, side_effects, code_execution),
            confirm=confirm,
            timeout=timeout,
            function=call.in_loop if is_async else call.in_thread,
            is_async=is_async,
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @property
    def effects(self) -> tuple[str, ...]:
        """The names of the policies that a call needs."""
        return tuple(name for name in EFFECTS if self._options[name])

    def __reduce__(self) -> str | tuple[Any, ...]:
        """How it is pickled: by its name, as a function. One without a name of its own is made again from its function."""
        owner = sys.modules.get(self.__module__)
        qualified: str = getattr(self, "__qualname__", self.name)
        return qualified if getattr(owner, qualified, None) is self else (_restored, (self.function, self._options))

    def __repr__(self) -> str:
        return f"Tool(name={self.name!r})"


def _restored(function: Callable[..., Any], options: dict[str, Any]) -> Tool[..., Any]:
    return Tool(function, **options)


class _Call:
    """Calls a function with arguments from JSON."""

    def __init__(self, function: Callable[..., Any], name: str, parameters: _schema.Parameters) -> None:
        self.function = function
        self.name = name
        self.parameters = parameters

    def in_thread(self, arguments: dict[str, Any]) -> Any:
        result = self.function(**self.read(arguments))
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise TypeError(f"{self.name} returned an awaitable; write it with async def")
        return result

    async def in_loop(self, arguments: dict[str, Any]) -> Any:
        return await self.function(**self.read(arguments))

    def read(self, arguments: dict[str, Any]) -> dict[str, Any]:
        types = self.parameters.types
        read = {name: _convert(value, types[name], name) for name, value in arguments.items()}
        return {**read, **_deps.arguments(self.name, self.parameters.deps)}


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    function: None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    network: bool = False,
    filesystem_write: bool = False,
    side_effects: bool = False,
    code_execution: bool = False,
    confirm: bool = False,
    timeout: float | None = None,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a tool of a function: ``@tool``, or ``@tool(side_effects=True, confirm=True)``. It takes the options of ``Tool``."""
    if function is not None:
        return Tool(function, **options)
    return lambda function: Tool(function, **options)


def tools_of(tools: Iterable[Callable[..., Any]]) -> list[Tool[..., Any]]:
    """Returns functions as tools.

    Raises:
        ValueError: Two tools have the same name.
    """
    made = [one if isinstance(one, Tool) else Tool(one) for one in tools]
    names = [one.name for one in made]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"tools: {name!r} is the name of two tools; use @tool(name=...)")
    return made


def native_tools(tools: Iterable[Tool[..., Any]]) -> list[_cognitive.NativeTool]:
    """Returns tools for the native part."""
    return [one._native for one in tools]


def check_deps(tools: Iterable[Tool[..., Any]], deps: Any) -> None:
    """Raises ``TypeError`` if a tool cannot use the ``deps`` of a run."""
    for one in tools:
        _deps.check(one.name, one._deps, deps)


def _is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether calling this object returns a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
