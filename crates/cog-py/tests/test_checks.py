"""Checks of answers: what validators, constructors and functions of a task say goes back to the model."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pickle
from typing import Any

import pydantic
import pytest
from scripted import Scripted

from cognitive import CognitiveError, CognitiveRuntime, Reply, Result, Task, task


class Item(pydantic.BaseModel):
    name: str
    price: float

    @pydantic.field_validator("price")
    @classmethod
    def _positive(cls, price: float) -> float:
        if price <= 0:
            raise ValueError("a price is above 0")
        return price


class Receipt(pydantic.BaseModel):
    """Read the receipt."""

    items: list[Item]
    total: float

    @pydantic.model_validator(mode="after")
    def _adds_up(self) -> Receipt:
        found = sum(item.price for item in self.items)
        if found != self.total:
            raise ValueError(f"the prices add up to {found}, and total is {self.total}")
        return self


@dataclasses.dataclass
class Span:
    """Find the span."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError("end is before start")


def reply(data: Any) -> str:
    full = {**data, "rationale": "It is so."}
    return json.dumps({"ok": True, "meta": {"confidence": 0.9, "risk": "low", "explain": "Done."}, "data": full})


def receipt(total: float, *prices: float) -> str:
    return reply({"items": [{"name": "tea", "price": price} for price in prices], "total": total})


def asked(model: Scripted) -> str:
    """Returns the last message to the model."""
    return str(model.requests[-1].messages[-1]["content"])


def with_model(made: Task[..., Any], *replies: str) -> tuple[Any, Scripted]:
    model = Scripted(*replies)
    return made.with_options(runtime=CognitiveRuntime(providers={"mine": model})), model


def test_text_of_a_validator_goes_back_to_the_model() -> None:
    own, model = with_model(task(Receipt), receipt(9, 1, 2), receipt(3, 1, 2))
    assert own(query="1 + 2").total == 3
    assert len(model.requests) == 2
    assert "- `data` (check): the prices add up to 3.0, and total is 9.0" in asked(model)
    result = own.run(query="1 + 2")
    assert result.ok and "attempts" not in result.meta


def test_each_fault_of_a_model_has_its_path() -> None:
    own, model = with_model(task(Receipt), receipt(3, -1, 2, -3), receipt(2, 2))
    assert own(query="2").total == 2
    assert "- `data.items[0].price` (check): a price is above 0\n- `data.items[2].price`" in asked(model)


def test_last_answer_fails_with_the_text() -> None:
    own, model = with_model(task(Receipt, retries=3), receipt(9, 1, 2))
    result = own.run(query="1 + 2")
    assert len(model.requests) == 4
    assert result.error is not None and result.error.code == "E3006"
    assert "the prices add up to 3.0, and total is 9.0" in result.error.message
    assert result.partial_data["total"] == 9
    with pytest.raises(CognitiveError, match="E3006"):
        own(query="1 + 2")
    once, model = with_model(task(Receipt, retries=0), receipt(9, 1, 2))
    assert once.run(query="x").error.code == "E3006" and len(model.requests) == 1


def test_constructor_of_a_dataclass_is_a_check() -> None:
    def find(text: str) -> list[Span]:
        """Find the spans."""
        raise NotImplementedError

    own, model = with_model(task(find), reply({"result": [{"start": 3, "end": 1}]}), reply({"result": [{"start": 1, "end": 3}]}))
    assert own(text="x") == [Span(1, 3)]
    assert "- `data.result[0]` (check): end is before start" in asked(model)


def test_stream_retracts_and_continues() -> None:
    own, model = with_model(task(Receipt), receipt(9, 1, 2), receipt(3, 1, 2))
    chunks = list(own.chunks(query="1 + 2"))
    assert [chunk["progress"]["violation"]["rule"] for chunk in chunks if "violation" in chunk.get("progress", {})] == ["check"]
    assert [chunk["chunk"]["data"] for chunk in chunks if chunk.get("chunk", {}).get("field") is None and "chunk" in chunk] == [{}]
    assert chunks[-1]["data"]["total"] == 3
    wrong, _ = with_model(task(Receipt), receipt(9, 1, 2))
    last = list(wrong.chunks(query="1 + 2"))[-1]
    assert last["error"]["code"] == "E3006" and "add up to 3.0" in last["error"]["message"]


def test_event_loop_waits_for_checks() -> None:
    own, model = with_model(task(Receipt), receipt(9, 1, 2), receipt(3, 1, 2))
    assert asyncio.run(own.aio(query="1 + 2")).total == 3 and len(model.requests) == 2
    result: Result[Receipt | None] = asyncio.run(own.arun(query="x"))
    assert result.data is not None and result.data.total == 3


def quote() -> Task[..., str]:
    @task
    def made(text: str, words: int = 2) -> str:
        """Quote the most important words."""
        raise NotImplementedError

    return made


def test_check_of_a_task_sees_the_input() -> None:
    made = quote()

    @made.check
    def is_in_the_text(answer: str, text: str) -> None:
        if answer not in text:
            raise ValueError(f"{answer!r} is not in the text")

    @made.check
    async def has_the_length(answer: str, words: int) -> None:
        await asyncio.sleep(0)
        assert len(answer.split()) == words, "the wrong number of words"

    own, model = with_model(made, reply({"result": "It snowed"}), reply({"result": "rained"}), reply({"result": "It rained"}))
    assert own.with_options(retries=2)("It rained.") == "It rained"
    assert "`data.result` (check): the wrong number of words" in asked(model)
    assert "'It snowed' is not in the text" in str(model.requests[1].messages[-1]["content"])
    mapped = own.with_options(retries=0).map([{"text": "It rained", "words": 2}, {"text": "It snowed", "words": 2}])
    assert [result.ok for result in mapped] == [True, False]
    assert own.runtime.run(own, {"text": "a dry day", "words": 2}, retries=0).error.code == "E3006"


def test_check_that_takes_another_field_is_refused() -> None:
    with pytest.raises(TypeError, match="made: the check takes 'texts'; the fields of the input are text, words"):
        quote().check(lambda answer, texts: None)
    with pytest.raises(TypeError, match="a check takes the answer"):
        quote().check(lambda: None)


def test_check_that_fails_itself_ends_the_run() -> None:
    made = quote()

    @made.check
    def broken(answer: str) -> None:
        raise KeyError("total")

    own, model = with_model(made, reply({"result": "rained"}))
    result = own.run("It rained.")
    assert result.error is not None and result.error.code == "E4000" and len(model.requests) == 1
    assert result.error.message == "a check of the answer raised KeyError: 'total'"
    assert [type(error) for error in result.exceptions] == [KeyError]
    with pytest.raises(CognitiveError) as raised:
        result.raise_for_error()
    assert isinstance(raised.value.__cause__, KeyError)


def test_check_cannot_change_the_answer() -> None:
    made = task(Receipt)

    @made.check
    def spend(answer: Receipt) -> None:
        answer.items.clear()

    own, _ = with_model(made, receipt(3, 1, 2))
    assert len(own(query="x").items) == 2


def test_check_that_never_ends_is_ended_by_the_timeout() -> None:
    made = quote()

    @made.check
    async def waits(answer: str) -> None:
        await asyncio.Event().wait()

    own, _ = with_model(made, reply({"result": "rained"}))
    error = own.with_options(timeout=0.2).run("It rained.").error
    assert error is not None and error.code == "E2002"


def test_keyboard_interrupt_of_a_check_is_raised() -> None:
    made = quote()

    @made.check
    def stop(answer: str) -> None:
        raise KeyboardInterrupt

    own, _ = with_model(made, reply({"result": "rained"}))
    with pytest.raises(KeyboardInterrupt):
        own("It rained.")


def test_answer_that_breaks_its_contract_is_not_checked() -> None:
    seen: list[str] = []
    made = quote()
    made.check(lambda answer: seen.append(answer))
    own, model = with_model(made, reply({"result": 3}), reply({"result": "rained"}))
    assert own("It rained.") == "rained" and seen == ["rained"] and len(model.requests) == 2


def test_refusal_is_not_checked() -> None:
    own, _ = with_model(quote(), Reply("", finish_reason="refusal"))  # type: ignore[arg-type]
    assert own.run("x").error.code == "E2004"


def test_pickled_task_keeps_its_files() -> None:
    assert pickle.loads(pickle.dumps(task(Receipt))).files == task(Receipt).files
