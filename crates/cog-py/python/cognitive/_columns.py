"""The columns of results: types from the contract of a module, and rows from envelopes.

Nothing here needs a package; ``docs/arrow.md`` has the rules. The cases in ``crates/cog-batch/tests/arrow`` are also those of
``cog batch``, which has the same columns.
"""

from __future__ import annotations

import dataclasses
import json
import urllib.parse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Union

if TYPE_CHECKING:
    from ._cognitive import Module

#: The maximum number of lists and structs within each other. Readers of Arrow allow 64, with those around the answer.
MAX_DEPTH = 32
#: The maximum number of references within each other.
MAX_REFERENCES = 64
#: The maximum number of fields. A short contract can describe millions, by references to references.
MAX_FIELDS = 10_000


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A value without parts. ``open`` is a string as itself and anything else as JSON; ``json`` is always JSON text."""

    kind: Literal["bool", "int64", "float64", "utf8", "open", "json"]


@dataclasses.dataclass(frozen=True)
class Choice:
    """One of several texts: a dictionary."""

    values: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Items:
    """A list."""

    item: Type


@dataclasses.dataclass(frozen=True)
class Struct:
    """An object with these members, in order."""

    fields: tuple[tuple[str, Type], ...]


Type = Union[Leaf, Choice, Items, Struct]

BOOL, INT, FLOAT = Leaf("bool"), Leaf("int64"), Leaf("float64")
TEXT, OPEN, JSON = Leaf("utf8"), Leaf("open"), Leaf("json")
_NAMED: dict[str, Type] = {"boolean": BOOL, "integer": INT, "number": FLOAT, "string": TEXT}
_USAGE = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens")


def columns_of(module: Module) -> Struct:
    """Returns the columns of the results of a module."""
    return columns(data_type(module.contract, module.data_schema))


def columns(data: Type) -> Struct:
    """Returns the columns of results with such data."""
    return Struct((
        ("ok", BOOL),
        ("data", data),
        ("confidence", FLOAT),
        ("risk", OPEN),
        ("explain", TEXT),
        ("model", TEXT),
        ("usage", Struct(tuple((name, INT) for name in _USAGE))),
        ("cost_usd", FLOAT),
        ("error_code", TEXT),
        ("error_message", TEXT),
        ("unmapped", JSON),
    ))


def data_type(contract: Mapping[str, Any], data: object) -> Type:
    """Returns the type of an answer.

    Args:
        contract: The document into which references point.
        data: The schema of the answer.
    """
    try:
        found = _Reader(contract).type_of(data, 1, frozenset())
    except _TooManyFields:
        return JSON
    if not isinstance(found, Struct) or "rationale" in dict(found.fields):
        return found
    return Struct((*found.fields, ("rationale", TEXT)))


class _TooManyFields(Exception):
    """The contract has more than ``MAX_FIELDS``."""


class _Reader:
    """Reads the schemas of a document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._fields = 0

    def type_of(self, schema: object, depth: int, within: frozenset[str]) -> Type:
        """Returns the type of a schema at a depth, within the targets of these references."""
        if not isinstance(schema, dict):
            return JSON
        if isinstance(reference := schema.get("$ref"), str):
            if reference in within or len(within) >= MAX_REFERENCES:
                return JSON
            return self.type_of(_target(self._document, reference), depth, within | {reference})
        if isinstance(values := schema.get("enum", [schema["const"]] if "const" in schema else None), list):
            return _listed(values)
        return self._typed(schema, _type_name(schema), depth, within)

    def _typed(self, schema: dict[str, Any], name: str | None, depth: int, within: frozenset[str]) -> Type:
        if name == "object":
            return self._object(schema.get("properties"), depth, within)
        if name == "array" and isinstance(items := schema.get("items"), dict):
            return Items(self.type_of(items, depth + 1, within)) if depth <= MAX_DEPTH else JSON
        if name == "":
            return self._alternatives(schema, depth, within)
        return _NAMED.get(name or "", JSON)

    def _object(self, properties: object, depth: int, within: frozenset[str]) -> Type:
        # Names pass through strings of C, which end at NUL.
        if depth > MAX_DEPTH or not isinstance(properties, dict) or not properties or any("\0" in name for name in properties):
            return JSON
        self._fields += len(properties)
        if self._fields > MAX_FIELDS:
            raise _TooManyFields
        return Struct(tuple((name, self.type_of(schema, depth + 1, within)) for name, schema in properties.items()))

    def _alternatives(self, schema: dict[str, Any], depth: int, within: frozenset[str]) -> Type:
        lists = [schema[name] for name in ("allOf", "anyOf", "oneOf") if name in schema]
        if len(lists) != 1 or not isinstance(lists[0], list):
            return JSON
        others = lists[0] if "allOf" in schema else [other for other in lists[0] if other != {"type": "null"}]
        if len(others) == 1:
            return self.type_of(others[0], depth, within)
        if "allOf" not in schema and len(others) == 2 and self._is_extensible(others):
            return OPEN
        return JSON

    def _is_extensible(self, alternatives: list[object]) -> bool:
        """Whether these are an enum and an object for what it does not list, which JSON text cannot be confused with."""
        resolved = [self._resolved(schema) for schema in alternatives]
        values = [schema["enum"] for schema in resolved if isinstance(schema.get("enum"), list)]
        is_object = [schema.get("type") == "object" and "enum" not in schema for schema in resolved]
        if len(values) != 1 or is_object.count(True) != 1:
            return False
        return isinstance(listed := _listed(values[0]), Choice) and not any(value.startswith("{") for value in listed.values)

    def _resolved(self, schema: object) -> dict[str, Any]:
        """Follows references, as far as they end."""
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, dict) or not isinstance(reference := schema.get("$ref"), str):
                break
            schema = _target(self._document, reference)
        return schema if isinstance(schema, dict) else {}


def _target(document: object, reference: str) -> object:
    """Returns what a reference within the document points to, otherwise None."""
    if reference == "#":
        return document
    if not reference.startswith("#/"):
        return None
    for part in urllib.parse.unquote(reference[2:]).split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(key)
        elif isinstance(document, list) and key.isdecimal() and int(key) < len(document):
            document = document[int(key)]
        else:
            return None
    return document


def _type_name(schema: dict[str, Any]) -> str | None:
    """Returns the one type of a schema besides null; ``""`` if other keywords decide it, None if there are several."""
    named = schema.get("type")
    if named is None:
        if any(name in schema for name in ("allOf", "anyOf", "oneOf")):
            return ""
        return "object" if "properties" in schema else "array" if "items" in schema else None
    names = {named} if isinstance(named, str) else set(named) - {"null"}
    if names == {"integer", "number"}:
        return "number"
    return names.pop() if len(names) == 1 else None


def _listed(values: list[Any]) -> Type:
    """Returns the type of listed values."""
    values = [value for value in values if value is not None]
    kinds = {type(value) for value in values}
    if kinds == {str}:
        return Choice(tuple(dict.fromkeys(values)))
    if kinds == {bool}:
        return BOOL
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in values):
        return INT
    return FLOAT if kinds and kinds <= {int, float} else JSON


def row(envelope: Mapping[str, Any], columns: Struct) -> dict[str, Any]:
    """Returns the cells of an envelope, by column.

    What has no place in the type of ``data`` is in ``unmapped``, by its JSON pointer.
    """
    meta, error = envelope.get("meta") or {}, envelope.get("error") or {}
    usage = meta.get("usage") or {}
    cost = usage.get("cost") or {}
    types = dict(columns.fields)
    unmapped: dict[str, Any] = {}
    found = {
        "ok": envelope.get("ok") is True,
        "confidence": meta.get("confidence"),
        "risk": meta.get("risk"),
        "explain": meta.get("explain"),
        "model": meta.get("model"),
        "usage": {name: usage.get(name) for name in _USAGE} if usage else None,
        "cost_usd": cost.get("amount") if cost.get("currency") == "USD" else None,
        "error_code": error.get("code"),
        "error_message": error.get("message"),
    }
    cells = {name: cell(types[name], value, "", {}) for name, value in found.items()}
    cells["data"] = cell(types["data"], envelope.get("data"), "", unmapped)
    cells["unmapped"] = json_text(unmapped) if unmapped else None
    return {name: cells[name] for name, _ in columns.fields}


def cell(kind: Type, value: Any, pointer: str, unmapped: dict[str, Any]) -> Any:
    """Returns a value as its type represents it. What the type cannot represent is added to ``unmapped``."""
    if value is None:
        return None
    if isinstance(kind, Struct) and isinstance(value, dict):
        return _members(kind, value, pointer, unmapped)
    if isinstance(kind, Items) and isinstance(value, list):
        return [cell(kind.item, item, f"{pointer}/{index}", unmapped) for index, item in enumerate(value)]
    if isinstance(kind, Choice) and isinstance(value, str) and value in kind.values:
        return value
    found = _scalar(kind.kind, value) if isinstance(kind, Leaf) else None
    if found is None:
        unmapped[pointer] = value
    return found


def _members(kind: Struct, value: dict[str, Any], pointer: str, unmapped: dict[str, Any]) -> dict[str, Any]:
    types = dict(kind.fields)
    cells: dict[str, Any] = dict.fromkeys(types)
    for name, member in value.items():
        inside = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
        if name in types:
            cells[name] = cell(types[name], member, inside, unmapped)
        else:
            unmapped[inside] = member
    return cells


def _scalar(kind: str, value: Any) -> Any:
    """Returns the value, or None if the type cannot represent it."""
    if kind == "json":
        return json_text(value)
    if isinstance(value, str):
        return value if kind in ("utf8", "open") else None
    if kind == "open":
        return json_text(value)
    if isinstance(value, bool):
        return value if kind == "bool" else None
    if kind == "int64":
        return _integer(value)
    return _float(value) if kind == "float64" else None


def _integer(value: Any) -> int | None:
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole and -(2**63) <= value < 2**63 else None


def _float(value: Any) -> float | None:
    """An integer that a float would round is none."""
    if isinstance(value, float):
        return value
    if not isinstance(value, int) or abs(value) > 2**1023:
        return None
    return float(value) if float(value) == value else None


def json_text(value: Any) -> str:
    """Returns a value as compact JSON."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(name)}:{json_text(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    if value is None or isinstance(value, (str, bool, int, float)):
        return json.dumps(value, ensure_ascii=False)
    # A `Decimal`: an integer of more digits than Python converts, or a number beyond its floats.
    return str(value)
