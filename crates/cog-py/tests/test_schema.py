"""JSON Schemas from annotations."""

from __future__ import annotations

import enum
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict

import attrs
import pydantic
import pytest

from cognitive import Tool, task, testing


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: Annotated[float, "Upwards."] = 0.5
    tags: list[str] = field(default_factory=list)


class Options(TypedDict, total=False):
    deep: bool


class Pair(NamedTuple):
    first: str
    second: Optional[int] = None


@dataclass
class Tree:
    children: list[Tree]


def schema(function: Any) -> dict[str, Any]:
    return Tool(function, description="Does it.").parameters


def test_every_type_has_its_schema() -> None:
    def draw(
        name: str,
        count: int,
        size: float,
        deep: bool,
        colors: list[Color],
        mode: Literal["a", "b"],
        at: Point,
        where: Pair,
        options: Options,
        scores: dict[str, float],
        nothing: None,
        rest: Any,
        pair: tuple[int, str],
        many: Sequence[int],
        raw: Mapping[str, Any],
        limit: Annotated[int | None, "The maximum."] = 3,
        either: int | Point | None = None,
    ) -> None: ...

    found = schema(draw)
    point = {
        "type": "object",
        "properties": {
            "x": {"type": "integer"},
            "y": {"type": "number", "description": "Upwards.", "default": 0.5},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["x"],
        "additionalProperties": False,
    }
    assert found["properties"] == {
        "name": {"type": "string"},
        "count": {"type": "integer"},
        "size": {"type": "number"},
        "deep": {"type": "boolean"},
        "colors": {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "at": point,
        "where": {
            "type": "object",
            "properties": {"first": {"type": "string"}, "second": {"type": ["integer", "null"]}},
            "required": ["first"],
            "additionalProperties": False,
        },
        "options": {
            "type": "object",
            "properties": {"deep": {"type": "boolean"}},
            "required": [],
            "additionalProperties": False,
        },
        "scores": {"type": "object", "additionalProperties": {"type": "number"}},
        "nothing": {"type": "null"},
        "rest": {},
        "pair": {
            "type": "array",
            "items": [{"type": "integer"}, {"type": "string"}],
            "additionalItems": False,
            "minItems": 2,
            "maxItems": 2,
        },
        "many": {"type": "array", "items": {"type": "integer"}},
        "raw": {"type": "object"},
        "limit": {"type": ["integer", "null"], "description": "The maximum.", "default": 3},
        "either": {"anyOf": [{"type": "integer"}, point, {"type": "null"}]},
    }
    assert found["required"] == [name for name in found["properties"] if name not in ("limit", "either")]
    assert found["additionalProperties"] is False


def test_definitions_of_models_are_shared() -> None:
    def walk(one: Any, two: Any) -> None: ...

    walk.__annotations__.update(one=Node, two=Node)
    found = schema(walk)
    assert found["properties"]["two"] == {"$ref": "#/$defs/Node"}
    assert list(found["$defs"]) == ["Node"]


class Node(pydantic.BaseModel):
    next: Node | None = None


@attrs.define
class Owner:
    name: str
    _age: int = 3
    pets: list[str] = attrs.field(factory=list)


class Line(pydantic.BaseModel):
    ends: tuple[Point, int]
    points: tuple[int, ...] = pydantic.Field(default=(), examples=[{"prefixItems": [1]}])


def test_classes_of_attrs_have_fields() -> None:
    def find(owner: Owner) -> None: ...

    assert schema(find)["properties"]["owner"] == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "_age": {"type": "integer", "default": 3},
            "pets": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_tuples_of_pydantic_are_those_of_draft_07() -> None:
    def draw(line: Line) -> None: ...

    line = schema(draw)["properties"]["line"]
    ends = line["properties"]["ends"]
    assert ends["items"] == [{"$ref": "#/$defs/Point"}, {"type": "integer"}]
    assert ends["additionalItems"] is False and ends["maxItems"] == 2 and "prefixItems" not in ends
    assert line["properties"]["points"]["items"] == {"type": "integer"}
    assert line["properties"]["points"]["examples"] == [{"prefixItems": [1]}]


def without_annotation(city, days: int) -> None:  # type: ignore[no-untyped-def]
    """Forecasts."""


def with_object(city: complex) -> None:
    """Forecasts."""


def with_rest(*cities: str) -> None:
    """Forecasts."""


def with_keys(cities: dict[int, str]) -> None:
    """Forecasts."""


def test_type_of_a_function_is_found_where_it_is_defined() -> None:
    @dataclass
    class Local:
        x: int

    def find(local: Local) -> None: ...

    assert find.__annotations__["local"] == "Local"
    assert schema(find)["properties"]["local"]["required"] == ["x"]


def test_class_that_contains_itself_is_a_definition() -> None:
    def plant(tree: Tree) -> None: ...

    plant.__annotations__["tree"] = Tree
    children = {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
    found = schema(plant)
    assert found["properties"]["tree"] == {"$ref": "#/$defs/Tree"}
    assert found["$defs"]["Tree"]["properties"] == {"children": children}


def with_missing(city: "Town") -> None:  # type: ignore[name-defined]  # noqa: F821
    """Forecasts."""


RING = """
from __future__ import annotations
import dataclasses
import {module}

@dataclasses.dataclass
class {own}:
    name: str
    {field}: list[{module}.{kind}]
"""
RING_OF_MODELS = """
from __future__ import annotations
import typing
import pydantic
if typing.TYPE_CHECKING:
    from {module} import {kind}

class {own}(pydantic.BaseModel):
    name: str
    {field}: list[{kind}]
"""


@pytest.mark.parametrize("form", [RING, RING_OF_MODELS])
def test_type_refers_to_itself_through_three_modules(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each module imports the next one, and the last the first."""
    prefix = "ring" if form is RING else "ring_of_models"
    names = {own: f"{prefix}_{own.lower()}" for own in ("Company", "Team", "Person")}
    for own, field_name, kind in [("Company", "teams", "Team"), ("Team", "people", "Person"), ("Person", "jobs", "Company")]:
        (tmp_path / f"{names[own]}.py").write_text(form.format(own=own, field=field_name, kind=kind, module=names[kind]))
    monkeypatch.syspath_prepend(str(tmp_path))
    classes = {own: getattr(importlib.import_module(name), own) for own, name in names.items()}
    if form is RING_OF_MODELS:
        for model in classes.values():
            model.model_rebuild(_types_namespace=classes)
    company = classes["Company"]
    read = task(company, prompt="Read.", name="read")
    answer: dict[str, Any] = {"name": "a", "teams": [{"name": "b", "people": [{"name": "c", "jobs": [{"name": "d", "teams": []}]}]}]}
    found = read.with_options(runtime=testing.runtime(answer))(query="x")
    assert type(found.teams[0].people[0].jobs[0]) is company and found.teams[0].people[0].jobs[0].name == "d"
    answer["teams"][0]["people"][0]["jobs"] = [3]
    failed = read.with_options(runtime=testing.runtime(answer), retries=0).run(query="x")
    assert failed.error is not None and failed.error.code == "E3001" and "jobs[0]" in failed.error.message


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (without_annotation, r"without_annotation\(city\): the parameter has no annotation"),
        (with_object, r"with_object\(city\): JSON has no schema for complex; use str, int"),
        (with_rest, r"with_rest\(cities\): a parameter needs a name of its own"),
        (with_keys, r"with_keys\(cities\): the keys of JSON objects are str, not int"),
        (with_missing, r"with_missing: an annotation cannot be found: name 'Town' is not defined"),
    ],
)
def test_what_json_cannot_represent_is_named(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Tool(function)


def test_method_is_passed_bound() -> None:
    class Weather:
        def forecast(self, city: str) -> str:
            """Forecasts the weather."""
            return city

    assert list(Tool(Weather().forecast).parameters["properties"]) == ["city"]
    with pytest.raises(TypeError, match="pass a bound method"):
        Tool(Weather.forecast)


def test_name_and_description_are_checked() -> None:
    def undescribed(city: str) -> None: ...

    with pytest.raises(ValueError, match="undescribed: the model needs a description; write a docstring"):
        Tool(undescribed)
    with pytest.raises(ValueError, match="`a b` is not a valid tool name"):
        Tool(with_annotations, name="a b")
    with pytest.raises(TypeError, match="tool: found str; allowed: a function"):
        Tool("forecast")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="timeout: found 0"):
        Tool(with_annotations, timeout=0)


def with_annotations(city: str) -> str:
    """Forecasts."""
    return city
