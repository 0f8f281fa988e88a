"""Python objects as input."""

from __future__ import annotations

import dataclasses
import enum
import json
import struct
import zlib
from pathlib import Path
from typing import Any, ClassVar

import pytest
from conftest import Mock

from cognitive import CognitiveRuntime


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
        ({"code": [{1, 2}]}, TypeError, r"input.code\[0\]: JSON has no form for set"),
        ({1: "a"}, TypeError, "input: the key 1 is of type int; keys of JSON are strings"),
        ({"a": float("nan")}, ValueError, "input.a: JSON has no number NaN"),
        ({"a": [0.5, float("-inf")]}, ValueError, r"input.a\[1\]: JSON has no number -inf"),
        ({"a": 2**64}, ValueError, "input.a: the integer needs more than 64 bits"),
        ({"a": 10**5000}, ValueError, "input.a: the integer needs more than 64 bits"),
        ({"a": "\ud800"}, ValueError, "input.a: the text contains a surrogate"),
        ({"a": b"fn main() {}"}, TypeError, "input.a: the bytes are not an image, .*data.decode"),
    ],
)
def test_object_without_a_form_is_named(
    offline: CognitiveRuntime, value: object, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        offline.execute("code-reviewer", value)


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


def test_every_value_reaches_the_model(runtime: CognitiveRuntime, mock: Mock, tmp_path: Path) -> None:
    module = tmp_path / "echo"
    module.mkdir()
    (module / "module.yaml").write_text("name: echo\nversion: 1.0.0\nresponsibility: Echo\ntier: exec\n")
    (module / "prompt.md").write_text("Echo.\n")
    (module / "schema.json").write_text('{"input": {"type": "object"}, "data": {"type": "object"}}')
    shared = ["é\n"]
    given = {"a": 2**63, "b": -(2**63), "c": 0.1, "d": True, "e": None, "f": Number.ONE, "g": (), "h": [shared, shared]}
    result = runtime.execute(module, given)
    assert result.ok, result.error
    sent = next(text for text in texts(mock.requests[0]["messages"]) if "9223372036854775808" in text)
    found = json.loads(sent[sent.index('{"a"') : sent.rindex("}") + 1])
    assert found == {**given, "g": []}


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


@pytest.mark.parametrize("form", ["bytes", "bytearray", "path"])
def test_bytes_and_paths_become_media(
    runtime: CognitiveRuntime, mock: Mock, tmp_path: Path, form: str
) -> None:
    path = tmp_path / "elsewhere" / "a.png"
    path.parent.mkdir()
    path.write_bytes(png())
    image = {"bytes": png(), "bytearray": bytearray(png()), "path": path}[form]
    runtime.execute("image-analyzer", {"images": [image]}, max_attempts=1)
    assert "data:image/png;base64," in messages(mock)


def test_text_names_no_file(runtime: CognitiveRuntime, mock: Mock, tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.png"
    path.write_bytes(png())
    source = {"type": "file", "path": str(path)}
    result = runtime.execute("image-analyzer", {"images": [source]})
    assert result.error is not None and mock.requests == [], "only a Path object allows its file"
