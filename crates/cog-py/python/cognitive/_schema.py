"""JSON Schemas of Python types."""

from __future__ import annotations

import datetime
import decimal
import enum
import inspect
import numbers
import pathlib
import re
import sys
import types
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, NamedTuple, get_args, get_origin

from . import _deps
from ._fields import fields_of, hints_of, is_pydantic, qualifier

#: The formats of JSON Schema require a zone, which times of Python need not have.
_DATE_TIME = {"type": "string", "description": "Date and time, such as 2026-11-01T08:30:00"}
_TIME = {"type": "string", "description": "Time, such as 08:30:00"}
_ZONED = {"date-time": _DATE_TIME, "time": _TIME}
#: What a picture or file is in an input.
MEDIA = {"$ref": "#/$defs/MediaInput"}

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    types.NoneType: {"type": "null"},
    decimal.Decimal: {"type": "number"},
    datetime.datetime: dict(_DATE_TIME),
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: dict(_TIME),
    uuid.UUID: {"type": "string", "format": "uuid"},
    pathlib.Path: {"type": "string"},
    Any: {},
    object: {},
}
#: Classes that are derived from these are as they are, such as scalars of NumPy and times of pandas.
_BASES: dict[Any, dict[str, Any]] = {
    str: _SCALARS[str],
    datetime.datetime: _SCALARS[datetime.datetime],
    numbers.Integral: _SCALARS[int],
    numbers.Real: _SCALARS[float],
}
_LISTS = (list, tuple, set, frozenset, Sequence, Set)
_OBJECTS = (dict, Mapping)
#: Keywords whose values are not schemas.
_VALUES = frozenset({"const", "default", "enum", "examples"})
_ALLOWED = (
    "str, int, float, bool, None, list, dict, tuple, set, Literal, Optional, Union, an Enum, a date, "
    "a dataclass, a class of attrs, a TypedDict or a Pydantic model"
)


class Parameters(NamedTuple):
    """The parameters of a function."""

    types: dict[str, Any]
    """The type of each parameter."""
    schema: dict[str, Any]
    """The JSON Schema of the object that has them as members."""
    deps: dict[str, Any]
    """The parameters that receive the ``deps`` of a run, with their types."""


def parameters(function: Callable[..., Any], name: str, *, takes_media: bool = False) -> Parameters:
    """Describes the parameters of a function by its annotations. With ``takes_media``, pictures, bytes and paths are media.

    Raises:
        TypeError: A parameter has no annotation, or one that JSON cannot represent.
    """
    hints = hints_of_function(function, name)
    deps = _deps.parameters_of(hints)
    found: dict[str, Any] = {}
    writer = _Writer(takes_media)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        path = f"{name}({parameter.name})"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{path}: a parameter needs a name of its own; * and / are not allowed")
        if parameter.name not in hints:
            hint = "; pass a bound method" if parameter.name == "self" else ""
            raise TypeError(f"{path}: the parameter has no annotation{hint}")
        if parameter.name in deps:
            continue
        found[parameter.name] = hints[parameter.name]
        properties[parameter.name] = _with_default(writer.schema(hints[parameter.name], path), parameter.default)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    return Parameters(found, writer.document(_object(properties, required)), deps)


def schema_of(annotation: Any, path: str, *, takes_media: bool = False) -> dict[str, Any]:
    """Returns the JSON Schema of a type. With ``takes_media``, pictures, bytes and paths are media.

    Raises:
        TypeError: JSON cannot represent the type.
    """
    writer = _Writer(takes_media)
    return writer.document(writer.schema(annotation, path))


def return_type(function: Callable[..., Any], name: str) -> Any:
    """Returns the annotation of the return value of a function, None if it has none."""
    return hints_of_function(function, name).get("return")


def hints_of_function(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """Returns the annotations of a function, or of what a class calls.

    Raises:
        TypeError: One of them cannot be found.
    """
    target: Any = function
    if not (inspect.isfunction(function) or inspect.ismethod(function)) and not isinstance(function, type):
        target = type(function).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except NameError as error:
        found = _local_hints(target)
        if found is None:
            raise TypeError(f"{name}: an annotation cannot be found: {error}; import it at the top of its file") from error
        return found


def _local_hints(target: Any) -> dict[str, Any] | None:
    """Returns the annotations of a function whose types are local to the function that defines it, which is still running."""
    names: dict[str, Any] = {}
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        names = {**frame.f_locals, **names}
        if frame.f_code.co_filename == getattr(getattr(target, "__code__", None), "co_filename", None):
            try:
                return typing.get_type_hints(target, localns=names, include_extras=True)
            except NameError:
                continue
    return None


class _Writer:
    """Writes schemas, and collects the definitions that they refer to."""

    def __init__(self, takes_media: bool) -> None:
        self.takes_media = takes_media
        self.definitions: dict[str, Any] = {}
        #: The classes that are being described, and whether one refers to itself.
        self.open: dict[Any, bool] = {}

    def document(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {**schema, "$defs": self.definitions} if self.definitions else schema

    def schema(self, kind: Any, path: str) -> dict[str, Any]:
        origin = get_origin(kind)
        if origin is None:
            return self.plain(kind, path)
        arguments = get_args(kind)
        if origin is typing.Annotated:
            return self.annotated(kind, arguments, path)
        if origin is typing.Literal:
            return _enum([value.value if isinstance(value, enum.Enum) else value for value in arguments], path)
        if origin in (typing.Union, types.UnionType):
            return self.union(arguments, path)
        if origin in _OBJECTS:
            return self.mapping(arguments, path)
        if origin in _LISTS:
            return self.sequence(origin, arguments, path)
        if qualifier(origin):
            return self.schema(arguments[0], path)
        if isinstance(origin, type) and fields_of(origin) is not None:
            return self.fields(kind, origin, path)
        raise _unknown(kind, path)

    def plain(self, kind: Any, path: str) -> dict[str, Any]:
        if isinstance(kind, typing.NewType):
            return self.schema(kind.__supertype__, path)
        if type(kind).__name__ == "TypeAliasType":
            return self.schema(kind.__value__, path)
        if self.takes_media and (kind in (bytes, pathlib.Path) or _is_image(kind)):
            return dict(MEDIA)
        try:
            return dict(_SCALARS[kind])
        except (KeyError, TypeError):
            pass
        if kind in _OBJECTS:
            return {"type": "object"}
        if kind in _LISTS:
            return {"type": "array"}
        if not isinstance(kind, type):
            raise _unknown(kind, path)
        return self.class_(kind, path)

    def class_(self, kind: type[Any], path: str) -> dict[str, Any]:
        if is_pydantic(kind):
            return self.lift(kind, path)
        if issubclass(kind, enum.Enum):
            return _enum([member.value for member in kind], path)
        if fields_of(kind) is not None:
            return self.fields(kind, kind, path)
        for base, schema in _BASES.items():
            if issubclass(kind, base):
                return dict(schema)
        raise _unknown(kind, path)

    def fields(self, kind: Any, origin: type[Any], path: str) -> dict[str, Any]:
        """Describes a class with fields. One that contains itself becomes a definition."""
        name = _definition_name(kind)
        if kind in self.open:
            self.open[kind] = True
            return {"$ref": f"#/$defs/{name}"}
        fields = fields_of(origin) or {}
        self.open[kind] = False
        hints = _hints_of_class(kind, path)
        properties = {
            name: _with_default(self.schema(hints[name], f"{path}.{name}"), field.default)
            for name, field in fields.items()
        }
        schema = _object(properties, [name for name, field in fields.items() if field.is_required])
        if not self.open.pop(kind):
            return schema
        add_definitions(self.definitions, {name: schema}, path)
        return {"$ref": f"#/$defs/{name}"}

    def annotated(self, kind: Any, arguments: tuple[Any, ...], path: str) -> dict[str, Any]:
        base, *notes = arguments
        pydantic: Any = sys.modules.get("pydantic")
        if pydantic and any(type(note).__module__.startswith(("pydantic", "annotated_types")) for note in notes):
            return self.lift(kind, path)
        schema = self.schema(base, path)
        texts = [note if isinstance(note, str) else getattr(note, "documentation", None) for note in notes]
        text = next((text for text in texts if isinstance(text, str)), None)
        return schema if text is None else {**schema, "description": text}

    def union(self, kinds: tuple[Any, ...], path: str) -> dict[str, Any]:
        schemas = [self.schema(kind, path) for kind in kinds]
        if all(schema.keys() == {"type"} for schema in schemas):
            return {"type": [schema["type"] for schema in schemas]}
        return {"anyOf": schemas}

    def mapping(self, arguments: tuple[Any, ...], path: str) -> dict[str, Any]:
        keys, values = arguments
        if keys not in (str, Any) and not (isinstance(keys, type) and issubclass(keys, (str, enum.Enum))):
            raise TypeError(f"{path}: the keys of JSON objects are str, not {_name(keys)}")
        schema = self.schema(values, f"{path}[...]")
        return {"type": "object", "additionalProperties": schema} if schema else {"type": "object"}

    def sequence(self, origin: Any, arguments: tuple[Any, ...], path: str) -> dict[str, Any]:
        if origin is tuple and not (len(arguments) == 2 and arguments[1] is ...):
            items = [self.schema(kind, f"{path}[{index}]") for index, kind in enumerate(arguments)]
            return _tuple(items)
        return {"type": "array", "items": self.schema(arguments[0], f"{path}[...]")}

    def lift(self, kind: Any, path: str) -> dict[str, Any]:
        """Returns the schema of Pydantic, and moves its definitions to the document."""
        from ._pydantic import json_schema

        schema: dict[str, Any] = _draft_07(json_schema(kind, takes_media=self.takes_media))
        add_definitions(self.definitions, schema.pop("$defs", {}), path)
        return schema


def add_definitions(definitions: dict[str, Any], added: dict[str, Any], path: str) -> None:
    """Adds definitions to the document.

    Raises:
        TypeError: Two different definitions have the same name.
    """
    for name, definition in added.items():
        if definitions.setdefault(name, definition) != definition:
            raise TypeError(f"{path}: two different types have the name {name}")


def _tuple(items: list[Any]) -> dict[str, Any]:
    """Returns the schema of a tuple as Draft-07 writes it; ``prefixItems`` has no effect there."""
    length = len(items)
    return {"type": "array", "items": items, "additionalItems": False, "minItems": length, "maxItems": length}


def _draft_07(schema: Any) -> Any:
    """Returns the schema of Pydantic with its tuples as Draft-07 writes them, with references to media, and with times that need no
    zone."""
    if isinstance(schema, list):
        return [_draft_07(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    written = {key: part if key in _VALUES else _draft_07(part) for key, part in schema.items()}
    if written.pop("x-media", False):
        # Draft-07 ignores what is next to a reference.
        return dict(MEDIA)
    zoned = _ZONED.get(written.get("format", "")) if written.get("type") == "string" else None
    if zoned:
        del written["format"]
        written = {**zoned, **written}
    prefix = written.get("prefixItems")
    if isinstance(prefix, list):
        del written["prefixItems"]
        rest = written.pop("items", None)
        written["items"] = prefix
        if rest is not None or written.get("maxItems") == len(prefix):
            written["additionalItems"] = False if rest is None else rest
    return written


def _hints_of_class(kind: type[Any], path: str) -> dict[str, Any]:
    try:
        return hints_of(kind, include_extras=True)
    except NameError as error:
        raise TypeError(f"{path}: the type of a field of {_name(kind)} cannot be found: {error}") from error


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": required, "additionalProperties": False}


def _with_default(schema: dict[str, Any], default: Any) -> dict[str, Any]:
    """Adds a default that is a string, a number or a switch. Any other one says only that the member may be missing."""
    return {**schema, "default": default} if type(default) in (str, int, float, bool) else schema


def _enum(values: list[Any], path: str) -> dict[str, Any]:
    for value in values:
        if not isinstance(value, (str, int, float, bool, types.NoneType)):
            raise TypeError(f"{path}: JSON cannot represent the value {value!r}")
    kinds = {type(value) for value in values}
    kind = _SCALARS[kinds.pop()] if len(kinds) == 1 and kinds <= _SCALARS.keys() else {}
    return {**kind, "enum": values}


def _definition_name(kind: Any) -> str:
    """Returns ``Tree``, or ``Box_int`` for ``Box[int]``."""
    return "_".join(re.findall(r"\w+", _name(kind).replace(f"{getattr(kind, '__module__', '')}.", "")))


def _is_image(kind: Any) -> bool:
    from ._pydantic import is_image

    return is_image(kind)


def _unknown(kind: Any, path: str) -> TypeError:
    return TypeError(f"{path}: JSON has no schema for {_name(kind)}; use {_ALLOWED}")


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)
