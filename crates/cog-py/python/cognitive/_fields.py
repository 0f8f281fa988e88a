"""The fields of classes, and what generic ones become with their arguments."""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Mapping
from typing import Any, NamedTuple


class _Missing:
    """The default of a required field."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


class Field(NamedTuple):
    """A field of a class."""

    argument: str
    """The name of its argument."""
    default: Any
    """The default, ``MISSING`` if the field is required, or None if the default is not a constant."""

    @property
    def is_required(self) -> bool:
        return self.default is MISSING


def fields_of(kind: Any) -> dict[str, Field] | None:
    """Returns the fields of a dataclass, a class of attrs, a TypedDict or a named tuple; None for another type."""
    if dataclasses.is_dataclass(kind):
        return {field.name: Field(field.name, _dataclass_default(field)) for field in dataclasses.fields(kind) if field.init}
    if hasattr(kind, "__attrs_attrs__"):
        return {field.name: Field(field.alias, _attrs_default(field)) for field in kind.__attrs_attrs__ if field.init}
    if is_typed_dict(kind):
        return {name: Field(name, MISSING if is_required else None) for name, is_required in _members(kind).items()}
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return {name: Field(name, kind._field_defaults.get(name, MISSING)) for name in kind._fields}
    return None


def is_typed_dict(kind: Any) -> bool:
    """Whether this is a TypedDict, also one of ``typing_extensions``, which ``typing`` does not know before Python 3.13."""
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__required_keys__")


def is_pydantic(kind: Any) -> bool:
    """Whether Pydantic validates this class: a model, or a dataclass of ``pydantic.dataclasses``."""
    return isinstance(kind, type) and hasattr(kind, "__pydantic_validator__")


def hints_of(kind: Any, *, include_extras: bool = False) -> dict[str, Any]:
    """Returns the types of the fields of a class. A generic one gets its arguments: ``Box[int]``.

    Raises:
        NameError: A type cannot be found.
    """
    origin = typing.get_origin(kind)
    hints = typing.get_type_hints(origin or kind, include_extras=include_extras)
    if origin is None:
        return hints
    given = dict(zip(getattr(origin, "__parameters__", ()), typing.get_args(kind)))
    return {name: _with_arguments(hint, given) for name, hint in hints.items()}


def qualifier(origin: Any) -> str | None:
    """Returns ``Required``, ``NotRequired`` or ``ReadOnly`` for the origin of such an annotation."""
    name = getattr(origin, "_name", None) or getattr(origin, "__name__", None)
    is_special = getattr(origin, "__module__", None) in ("typing", "typing_extensions")
    return name if is_special and name in ("Required", "NotRequired", "ReadOnly") else None


def _members(kind: Any) -> dict[str, bool]:
    """Returns the members of a TypedDict, and whether each is required. With postponed annotations, Python does not know which are."""
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except NameError:
        hints = {}
    return {name: _is_required(hints.get(name), name in kind.__required_keys__) for name in kind.__annotations__}


def _is_required(hint: Any, otherwise: bool) -> bool:
    origin = typing.get_origin(hint)
    found = qualifier(origin)
    if found in ("Required", "NotRequired"):
        return found == "Required"
    if origin is typing.Annotated or found:
        return _is_required(typing.get_args(hint)[0], otherwise)
    return otherwise


def _with_arguments(hint: Any, given: Mapping[Any, Any]) -> Any:
    if isinstance(hint, typing.TypeVar):
        return given.get(hint, Any)
    parameters = getattr(hint, "__parameters__", ())
    # In Python 3.10, `list[T]` is an instance of `type`.
    if typing.get_origin(hint) is None or not parameters:
        return hint
    return hint[tuple(given.get(parameter, Any) for parameter in parameters)]


def _dataclass_default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return MISSING if field.default_factory is dataclasses.MISSING else None


def _attrs_default(field: Any) -> Any:
    attr: Any = sys.modules["attr"]
    if field.default is attr.NOTHING:
        return MISSING
    return None if isinstance(field.default, attr.Factory) else field.default
