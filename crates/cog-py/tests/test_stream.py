"""Runs that return chunks."""

from __future__ import annotations

import asyncio
import gc

import pytest
from conftest import ANSWER, Mock

from cognitive import CognitiveError, CognitiveRuntime

INPUT = {"code": "fn main() {}"}


def test_plain_loop_reads_every_chunk(runtime: CognitiveRuntime) -> None:
    stream = runtime.execute_stream("code-reviewer", INPUT)
    assert stream.result is None
    chunks = list(stream)
    assert len(chunks) > 3 and chunks[-1]["final"] is True
    assert stream.result is not None and stream.result.data == ANSWER["data"]
    assert list(stream) == []


def test_event_loop_reads_the_same_chunks(runtime: CognitiveRuntime) -> None:
    async def run() -> list[str]:
        return [shape(chunk) async for chunk in runtime.execute_stream("code-reviewer", INPUT)]

    plain = [shape(chunk) for chunk in runtime.execute_stream("code-reviewer", INPUT)]
    assert asyncio.run(run()) == plain


def shape(chunk: dict[str, object]) -> str:
    return str(sorted(chunk)) + str(chunk.get("seq"))


def test_chunks_arrive_while_the_model_writes(runtime: CognitiveRuntime, mock: Mock) -> None:
    mock.hang_after = 8

    async def run() -> int:
        read = 0
        async with runtime.execute_stream("code-reviewer", INPUT) as stream:
            async for chunk in stream:
                read += 1
                if "chunk" in chunk:
                    break
        return read

    assert asyncio.run(run()) >= 2
    assert mock.interrupted.wait(30)


@pytest.mark.parametrize("dropped", ["closed", "collected"])
def test_stream_that_is_dropped_cancels_the_call(runtime: CognitiveRuntime, mock: Mock, dropped: str) -> None:
    mock.hang_after = 8
    stream = runtime.execute_stream("code-reviewer", INPUT)
    next(stream)
    next(stream)
    if dropped == "closed":
        stream.close()
        assert list(stream) == []
    del stream
    gc.collect()
    assert mock.interrupted.wait(30)


def test_refused_run_raises_at_once(runtime: CognitiveRuntime, mock: Mock) -> None:
    with pytest.raises(CognitiveError) as raised:
        runtime.execute_stream("code-reviewer", {"code": 1})
    assert raised.value.code == "E1003" and mock.requests == []


def test_failed_run_ends_with_an_error_chunk(runtime: CognitiveRuntime, mock: Mock) -> None:
    mock.reply = "no JSON at all"
    stream = runtime.execute_stream("code-reviewer", INPUT, max_attempts=1)
    chunks = list(stream)
    assert stream.result is not None and not stream.result.ok
    assert stream.result.error is not None
    assert chunks[-1]["error"]["code"] == stream.result.error.code


def test_runtime_without_streaming_returns_one_envelope(
    mock: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", mock.url)
    stream = CognitiveRuntime(provider="openai", model="m", streaming=False).execute_stream(
        "code-reviewer", INPUT
    )
    assert [chunk for chunk in stream if "chunk" in chunk] == []
    assert stream.result is not None and stream.result.data == ANSWER["data"]
    assert [warning["code"] for warning in stream.result.warnings] == ["W4010"]


def test_stream_is_read_by_one_reader(runtime: CognitiveRuntime) -> None:
    async def run() -> None:
        stream = runtime.execute_stream("code-reviewer", INPUT)
        await anext(stream)
        with pytest.raises(RuntimeError, match="another thread or an event loop reads this stream"):
            next(stream)
        assert len([chunk async for chunk in stream]) > 1

    asyncio.run(run())


def test_cancelled_reader_can_go_on(runtime: CognitiveRuntime, mock: Mock) -> None:
    mock.pause = 0.02

    async def run() -> None:
        stream = runtime.execute_stream("code-reviewer", INPUT)
        while True:
            try:
                await asyncio.wait_for(anext(stream), 0.005)
            except asyncio.TimeoutError:
                continue
            except StopAsyncIteration:
                break
        assert stream.result is not None and stream.result.data == ANSWER["data"]

    asyncio.run(run())
