"""The fields of classes."""

from __future__ import annotations

import dataclasses
import sys
import typing
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
    if typing.is_typeddict(kind):
        required = kind.__required_keys__
        return {name: Field(name, MISSING if name in required else None) for name in kind.__annotations__}
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return {name: Field(name, kind._field_defaults.get(name, MISSING)) for name in kind._fields}
    return None


def _dataclass_default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return MISSING if field.default_factory is dataclasses.MISSING else None


def _attrs_default(field: Any) -> Any:
    attr: Any = sys.modules["attr"]
    if field.default is attr.NOTHING:
        return MISSING
    return None if isinstance(field.default, attr.Factory) else field.default
