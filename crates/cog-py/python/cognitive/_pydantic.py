"""Objects of Pydantic as the input that their own schemas ask for, and these schemas."""

from __future__ import annotations

import datetime
import decimal
import os
import sys
import uuid
import weakref
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

#: Objects that become JSON without Pydantic.
_PLAIN = (
    str, int, float, bool, type(None), bytes, bytearray, memoryview, os.PathLike, Enum, uuid.UUID, decimal.Decimal,
    datetime.date, datetime.time,
)


class _Field(NamedTuple):
    name: str
    key: str
    """Its name in the schema."""
    dumped: str
    """Its name in what Pydantic writes."""
    is_custom: bool
    """Whether only Pydantic knows its form."""


_plans: weakref.WeakKeyDictionary[type, list[_Field] | None] = weakref.WeakKeyDictionary()


def form(value: Any) -> Any:
    """Returns the fields of an object by their names in its schema, without computed ones. What JSON has no form for is as Pydantic
    writes it; bytes, images and paths stay what they are, so that they become media."""
    kind = type(value)
    plan = _plan(kind)
    if plan is None:
        return _json(value, kind)
    written: dict[str, Any] | None = None
    found: dict[str, Any] = {}
    for field in plan:
        content = getattr(value, field.name)
        if field.is_custom or not _is_plain(content):
            written = _json(value, kind) if written is None else written
            content = _ordered(content, written.get(field.dumped, content))
        found[field.key] = content
    extra = getattr(value, "__pydantic_extra__", None) or {}
    found.update(extra)
    return found["root"] if getattr(kind, "__pydantic_root_model__", False) else found


def known_names(kind: Any) -> set[str]:
    """Returns every name that a field of a class can have in JSON."""
    return {key for name, field in kind.__pydantic_fields__.items() for key in names_of(name, field)}


def names_of(name: str, field: Any) -> list[str]:
    """Returns every name that a field can have in JSON."""
    return [name, *_names(field.alias), *_names(field.validation_alias)]


def json_schema(kind: Any, *, takes_media: bool) -> dict[str, Any]:
    """Returns the JSON Schema of what Pydantic reads. Bytes and images of an input are media."""
    import pydantic
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def bytes_schema(self, schema: Any) -> dict[str, Any]:
            return _media() if takes_media else super().bytes_schema(schema)

        def is_instance_schema(self, schema: Any) -> dict[str, Any]:
            if takes_media and is_image(schema["cls"]):
                return _media()
            return super().is_instance_schema(schema)

    schema: dict[str, Any] = pydantic.TypeAdapter(kind).json_schema(schema_generator=Generator)
    return schema


def is_image(kind: Any) -> bool:
    """Whether this is the class of Pillow's images."""
    pillow: Any = sys.modules.get("PIL.Image")
    return pillow is not None and kind is pillow.Image


def _media() -> dict[str, Any]:
    # Pydantic resolves references of its own, so that this one is completed later.
    return {"x-media": True}


def _plan(kind: Any) -> list[_Field] | None:
    """Returns how the fields of a class are written; None if it writes itself."""
    try:
        return _plans[kind]
    except KeyError:
        pass
    plan: list[_Field] | None = None
    decorators = getattr(kind, "__pydantic_decorators__", None)
    # A URL and a secret have a serializer, and no fields.
    if decorators is not None and not decorators.model_serializers:
        custom = {name for it in decorators.field_serializers.values() for name in it.info.fields}
        plan = [
            _Field(
                name,
                _key(field, name),
                field.serialization_alias or name,
                bool(custom & {name, "*"}) or any(map(_is_serializer, field.metadata)),
            )
            for name, field in kind.__pydantic_fields__.items()
        ]
    _plans[kind] = plan
    return plan


def _key(field: Any, name: str) -> str:
    return next(iter(_names(field.validation_alias)), name)


def _names(alias: Any) -> list[str]:
    """Returns the names of an alias, of its choices, and of paths of one step."""
    if alias is None:
        return []
    if isinstance(alias, str):
        return [alias]
    if hasattr(alias, "choices"):
        return [name for choice in alias.choices for name in _names(choice)]
    return [alias.path[0]] if len(alias.path) == 1 else []


def _is_serializer(note: Any) -> bool:
    name = type(note).__name__
    return name.endswith("Serializer") or "Json" in (name, getattr(note, "__name__", ""))


def _json(value: Any, kind: Any) -> Any:
    # With `round_trip`, what is computed is left out, and the result is what the class reads.
    return kind.__pydantic_serializer__.to_python(value, mode="json", by_alias=True, round_trip=True, fallback=lambda it: it)


def _ordered(value: Any, written: Any) -> Any:
    """Returns the array of a set in an order that does not change from one process to the next."""
    if isinstance(value, (set, frozenset)) and isinstance(written, list):
        try:
            return sorted(written)
        except TypeError:
            return written
    return written


def _is_plain(value: Any) -> bool:
    if isinstance(value, _PLAIN) or hasattr(value, "__pydantic_serializer__") or hasattr(value, "__dataclass_fields__"):
        return True
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(member) for key, member in value.items())
    return is_image(type(value)) or any(is_image(base) for base in type(value).__mro__)
