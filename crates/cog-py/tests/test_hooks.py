"""Hooks: what a program learns of runs and of their calls."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import logging
import weakref
from pathlib import Path
from typing import Any

import pytest
from conftest import Mock
from scripted import ANSWER, INPUT, Scripted, agent, calls

from cognitive import CognitiveRuntime, Hooks, ModelCall, ProviderError, Reply, RunEnd, RunStart, ToolRun, tool

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="none")


class Log(Hooks):
    def __init__(self) -> None:
        self.events: list[Any] = []
        self.requests: list[str] = []

    def run_started(self, run: RunStart) -> None:
        self.add(run)

    def model_called(self, call: ModelCall) -> None:
        self.add(call)

    def tool_called(self, call: ToolRun) -> None:
        self.add(call)

    def run_ended(self, run: RunEnd) -> None:
        self.add(run)

    def add(self, event: Any) -> None:
        self.events.append(event)
        self.requests.append(request_id.get())

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def test_run_with_its_calls(tmp_path: Path) -> None:
    log = Log()
    model = Scripted(calls(("add", {"a": 1, "b": 2})), Reply(ANSWER, input_tokens=70, output_tokens=30))
    runtime = CognitiveRuntime(providers={"scripted": model}, tools=[add], hooks=log)
    token = request_id.set("r-1")
    result = runtime.run(str(agent(tmp_path)), INPUT)
    request_id.reset(token)
    assert [type(event) for event in log.events] == [RunStart, ModelCall, ToolRun, ModelCall, RunEnd]
    assert set(log.requests) == {"r-1"}
    first, second = log.of(ModelCall)
    assert (first.module, first.provider, first.model) == ("agent", "scripted", "scripted-1")
    assert first.tool_calls[0]["name"] == "add" and first.finish_reason == "tool_calls" and first.input_tokens is None
    assert "Do it." in str(first.messages) and first.error is None and first.duration >= 0
    assert (second.reply, second.input_tokens, second.output_tokens) == (ANSWER, 70, 30)
    assert [message["role"] for message in second.messages][-2:] == ["assistant", "tool"]
    (called,) = log.of(ToolRun)
    assert (called.tool, called.arguments, called.error) == ("add", '{"a":1,"b":2}', None)
    assert json.loads(called.result) == {"status": "success", "result": 3}
    (end,) = log.of(RunEnd)
    assert end.result == result and end.attempts == 1 and not end.is_nested


def test_cost_of_a_vendor(runtime: CognitiveRuntime, mock: Mock) -> None:
    log = Log()
    runtime.run("code-reviewer", {"code": "x"}, model="gpt-4o-mini", hooks=log)
    (call,) = log.of(ModelCall)
    (end,) = log.of(RunEnd)
    assert (call.provider, call.model) == ("openai", "gpt-4o-mini") and call.reply == mock.reply
    assert end.cost == call.cost
    assert runtime.run("code-reviewer", {"code": "x"}).ok and len(log.of(RunEnd)) == 1


def test_errors_have_their_code(tmp_path: Path) -> None:
    log = Log()

    class Broken(Scripted):
        def complete(self, request: Any) -> Reply:
            raise ProviderError("down", code="E4002")

    runtime = CognitiveRuntime(providers={"scripted": Broken()}, hooks=[log])
    result = runtime.run(str(agent(tmp_path)), INPUT)
    assert [call.error for call in log.of(ModelCall)] == ["E4002"]
    (end,) = log.of(RunEnd)
    assert end.result == result and end.result.error.code == "E4002"
    refused = runtime.run(str(tmp_path / "agent"), {"query": 3})
    assert log.events[-1].result == refused and log.events[-1].attempts == 0 and len(log.of(ModelCall)) == 1


def test_every_way_to_run(tmp_path: Path) -> None:
    log, other = Log(), Log()
    runtime = CognitiveRuntime(providers={"scripted": Scripted()}, hooks=log)
    module = str(agent(tmp_path))
    asyncio.run(runtime.arun(module, INPUT))
    list(runtime.stream(module, INPUT, hooks=[other]))
    runtime.map(module, [INPUT, INPUT])
    asyncio.run(runtime.amap(module, [INPUT]))
    assert len(log.of(RunEnd)) == 5 and len(other.of(RunEnd)) == 1
    assert all(end.result.ok for end in log.of(RunEnd))


def test_stream_that_is_closed_has_no_result(tmp_path: Path, runtime: CognitiveRuntime, mock: Mock) -> None:
    log = Log()
    mock.hang_after = 11
    with runtime.stream("code-reviewer", {"code": "x"}, hooks=log) as stream:
        while "chunk" not in next(stream):
            pass
    assert mock.interrupted.wait(30)
    (end,) = log.of(RunEnd)
    assert end.result is None


def test_exception_of_a_hook_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Wrong(Hooks):
        def model_called(self, call: ModelCall) -> None:
            raise ValueError("no disk")

        def run_ended(self, run: RunEnd) -> None:
            runtime.run(str(tmp_path / "agent"), INPUT)

    log = Log()
    runtime = CognitiveRuntime(providers={"scripted": Scripted()}, hooks=[Wrong(), log])
    with caplog.at_level(logging.ERROR, logger="cognitive"):
        assert runtime.run(str(agent(tmp_path)), INPUT).ok
    assert len(log.of(RunEnd)) == 1
    assert [record.message for record in caplog.records] == [
        "Wrong.model_called raised an exception; the run continues",
        "Wrong.run_ended raised an exception; the run continues",
    ]
    assert "a hook cannot wait for a run" in caplog.text


def test_hooks_are_objects_of_their_class() -> None:
    with pytest.raises(TypeError, match="hooks: found function; allowed: objects of subclasses of Hooks"):
        CognitiveRuntime(provider="offline", hooks=[test_cost_of_a_vendor])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="hooks: found int"):
        CognitiveRuntime(provider="offline").run("code-reviewer", {"code": "x"}, hooks=[3])  # type: ignore[list-item]


def test_hooks_that_own_their_runtime_are_freed(tmp_path: Path) -> None:
    class Owner(Hooks):
        def __init__(self, module: str) -> None:
            self.runtime = CognitiveRuntime(providers={"scripted": Scripted()}, hooks=self)
            assert self.runtime.run(module, INPUT).ok

    module = str(agent(tmp_path))
    owners = [weakref.ref(Owner(module)) for _ in range(5)]
    gc.collect()
    assert [owner() for owner in owners] == [None] * 5
