"""Objects of the program for its tools and checks: a parameter ``Deps[T]``, and the option ``deps`` of a run."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from ._calls import current_deps

T = TypeVar("T")


class _Mark:
    """Marks the parameter that receives ``deps``."""


#: ``shop: Deps[Shop]`` is a Shop, which comes from ``deps=`` and not from the model.
Deps = Annotated[T, _Mark]


def type_of(annotation: Any) -> Any:
    """Returns the T of ``Deps[T]``; None for another annotation."""
    if typing.get_origin(annotation) is not Annotated:
        return None
    kind, *notes = typing.get_args(annotation)
    return kind if _Mark in notes else None


def parameters_of(hints: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters with these annotations that receive ``deps``, with their types."""
    marked = {name: type_of(hint) for name, hint in hints.items()}
    return {name: kind for name, kind in marked.items() if kind is not None}


def arguments(function: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a call: the ``deps`` of the run for each of these parameters."""
    if not parameters:
        return {}
    given = current_deps.get()
    check(function, parameters, given)
    return dict.fromkeys(parameters, given)


def check(function: str, parameters: Mapping[str, Any], given: Any) -> None:
    """Raises ``TypeError`` if a function that receives ``deps`` cannot use these."""
    for name, kind in parameters.items():
        if _fits(given, kind):
            continue
        shown = getattr(kind, "__name__", str(kind))
        found = "the run has none" if given is None else f"found {type(given).__name__}"
        raise TypeError(f"{function}({name}): needs deps of the type {shown}, {found}; pass deps=...")


def _fits(given: Any, kind: Any) -> bool:
    """Whether an object is of a type, as far as Python can tell without looking into it."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(given, arm) for arm in typing.get_args(kind))
    kind = origin or kind
    if kind is Any:
        return True
    if kind is None or kind is types.NoneType:
        return given is None
    try:
        return isinstance(given, kind)
    except TypeError:
        # A protocol that does not exist at run time.
        return given is not None
