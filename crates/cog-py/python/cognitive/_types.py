"""JSON as objects of types: dataclasses and what their fields can be, and Pydantic models."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import numbers
import pathlib
import sys
import types
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from ._errors import DataError
from ._fields import Field, fields_of, hints_of, is_pydantic, qualifier

#: Types of scalars that JSON writes as a string.
_TEXTS: dict[Any, Callable[[str], Any]] = {
    datetime.datetime: lambda text: datetime.datetime.fromisoformat(_with_offset(text)),
    datetime.date: datetime.date.fromisoformat,
    datetime.time: lambda text: datetime.time.fromisoformat(_with_offset(text)),
    uuid.UUID: uuid.UUID,
    pathlib.Path: pathlib.Path,
}

#: What is created from an array, for the type that is named.
_ARRAYS: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    Sequence: list,
    Set: frozenset,
}


#: The fields of an answer that the runtime adds to the module's.
_ADDED = frozenset({"rationale", "extensions"})
#: The field of an answer that is not an object, in a module that ``task`` made.
_WRAPPED = "result"


@dataclasses.dataclass(frozen=True)
class Wrapped:
    """The type of an answer that is no object with fields of its own, and is the member ``result`` of the data."""

    kind: Any


def is_wrapped_in_schema(schema: Mapping[str, Any]) -> bool:
    """Whether an answer with this schema is the member ``result`` of the data: it is no object, or one with any members."""
    return schema.get("type") != "object" or "properties" not in schema


def to_type(data: Any, text: str, kind: Any) -> Any:
    """Converts the data of an answer. ``text`` is the same as JSON."""
    if is_pydantic(kind):
        return to_model(text, kind)
    if isinstance(kind, Wrapped):
        return _convert(data[_WRAPPED], kind.kind, f"data.{_WRAPPED}")
    if _is_wrapped(data, kind):
        return _convert(data[_WRAPPED], kind, f"data.{_WRAPPED}")
    return _convert(data, kind, "data")


def to_model(text: str, kind: Any) -> Any:
    """Reads the data of an answer as a class of Pydantic."""
    is_root = getattr(kind, "__pydantic_root_model__", False)
    config = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", None) or {}
    if not is_root and config.get("extra") != "forbid":
        return _model(text, kind, "data")
    data = json.loads(text)
    if is_root:
        is_wrapped = _is_wrapped(data, kind)
        return _class(data[_WRAPPED] if is_wrapped else data, kind, f"data.{_WRAPPED}" if is_wrapped else "data")
    from ._pydantic import known_names

    unknown = _ADDED & data.keys() - known_names(kind)
    if unknown:
        text = json.dumps({key: value for key, value in data.items() if key not in unknown}, default=str)
    return _model(text, kind, "data")


def _is_wrapped(data: Any, kind: Any) -> bool:
    """Whether an answer is an object only because every answer is one, and the type is not."""
    if not (isinstance(data, dict) and _WRAPPED in data and data.keys() <= {_WRAPPED, *_ADDED}):
        return False
    if (typing.get_origin(kind) or kind) in (dict, Mapping):
        # A map of any values may have this member itself.
        return isinstance(data[_WRAPPED], dict) and typing.get_args(kind)[1:] not in ((), (Any,), (object,))
    return not _is_object(kind)


def _is_object(kind: Any) -> bool:
    """Whether values of a type are objects. A union is one if an arm can have the field of the answer."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return any(_is_object(arm) and _has_result(arm) for arm in typing.get_args(kind))
    origin = typing.get_origin(kind) or kind
    if origin in (Any, object, dict, Mapping) or not isinstance(origin, type):
        return origin in (Any, object, dict, Mapping)
    if is_pydantic(origin):
        return not getattr(origin, "__pydantic_root_model__", False)
    return fields_of(origin) is not None


def _has_result(kind: Any) -> bool:
    if is_pydantic(kind):
        from ._pydantic import known_names

        return _WRAPPED in known_names(kind)
    fields = fields_of(kind) if isinstance(kind, type) else None
    return fields is None or _WRAPPED in fields


def _convert(value: Any, kind: Any, path: str) -> Any:
    if isinstance(kind, (list, dict, set)):
        raise TypeError(f"{path}: an answer cannot become {kind!r}; write list[...] or dict[str, ...]")
    if kind in (Any, object) or isinstance(kind, typing.TypeVar):
        return value
    if kind is None or kind is types.NoneType:
        return _checked(value, value is None, "None", path)
    origin = typing.get_origin(kind)
    if origin is not None:
        return _generic(value, kind, origin, path)
    if isinstance(kind, typing.NewType):
        return _convert(value, kind.__supertype__, path)
    if type(kind).__name__ == "TypeAliasType":
        return _convert(value, kind.__value__, path)
    if kind in _ARRAYS or kind is tuple or kind in (dict, Mapping):
        return _generic(value, kind, kind, path)
    if not isinstance(kind, type):
        raise TypeError(f"{path}: an answer cannot become {kind!r}")
    return _class(value, kind, path)


def _class(value: Any, kind: type[Any], path: str) -> Any:
    if is_pydantic(kind):
        return _model(json.dumps(value, default=str), kind, path)
    if issubclass(kind, enum.Enum):
        return _enum(value, kind, path)
    if kind in (bool, int, float, str, decimal.Decimal):
        return _scalar(value, kind, path)
    if kind in _TEXTS:
        return _parsed(value, kind, path)
    fields = fields_of(kind)
    if fields is not None:
        return _object(value, kind, kind, fields, path)
    for base in (datetime.datetime, str, numbers.Integral, numbers.Real):
        if issubclass(kind, base):
            return _derived(value, kind, base, path)
    raise TypeError(f"{path}: an answer cannot become {kind.__name__}; use a dataclass or a Pydantic model")


def _derived(value: Any, kind: Any, base: Any, path: str) -> Any:
    """Lets a class that is derived from a scalar convert it, such as a scalar of NumPy. Its ``ValueError`` says what is wrong."""
    plain = {numbers.Integral: int, numbers.Real: float}.get(base, base)
    made = kind.fromisoformat if base is datetime.datetime else kind
    converted = value if base is datetime.datetime else _scalar(value, plain, path)
    try:
        return made(converted)
    except ValueError as error:
        raise DataError(path, str(error) or f"expected {kind.__name__}, found {_shown(value)}") from error


def _scalar(value: Any, kind: type[Any], path: str) -> Any:
    is_number = isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool)
    if kind is float and is_number and -sys.float_info.max <= value <= sys.float_info.max:
        return float(value)
    if kind is decimal.Decimal and is_number:
        return decimal.Decimal(repr(value)) if isinstance(value, float) else decimal.Decimal(value)
    if kind is int and is_number and _is_whole(value):
        return int(value)
    return _checked(value, type(value) is kind, kind.__name__, path)


def _is_whole(value: Any) -> bool:
    """Whether this is an integer. One whose exponent writes more digits than Python reads is none: it may need any memory."""
    if isinstance(value, decimal.Decimal):
        exponent = value.as_tuple().exponent
        return isinstance(exponent, int) and 0 <= exponent <= 4_300
    return not isinstance(value, float) or value.is_integer()


def _parsed(value: Any, kind: type[Any], path: str) -> Any:
    _checked(value, isinstance(value, str), f"{kind.__name__} as a text", path)
    try:
        return _TEXTS[kind](value)
    except ValueError as error:
        raise DataError(path, f"expected {kind.__name__}, found {_shown(value)}") from error


def _with_offset(text: str) -> str:
    """Python 3.10 reads no ``Z``."""
    return text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text


def _enum(value: Any, kind: type[enum.Enum], path: str) -> Any:
    for member in kind:
        if _equal(member.value, value):
            return member
    allowed = ", ".join(repr(member.value) for member in kind)
    raise DataError(path, f"expected one of {allowed}, found {_shown(value)}")


def _generic(value: Any, kind: Any, origin: Any, path: str) -> Any:
    arguments = typing.get_args(kind)
    if origin is typing.Annotated:
        return _annotated(value, kind, arguments, path)
    if origin is typing.Literal:
        return _literal(value, arguments, path)
    if origin in (typing.Union, types.UnionType):
        return _union(value, arguments, path)
    if origin is tuple:
        return _tuple(value, arguments, path)
    if origin in _ARRAYS:
        element = arguments[0] if arguments else Any
        return _ARRAYS[origin](_elements(value, path, lambda _: element))
    if origin in (dict, Mapping):
        return _mapping(value, arguments, path)
    if qualifier(origin):
        return _convert(value, arguments[0], path)
    fields = fields_of(origin) if isinstance(origin, type) else None
    if fields is not None:
        return _object(value, kind, origin, fields, path)
    raise TypeError(f"{path}: an answer cannot become {kind!r}; use a dataclass or a Pydantic model")


def _annotated(value: Any, kind: Any, arguments: tuple[Any, ...], path: str) -> Any:
    """Lets Pydantic read a type with its own notes, such as validators."""
    pydantic: Any = sys.modules.get("pydantic")
    if pydantic and any(type(note).__module__.startswith(("pydantic", "annotated_types")) for note in arguments[1:]):
        return _validated(pydantic.TypeAdapter(kind).validate_json, json.dumps(value, default=str), path)
    return _convert(value, arguments[0], path)


def _literal(value: Any, allowed: tuple[Any, ...], path: str) -> Any:
    for literal in allowed:
        if _equal(literal.value if isinstance(literal, enum.Enum) else literal, value):
            return literal
    raise DataError(path, f"expected one of {', '.join(map(repr, allowed))}, found {_shown(value)}")


def _union(value: Any, kinds: tuple[Any, ...], path: str) -> Any:
    if type(value) in kinds:
        return _convert(value, type(value), path)
    failures: list[DataError] = []
    for kind in kinds:
        try:
            return _convert(value, kind, path)
        except DataError as failure:
            if kind is not types.NoneType:
                failures.append(failure)
    if all(failure.path == path for failure in failures):
        names = " | ".join("None" if kind is types.NoneType else getattr(kind, "__name__", str(kind)) for kind in kinds)
        raise DataError(path, f"expected {names}, found {_shown(value)}")
    # The failure that is deepest in the value is about the type that was meant.
    raise max(failures, key=lambda failure: len(failure.path))


def _tuple(value: Any, kinds: tuple[Any, ...], path: str) -> Any:
    if not kinds or kinds[-1] is ...:
        return tuple(_elements(value, path, lambda _: kinds[0] if kinds else Any))
    _checked(value, isinstance(value, list) and len(value) == len(kinds), f"a list of {len(kinds)}", path)
    return tuple(_elements(value, path, lambda index: kinds[index]))


def _elements(value: Any, path: str, kind: Callable[[int], Any]) -> list[Any]:
    _checked(value, isinstance(value, list), "a list", path)
    return [_convert(element, kind(index), f"{path}[{index}]") for index, element in enumerate(value)]


def _mapping(value: Any, arguments: tuple[Any, ...], path: str) -> Any:
    _checked(value, isinstance(value, dict), "an object", path)
    keys, values = arguments or (str, Any)
    return {
        _convert(key, keys, f"{path}.{key}"): _convert(member, values, f"{path}.{key}")
        for key, member in value.items()
    }


def _object(value: Any, kind: Any, origin: type[Any], fields: dict[str, Field], path: str) -> Any:
    _checked(value, isinstance(value, dict), f"an object for {origin.__name__}", path)
    try:
        hints = hints_of(kind, include_extras=True)
    except NameError as error:
        raise TypeError(f"{path}: the type of a field of {origin.__name__} cannot be found: {error}") from error
    arguments: dict[str, Any] = {}
    for name, field in fields.items():
        if name in value:
            arguments[field.argument] = _convert(value[name], hints.get(name, Any), f"{path}.{name}")
        elif field.is_required:
            raise DataError(f"{path}.{name}", f"missing, and {origin.__name__} requires it")
    try:
        return origin(**arguments)
    except DataError:
        raise
    except ValueError as error:
        raise DataError(path, str(error)) from error


def _model(text: str, kind: Any, path: str) -> Any:
    """Lets Pydantic read JSON, also for models that are strict."""
    return _validated(kind.__pydantic_validator__.validate_json, text, path)


def _validated(validate: Callable[[str], Any], text: str, path: str) -> Any:
    try:
        return validate(text)
    except ValueError as error:
        violations = violations_of(error, path)
        if not violations:
            raise
        raise DataError(*violations[0]) from error


def violations_of(error: BaseException, path: str) -> list[tuple[str, str]]:
    """Returns everything that an error of Pydantic says, each with its path; nothing for another error."""
    if not hasattr(error, "errors") or not hasattr(error, "title"):
        return []
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [(path + "".join(map(_step, violation["loc"])), violation["msg"].removeprefix("Value error, ")) for violation in found]


def _step(step: Any) -> str:
    return f"[{step}]" if isinstance(step, int) else f".{step}"


def _equal(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON: true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _checked(value: Any, is_expected: bool, expected: str, path: str) -> Any:
    if not is_expected:
        raise DataError(path, f"expected {expected}, found {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
