"""Answers of tasks while they arrive."""

from __future__ import annotations

import asyncio
import enum
import json
import pydoc
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pydantic
import pytest
from scripted import Scripted

import cognitive
from cognitive import CognitiveError, CognitiveRuntime, ModelRequest, Partial, Pending, Provider, RunOptions, Task, task


class Kind(enum.Enum):
    BILLING = "billing"
    BUG = "bug"


@dataclass
class Line:
    text: str
    number: int


@dataclass
class Decision:
    """Decide."""

    kind: Kind
    urgency: Literal["low", "high"]
    reply: str
    lines: list[Line]


class Model(pydantic.BaseModel):
    """Decide."""

    kind: Kind
    reply: str = pydantic.Field(alias="answer")
    parts: dict[str, int] = {}
    note: str = pydantic.Field(default="", validation_alias=pydantic.AliasChoices("theNote", "note"))


def text(data: Any, **more: Any) -> str:
    full = {**data, "rationale": "It is so."}
    return json.dumps({"ok": True, "meta": {"confidence": 0.9, "risk": "low", "explain": "Done."}, "data": full, **more})


DATA: Any = {"kind": "billing", "urgency": "high", "reply": "Dear Ada, hello.", "lines": [{"text": "abc", "number": 3}]}


class Letters(Provider):
    """Replies one letter at a time."""

    model = "letters-1"
    cancelled = 0
    #: Whether it waits for ever after the last letter.
    hangs = False

    def __init__(self, *replies: str) -> None:
        self.replies = iter(replies)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        try:
            for letter in next(self.replies):
                yield letter
                await asyncio.sleep(0)
            if self.hangs:
                await asyncio.get_running_loop().create_future()
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled += 1
            raise


def parts_of(kind: Any, *replies: str, **options: Any) -> Iterator[Partial[Any]]:
    made: Any = task(kind, **options)
    own = made.with_options(runtime=CognitiveRuntime(providers={"mine": Letters(*replies)}))
    stream: Iterator[Partial[Any]] = own.stream(query="x")
    return stream


def test_fields_appear_when_they_are_complete() -> None:
    parts = list(parts_of(Decision, text(DATA)))
    kinds = [getattr(part.value, "kind", None) for part in parts]
    assert set(kinds) == {None, Kind.BILLING}  # never a part of one
    growing = [part.text for part in parts if part.path == "reply"]
    assert growing[0] and growing == sorted(growing) and growing[-1] == DATA["reply"]
    first = next(part for part in parts if "kind" in part.complete)
    assert first.value.kind is Kind.BILLING and not hasattr(first.value, "reply")
    seen: frozenset[str] = frozenset()
    for part in parts:
        assert seen <= part.complete
        seen = part.complete
    assert seen == {"kind", "urgency", "reply", "lines[0].text", "lines[0].number"}
    assert parts[-1].value == Decision(Kind.BILLING, "high", DATA["reply"], [Line("abc", 3)])
    arriving = next(part for part in parts if part.path == "lines[0].text")
    assert not hasattr(arriving.value, "lines") and arriving.value.reply == DATA["reply"]


def test_models_have_only_what_has_arrived() -> None:
    data = {"kind": "bug", "answer": "No.", "parts": {"a": 1, "b": 2}, "theNote": "n"}
    parts = list(parts_of(Model, text(data)))
    first = next(part for part in parts if part.complete)
    assert isinstance(first.value, Model) and first.value.model_fields_set == {"kind"}
    with pytest.raises(AttributeError):
        first.value.reply  # noqa: B018
    assert next(part for part in parts if "answer" in part.complete).value.reply == "No."
    assert parts[-1].value == Model.model_validate(data)


def test_answer_that_is_no_object_grows() -> None:
    def list_lines(query: str) -> list[Line]:
        """List."""
        raise NotImplementedError

    data = {"result": [{"text": "a", "number": 1}, {"text": "b", "number": 2}]}
    parts = list(parts_of(list_lines, text(data)))
    assert parts[-1].value == [Line("a", 1), Line("b", 2)]
    assert parts[-1].complete == {"[0].text", "[0].number", "[1].text", "[1].number"}
    assert any(part.value == [Line("a", 1)] for part in parts)


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    lives: int
    breed: str = ""


def test_class_of_a_union_is_the_one_that_fits() -> None:
    def find(query: str) -> list[Cat | Dog]:
        """Find."""
        raise NotImplementedError

    data = {"result": [{"kind": "dog", "lives": 1, "breed": "lab"}, {"kind": "cat", "lives": 9}]}
    parts = list(parts_of(find, text(data)))
    seen = {tuple(type(item) for item in part.value) for part in parts}
    assert seen == {(), (Dog,), (Dog, Cat)}


def test_new_attempt_begins_with_nothing() -> None:
    wrong = {**DATA, "urgency": "medium"}
    parts = list(parts_of(Decision, text(wrong), text(DATA)))
    assert "urgency" not in set().union(*(part.complete for part in parts[: next(index for index, part in enumerate(parts) if index and not part.complete and part.path is None)]))
    assert parts[-1].value.urgency == "high"


def test_failed_run_raises_at_its_end() -> None:
    stream: Any = parts_of(Decision, text({**DATA, "urgency": "medium"}), retries=0)
    with pytest.raises(CognitiveError, match="E3005"):
        list(stream)
    assert stream.result.error.code == "E3005"


def test_consumer_that_leaves_cancels_the_model() -> None:
    # Half a reply: the model must not be done before its consumer leaves.
    model = Letters(text(DATA)[:-30], text(DATA)[:-30])
    model.hangs = True
    own = task(Decision).with_options(runtime=CognitiveRuntime(providers={"mine": model}))

    async def leave() -> None:
        async for part in own.stream(query="x"):
            if "kind" in part.complete:
                break
        await cancelled(1)
        task_ = asyncio.create_task(collect())
        await asyncio.sleep(0)
        task_.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task_

    async def collect() -> list[Partial[Decision]]:
        return [part async for part in own.stream(query="x")]

    async def cancelled(count: int) -> None:
        while model.cancelled < count:
            await asyncio.sleep(0.001)

    asyncio.run(leave())


def test_event_loop_gets_the_same_parts() -> None:
    async def collect() -> list[Any]:
        own = task(Decision).with_options(runtime=CognitiveRuntime(providers={"mine": Letters(text(DATA))}))
        async with own.stream(query="x") as stream:
            found = [part async for part in stream]
        assert stream.result is not None and stream.result.data == found[-1].value
        return found

    values = [part.value for part in asyncio.run(collect())]
    assert values[-1] == list(parts_of(Decision, text(DATA)))[-1].value


def test_answer_is_shown_in_a_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    own = task(Decision).with_options(runtime=CognitiveRuntime(providers={"mine": Letters(text(DATA))}))
    stream = own.stream(query="x")
    stream.display()
    assert stream.result is not None and stream.result.data == Decision(Kind.BILLING, "high", DATA["reply"], [Line("abc", 3)])


def test_help_lists_the_options() -> None:
    runtime, names = CognitiveRuntime, RunOptions.__optional_keys__
    functions: list[Any] = [runtime.execute, runtime.execute_async, runtime.execute_stream, runtime.render, runtime.map, runtime.amap]
    functions += [runtime.batch, runtime.continue_run, runtime.continue_run_async, task, Task.with_options, cognitive.frame]
    functions += [Pending.approve, Pending.deny, cognitive.ModuleFunction.with_options]
    for function in functions:
        described = pydoc.render_doc(function)
        assert [name for name in names if f"``{name}``" not in described] == [], function
    described = pydoc.render_doc(cognitive.Tool)
    assert [name for name in cognitive.Tool.__init__.__kwdefaults__ or {} if name not in described] == []


def test_whole_reply_at_once_is_a_stream_too() -> None:
    own = task(Decision).with_options(runtime=CognitiveRuntime(providers={"mine": Scripted(text(DATA))}))
    with own.stream(query="x") as stream:
        assert list(stream)[-1].value.kind is Kind.BILLING
