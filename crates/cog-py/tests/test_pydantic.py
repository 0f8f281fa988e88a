"""Types of Pydantic, and types that only it could describe: as inputs, in schemas, and as answers."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import time
import typing
from collections.abc import Callable
from ipaddress import IPv4Address
from typing import Annotated, Any, Generic, TypedDict, TypeVar

import pydantic
import pytest
import typing_extensions
from pydantic.dataclasses import dataclass as pydantic_dataclass
from scripted import Scripted
from typing_extensions import NotRequired

from cognitive import CognitiveRuntime, Result, Task, task
from cognitive._fields import is_pydantic

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"


class Alias(pydantic.BaseModel):
    order_id: int = pydantic.Field(alias="orderId")
    note: str = pydantic.Field(default="", validation_alias=pydantic.AliasChoices("theNote", "note"), serialization_alias="out")


class Computed(pydantic.BaseModel, extra="forbid"):
    w: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def area(self) -> int:
        return self.w * 2


class Many(pydantic.BaseModel):
    url: pydantic.HttpUrl
    tags: set[str]
    wait: datetime.timedelta
    keys: dict[int, str]
    colors: dict[Color, int]
    at: datetime.datetime
    ip: IPv4Address
    kept: int = pydantic.Field(default=1, exclude=True)
    price: decimal.Decimal = decimal.Decimal("0.10")
    parts: list[Computed] = []
    packed: pydantic.Json[list[int]] = []

    @pydantic.field_serializer("kept", when_used="json")
    def _as_text(self, value: int) -> int:
        return value + 1


@dataclasses.dataclass
class Sized:
    width: int
    area: int = dataclasses.field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.width < 0:
            raise ValueError("the width is negative")
        self.area = self.width**2


class Names(pydantic.RootModel[dict[str, int]]):
    """Name them."""


@pydantic_dataclass
class Checked:
    """Check it."""

    a: int = pydantic.Field(ge=0, alias="A")
    b: int = pydantic.Field(default=1, le=5, description="bee")


class Optional(TypedDict):
    """Find it."""

    a: int
    b: NotRequired[str]
    c: Annotated[NotRequired[int], "Sea"]


class Backport(typing_extensions.TypedDict):
    """Find it."""

    a: int
    b: NotRequired[str]


@dataclasses.dataclass
class Box(Generic[T]):
    item: T
    more: list[T]


class Tree(TypedDict):
    value: int
    children: list[Tree]


@dataclasses.dataclass
class Chain:
    name: str
    next: Chain | None = None


class Iban(str):
    def __new__(cls, text: str) -> Iban:
        if not text.startswith("CH"):
            raise ValueError("an IBAN of this bank starts with CH")
        return super().__new__(cls, text)


MANY: Any = {
    "url": "https://e.com", "tags": {"b", "a"}, "wait": datetime.timedelta(minutes=5), "keys": {1: "a"}, "colors": {Color.RED: 2},
    "at": datetime.datetime(2026, 11, 1, 8, 30), "ip": "127.0.0.1", "parts": [Computed(w=2)], "packed": "[1, 2]",
}


def with_input(kind: Any) -> Task[..., str]:
    def work(given: Any) -> str:
        """Do it."""
        raise NotImplementedError

    work.__annotations__["given"] = kind
    return task(work)


def sent(kind: Any, value: Any) -> Any:
    """Returns what the model receives for a value of this type, which its own schema must accept."""
    model = Scripted(reply({"result": "done"}))
    result = with_input(kind).with_options(runtime=CognitiveRuntime(providers={"mine": model})).run(value)
    assert result.ok, result.error
    text = str(model.requests[0].messages[-1]["content"])
    return json.loads(text[text.index("{") : text.rindex("}") + 1], parse_float=decimal.Decimal)["given"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Alias.model_validate({"orderId": 3, "theNote": "n"}), {"orderId": 3, "theNote": "n"}),
        (Computed(w=1), {"w": 1}),
        (
            Many(**MANY),
            {
                "url": "https://e.com/", "tags": ["a", "b"], "wait": "PT5M", "keys": {"1": "a"}, "colors": {"red": 2},
                "at": "2026-11-01T08:30:00", "ip": "127.0.0.1", "kept": 1, "price": decimal.Decimal("0.10"),
                "parts": [{"w": 2}], "packed": "[1,2]",
            },
        ),
        (Sized(3), {"width": 3}),
        (Names({"Ada": 36}), {"Ada": 36}),
        (Checked(A=2), {"A": 2, "b": 1}),
        (Box(1, [2]), {"item": 1, "more": [2]}),
        (Chain("a", Chain("b")), {"name": "a", "next": {"name": "b", "next": None}}),
    ],
)
def test_object_is_the_input_that_its_schema_asks_for(value: Any, expected: Any) -> None:
    kind = Box[int] if isinstance(value, Box) else type(value)
    assert sent(kind, value) == expected


def test_schema_of_a_model_is_cached_and_freed_with_it() -> None:
    assert sent(Computed, Computed(w=1)) == sent(Computed, Computed(w=1))


def reply(data: Any) -> str:
    full = {**data, "rationale": "It is so."}
    return json.dumps({"ok": True, "meta": {"confidence": 0.9, "risk": "low", "explain": "Done."}, "data": full})


def answered(kind: Any, data: Any, *more: Any) -> Result[Any]:
    def work(text: str) -> Any:
        """Do it."""

    work.__annotations__["return"] = kind
    model = Scripted(*(reply(one) for one in (data, *more)))
    made: Task[..., Any] = task(work)
    return made.with_options(runtime=CognitiveRuntime(providers={"mine": model})).run("x")


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        (datetime.datetime, {"result": "2026-11-01T08:30:00"}, datetime.datetime(2026, 11, 1, 8, 30)),
        (datetime.time, {"result": "08:30:00"}, datetime.time(8, 30)),
        (Many, json.loads('{"url": "https://e.com", "tags": [], "wait": "PT5M", "keys": {}, "colors": {}, "ip": "::1", "at": "x"}'), None),
        (dict[str, int], {"result": {"John Doe": 30}}, {"John Doe": 30}),
        (dict[str, Any], {"result": {"result": 1}}, {"result": 1}),
        (Names, {"result": {"Ada": 36}}, Names({"Ada": 36})),
        (Optional, {"a": 1}, {"a": 1}),
        (Backport, {"a": 1}, {"a": 1}),
        (Checked, {"A": 1, "b": 2}, Checked(A=1, b=2)),
        (Box[int], {"item": 1, "more": [2]}, Box(1, [2])),
        (Tree, {"value": 1, "children": [{"value": 2, "children": []}]}, {"value": 1, "children": [{"value": 2, "children": []}]}),
        (Chain, {"name": "a", "next": {"name": "b"}}, Chain("a", Chain("b"))),
        (list[Chain], {"result": [{"name": "a"}]}, [Chain("a")]),
        (Iban, {"result": "CH93"}, "CH93"),
        (Annotated[int, pydantic.Field(ge=3)], {"result": 3}, 3),
        (Annotated[str, pydantic.AfterValidator(str.upper)], {"result": "a"}, "A"),
    ],
)
def test_answer_becomes_its_type(kind: Any, data: Any, expected: Any) -> None:
    result = answered(kind, data)
    if expected is None:
        assert not result.ok
    else:
        assert result.ok, result.error
        assert result.data == expected and type(result.data) is type(expected) or kind is Iban


@pytest.mark.parametrize(
    ("kind", "data", "code"),
    [
        (Optional, {"b": "x"}, "E3001"),
        (Checked, {"a": 1}, "E3001"),
        (Checked, {"A": -1}, "E3001"),
        (Box[int], {"item": "x", "more": []}, "E3001"),
        (Tree, {"value": 1, "children": [{"value": "x", "children": []}]}, "E3001"),
        (datetime.datetime, {"result": "yesterday"}, "E3006"),
        (Iban, {"result": "DE93"}, "E3006"),
    ],
)
def test_answer_that_does_not_fit_is_refused(kind: Any, data: Any, code: str) -> None:
    error = answered(kind, data).error
    assert error is not None and error.code == code


def test_schema_has_no_format_that_needs_a_zone() -> None:
    text = with_input(Many).files["schema.json"]
    assert "date-time" not in text and "2026-11-01T08:30:00" in text


class Sub(pydantic.BaseModel):
    a: int
    b: str


class Big(pydantic.BaseModel):
    items: list[Sub]
    now: Callable[[], float] = pydantic.Field(default=time.time, exclude=True)


def test_model_is_validated_once_and_needs_no_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **keywords: Any) -> Any:
        raise AssertionError("a schema was written")

    monkeypatch.setattr(Big, "model_json_schema", refuse)
    data = {"items": [{"a": 1, "b": "q"}]}
    assert Result(reply(data)).as_type(Big).items == [Sub(a=1, b="q")]
    assert is_pydantic(Checked) and not is_pydantic(typing.NamedTuple("Plain", [("a", int)]))
