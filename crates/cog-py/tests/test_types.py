"""Answers as objects of types."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import typing
import uuid
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union

import attrs
import pydantic
import pytest
from conftest import ANSWER, Mock

from cognitive import CognitiveError, CognitiveRuntime, DataError, Result


class Verdict(enum.Enum):
    APPROVE = "approve"
    REJECT = "reject"


@dataclasses.dataclass
class Issue:
    title: str
    line: int | None = None
    tags: list[str] = dataclasses.field(default_factory=list)
    seen: int = dataclasses.field(default=0, init=False)


@dataclasses.dataclass(frozen=True)
class Review:
    verdict: Verdict
    issues: list[Issue]
    rationale: str
    by_file: dict[str, Issue] = dataclasses.field(default_factory=dict)
    severity: Literal["low", "high"] = "low"


class Model(pydantic.BaseModel, strict=True):
    verdict: Literal["approve", "reject"]
    issues: list[Issue] = []
    when: datetime.datetime | None = None


@attrs.define
class Owner:
    name: str
    _age: int = 3


class Point(NamedTuple):
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    depth: int


class Even(pydantic.BaseModel):
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def _even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("the number is odd")
        return number


@dataclasses.dataclass
class Positive:
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("the number is negative")


T = TypeVar("T")


@dataclasses.dataclass
class Box(Generic[T]):
    content: T


@dataclasses.dataclass
class Unknown:
    member: Missing  # type: ignore[name-defined]  # noqa: F821


def answer(data: object) -> Result:
    return Result(json.dumps({**ANSWER, "data": data}))


def test_answer_becomes_a_dataclass() -> None:
    data = {
        "verdict": "approve",
        "issues": [{"title": "a", "line": 3, "tags": ["x"], "more": 1}, {"title": "b"}],
        "rationale": "Short.",
        "by_file": {"a.py": {"title": "c", "line": None}},
        "severity": "high",
    }
    review = answer(data).as_type(Review)
    issues = [Issue("a", 3, ["x"]), Issue("b")]
    assert review == Review(Verdict.APPROVE, issues, "Short.", {"a.py": Issue("c")}, "high")
    typing.assert_type(review, Review) if hasattr(typing, "assert_type") else None


def test_answer_becomes_a_model() -> None:
    model = answer({"verdict": "reject", "issues": [{"title": "a"}], "when": "2026-11-22T10:00:00Z"}).as_type(Model)
    assert model.issues == [Issue("a")] and model.when is not None and model.when.tzinfo is not None
    models = answer([{"verdict": "reject"}]).as_type(list[Model])
    assert models == [Model(verdict="reject")]


ID = uuid.UUID(int=7)


@pytest.mark.parametrize(
    ("data", "kind", "expected"),
    [
        ({"a": 1}, Any, {"a": 1}),
        ([1, 2.0, 3], list[int], [1, 2, 3]),
        ([1], list, [1]),
        ([1, 2], tuple[int, ...], (1, 2)),
        ([1, "a"], tuple[int, str], (1, "a")),
        (["a", "a"], set[str], {"a"}),
        (["a"], typing.FrozenSet[str], frozenset("a")),  # noqa: UP006
        (["a"], typing.Sequence[str], ["a"]),  # noqa: UP006
        ({"a": [1]}, typing.Mapping[str, list[float]], {"a": [1.0]}),  # noqa: UP006
        (None, Optional[int], None),  # noqa: UP007, UP045
        (1, Union[str, int], 1),  # noqa: UP007
        ("1", Union[int, str], "1"),  # noqa: UP007
        (True, bool, True),
        (0.1, decimal.Decimal, decimal.Decimal("0.1")),
        (2**70, decimal.Decimal, decimal.Decimal(2**70)),
        ("2026-11-22", datetime.date, datetime.date(2026, 11, 22)),
        ("10:00", datetime.time, datetime.time(10)),
        (str(ID), uuid.UUID, ID),
        ("a/b", Path, Path("a/b")),
        (5, Annotated[int, "line"], 5),
        (5, NewType("Line", int), 5),
        ({"name": "Ada", "_age": 4}, Owner, Owner("Ada", 4)),
        ({"x": 1}, Point, Point(1)),
        ({"depth": 1}, Options, {"depth": 1}),
        ({"number": 2}, Even, Even(number=2)),
    ],
)
def test_every_kind_of_type(data: object, kind: Any, expected: object) -> None:
    found = answer(data).as_type(kind)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        ({"verdict": "maybe"}, Review, "data.verdict: expected one of 'approve', 'reject', found 'maybe'"),
        ({"verdict": "approve", "issues": [{}]}, Review, "data.issues[0].title: missing, and Issue requires it"),
        ({"verdict": "approve", "issues": 1}, Review, "data.issues: expected a list, found 1"),
        ([{"title": "a", "line": "b"}], list[Issue], "data[0].line: expected int | None, found 'b'"),
        ([{"title": "a", "tags": [1]}], list[Issue], "data[0].tags[0]: expected str, found 1"),
        ({"a": 1.5}, dict[str, int], "data.a: expected int, found 1.5"),
        (True, int, "data: expected int, found True"),
        (1, bool, "data: expected bool, found 1"),
        (1, Literal[True], "data: expected one of True, found 1"),
        (10**400, float, "data: expected float, found 1" + "0" * 56 + "..."),
        ("x" * 99, int, "data: expected int, found '" + "x" * 56 + "..."),
        ("today", datetime.date, "data: expected date, found 'today'"),
        (1, uuid.UUID, "data: expected UUID as a text, found 1"),
        ([1], tuple[int, int], "data: expected a list of 2, found [1]"),
        (1, type(None), "data: expected None, found 1"),
        ({"x": "a"}, Optional[Point], "data.x: expected int, found 'a'"),  # noqa: UP007, UP045
        ({"number": -1}, Positive, "data: the number is negative"),
        ({"verdict": 1}, Model, "data.verdict: Input should be 'approve' or 'reject'"),
        ([{"number": 1}], list[Even], "data[0].number: the number is odd"),
        (
            {"verdict": "approve", "issues": [{"title": 1}]},
            Model,
            "data.issues[0].title: Input should be a valid string",
        ),
    ],
)
def test_what_does_not_fit_is_named(data: object, kind: Any, message: str) -> None:
    with pytest.raises(DataError) as raised:
        answer(data).as_type(kind)
    assert str(raised.value) == message
    assert message == f"{raised.value.path}: {raised.value.reason}"


@pytest.mark.parametrize("kind", [Unknown, complex, "Review", [int], list[bytes], Exception])
def test_type_that_is_not_supported_is_named(kind: Any) -> None:
    with pytest.raises(TypeError, match="data.*: (an answer cannot become|the type of a field of)"):
        answer([1] if kind == list[bytes] else {"content": 1, "member": 1}).as_type(kind)


def test_failed_run_has_no_type(offline: CognitiveRuntime) -> None:
    with pytest.raises(CognitiveError, match="E1003"):
        offline.execute("code-reviewer", {"code": 1}).as_type(Review)


def test_answer_of_a_run_becomes_a_dataclass(runtime: CognitiveRuntime, mock: Mock) -> None:
    assert runtime.execute("code-reviewer", "x").as_type(Review).verdict is Verdict.APPROVE
