"""Python objects as input."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import io
import json
import struct
import uuid
import zlib
from array import array
from collections import ChainMap, deque
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypedDict

import attrs
import numpy
import pandas
import PIL.Image
import pydantic
import pytest
from conftest import Mock

from cognitive import CognitiveRuntime, task


@dataclasses.dataclass
class Review:
    language: ClassVar[str] = "no field of the instances"
    code: str
    focus: list[str] = dataclasses.field(default_factory=list)


class Model:
    """What Pydantic models have in common."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self.fields


class Number(enum.IntEnum):
    ONE = 1


def messages(mock: Mock) -> str:
    return str(mock.requests[-1]["messages"])


@pytest.mark.parametrize(
    "value", [Review("fn a()", ["tests"]), Model(code="fn a()", focus=("tests",)), Model(code="fn a()")]
)
def test_objects_become_dicts(runtime: CognitiveRuntime, mock: Mock, value: object) -> None:
    result = runtime.execute("code-reviewer", value)
    assert result.ok, result.error
    assert "fn a()" in messages(mock)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ({"code": object()}, TypeError, "input.code: JSON has no form for object"),
        ({"code": [{1, "a"}]}, TypeError, r"input.code\[0\]: JSON has no form for set; .*pass a list"),
        ({1: "a"}, TypeError, r"input: the key 1 is of type int; keys of JSON are strings; pass str\(key\)"),
        ({"a": {uuid.UUID(int=1): 1}}, TypeError, r"input.a: the key UUID\(.* is of type UUID"),
        ({"a": Decimal("NaN")}, ValueError, "input.a: JSON has no number NaN"),
        ({"a": Decimal("-Infinity")}, ValueError, "input.a: JSON has no number -Infinity"),
        ({"a": Decimal("sNaN")}, ValueError, "input.a: JSON has no number sNaN"),
        ({"a": Review}, TypeError, "input.a: found the class .*Review.*; pass an instance"),
        ({"a": iter([1])}, TypeError, r"input.a: JSON has no form for list_iterator; pass list\(value\)"),
        ({"a": io.StringIO("a")}, TypeError, r"input.a: .*StringIO; pass what it contains: value.read\(\)"),
        ({"a": datetime.timedelta(1)}, TypeError, r"input.a: .*timedelta; pass value.total_seconds\(\)"),
        ({"a": lambda: 1}, TypeError, "input.a: JSON has no form for function; pass what it returns"),
        ({"a": [complex(1, 2)]}, TypeError, r"input.a\[0\]: JSON has no form for complex; use dict, list"),
        ({"a": pandas.NaT}, ValueError, "input.a: JSON has no time NaT; use None"),
        ("\ud800", ValueError, "input: the text contains a surrogate"),
        ({"\ud800": 1}, ValueError, "input: the text contains a surrogate"),
        ({"a": float("nan")}, ValueError, "input.a: JSON has no number NaN"),
        ({"a": [0.5, float("-inf")]}, ValueError, r"input.a\[1\]: JSON has no number -inf"),
        ({"a": 10**5000}, ValueError, "input.a: the integer has too many digits for Python; pass it as a string"),
        ({"a": "\ud800"}, ValueError, "input.a: the text contains a surrogate"),
        ({"a": b"fn main() {}"}, TypeError, "input.a: the bytes are not an image, .*data.decode"),
    ],
)
def test_object_without_a_form_is_named(
    offline: CognitiveRuntime, value: object, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        offline.execute("code-reviewer", value)


def test_integers_of_any_size_are_exact(offline: CognitiveRuntime) -> None:
    class Large(enum.IntEnum):
        NUMBER = 2**80

    @task
    def double(numbers: list[int]) -> list[int]:
        """Double the numbers."""
        raise NotImplementedError

    numbers = [2**63, 2**64, -(2**70), Large.NUMBER, 10**4000]
    rendered = json.dumps(offline.render(double, {"numbers": numbers})["messages"])
    assert all(str(int(number)) in rendered for number in numbers)


def test_object_that_contains_itself_is_named(offline: CognitiveRuntime) -> None:
    cyclic: dict[str, Any] = {"a": {"b": []}}
    cyclic["a"]["b"].append(cyclic)
    with pytest.raises(ValueError, match=r"input.a.b\[0\]: the object contains itself"):
        offline.execute("code-reviewer", cyclic)
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(ValueError, match="more than 128 levels"):
        offline.execute("code-reviewer", deep)


def test_error_of_an_object_is_raised(offline: CognitiveRuntime) -> None:
    class Broken:
        def model_dump(self) -> dict[str, Any]:
            raise LookupError("no fields")

    with pytest.raises(LookupError, match="no fields"):
        offline.execute("code-reviewer", {"code": Broken()})


def test_model_that_dumps_itself_ends(offline: CognitiveRuntime) -> None:
    class Endless:
        def model_dump(self) -> Endless:
            return self

    with pytest.raises(ValueError, match="the object contains itself"):
        offline.execute("code-reviewer", Endless())


Echo = Callable[[object], Any]


@pytest.fixture
def echo(runtime: CognitiveRuntime, mock: Mock, tmp_path: Path) -> Echo:
    """Returns what the model receives for an input."""
    module = tmp_path / "echo"
    module.mkdir()
    (module / "module.yaml").write_text("name: echo\nversion: 1.0.0\nresponsibility: Echo\ntier: exec\n")
    (module / "prompt.md").write_text("Echo.\n")
    (module / "schema.json").write_text('{"input": {"type": "object"}, "data": {"type": "object"}}')

    def send(value: object) -> Any:
        result = runtime.execute(module, {"value": value})
        assert result.ok, result.error
        sent = next(text for text in texts(mock.requests[-1]["messages"]) if '{"value"' in text)
        found = sent[sent.index('{"value"') : sent.rindex("}") + 1]
        return json.loads(found, parse_float=Decimal)["value"]

    return send


def test_every_value_reaches_the_model(echo: Echo) -> None:
    shared = ["é\n"]
    given = {"a": 2**63, "b": -(2**63), "c": 0.5, "d": True, "e": None, "f": Number.ONE, "g": (), "h": [shared, shared]}
    assert echo(given) == {**given, "g": []}


class Color(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: Decimal


class Place(TypedDict):
    point: Point


@attrs.define
class Owner:
    name: str
    _since: datetime.date


class Account(pydantic.BaseModel):
    id: uuid.UUID
    owner: Review
    tags: tuple[Color, ...]


@pytest.mark.parametrize(
    ("value", "received"),
    [
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Decimal("0.10"), Decimal("0.10")),
        (Decimal(2**80), 2**80),
        (Decimal("-1E+3"), -1000),
        (datetime.datetime(2026, 11, 22, 10, tzinfo=datetime.timezone.utc), "2026-11-22T10:00:00+00:00"),
        (datetime.date(2026, 11, 22), "2026-11-22"),
        (datetime.time(10, 30), "10:30:00"),
        (pandas.Timestamp("2026-11-22T10:00"), "2026-11-22T10:00:00"),
        ([numpy.int64(3), numpy.float32(0.5), numpy.bool_(True), numpy.str_("a")], [3, 0.5, True, "a"]),
        ({3, 1, 2}, [1, 2, 3]),
        (pydantic.SecretStr("hunter2"), "**********"),
        ({"a": Color.RED}, {"a": "red"}),
        ({Color.RED: 1}, {"red": 1}),
        (MappingProxyType({"a": deque([1, 2])}), {"a": [1, 2]}),
        (ChainMap({"a": 1}, {"b": 2}), {"a": 1, "b": 2}),
        ([range(3), array("d", [0.5])], [[0, 1, 2], [0.5]]),
        (Place(point=Point(1, Decimal("2.5"))), {"point": {"x": 1, "y": 2.5}}),
        (Owner("Ada", datetime.date(2026, 1, 1)), {"name": "Ada", "_since": "2026-01-01"}),
        (
            Account(id=uuid.UUID(int=7), owner=Review("a"), tags=(Color.RED,)),
            {
                "id": "00000000-0000-0000-0000-000000000007",
                "owner": {"code": "a", "focus": []},
                "tags": ["red"],
            },
        ),
    ],
)
def test_objects_of_the_standard_library_have_a_form(echo: Echo, value: object, received: object) -> None:
    assert echo(value) == received


def test_long_input_arrives(echo: Echo) -> None:
    assert echo(["x" * 99] * 5_000) == ["x" * 99] * 5_000


def texts(messages: list[dict[str, Any]]) -> list[str]:
    """The texts of messages, whose content is a text or a list of parts."""
    contents = [message["content"] for message in messages]
    parts = [part for content in contents for part in ([content] if isinstance(content, str) else content)]
    return [part if isinstance(part, str) else part.get("text", "") for part in parts]


def png() -> bytes:
    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", pixels) + part(b"IEND", b"")


@pytest.mark.parametrize("form", ["bytes", "bytearray", "memoryview", "path", "image"])
def test_bytes_and_paths_become_media(
    runtime: CognitiveRuntime, mock: Mock, tmp_path: Path, form: str
) -> None:
    path = tmp_path / "elsewhere" / "a.png"
    path.parent.mkdir()
    path.write_bytes(png())
    image = {
        "bytes": png(),
        "bytearray": bytearray(png()),
        "memoryview": memoryview(png()),
        "path": path,
        "image": PIL.Image.new("RGBA", (2, 2)),
    }[form]
    runtime.execute("image-analyzer", {"images": [image]}, max_attempts=1)
    assert "data:image/png;base64," in messages(mock)


def test_image_that_png_cannot_represent_is_named(offline: CognitiveRuntime) -> None:
    with pytest.raises(ValueError, match=r"input.images\[0\]: the image cannot be .*image.convert\(\"RGB\"\)"):
        offline.execute("image-analyzer", {"images": [PIL.Image.new("CMYK", (2, 2))]})


def test_text_names_no_file(runtime: CognitiveRuntime, mock: Mock, tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.png"
    path.write_bytes(png())
    source = {"type": "file", "path": str(path)}
    result = runtime.execute("image-analyzer", {"images": [source]})
    assert result.error is not None and mock.requests == [], "only a Path object allows its file"
