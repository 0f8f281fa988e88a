"""Runs that return chunks."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ANSWER, Mock
from scripted import INPUT as AGENT_INPUT
from scripted import Scripted, agent, calls

from cognitive import ChunkStream, CognitiveError, CognitiveRuntime, tool

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


@pytest.mark.parametrize("module", ["code-reviewer", "no-such-module"])
def test_refused_run_raises_at_its_first_chunk(runtime: CognitiveRuntime, mock: Mock, module: str) -> None:
    async def run() -> None:
        stream = runtime.execute_stream(module, {"code": 1})
        with pytest.raises(CognitiveError) as raised:
            await anext(stream)
        assert stream.result is raised.value.result
        assert [chunk async for chunk in stream] == []

    stream = runtime.execute_stream(module, {"code": 1})
    assert stream.result is None
    with pytest.raises(CognitiveError) as raised:
        next(stream)
    assert raised.value.code in ("E1003", "E4006") and stream.result is raised.value.result
    assert list(stream) == []
    asyncio.run(run())
    assert mock.requests == []


def test_object_without_a_form_raises_at_once(offline: CognitiveRuntime) -> None:
    with pytest.raises(TypeError, match="input.code"):
        offline.execute_stream("code-reviewer", {"code": object()})


def test_result_is_there_after_the_last_chunk(runtime: CognitiveRuntime) -> None:
    async def run() -> None:
        stream = runtime.execute_stream("code-reviewer", INPUT)
        async for chunk in stream:
            if chunk.get("final"):
                break
        assert stream.result is not None and stream.result.data == ANSWER["data"]

    stream = runtime.execute_stream("code-reviewer", INPUT)
    for chunk in stream:
        if chunk.get("final"):
            break
    assert stream.result is not None and stream.result.data == ANSWER["data"]
    asyncio.run(run())


def test_stream_is_closed_while_another_thread_reads_it(runtime: CognitiveRuntime, mock: Mock) -> None:
    mock.hang_after = 8
    stream = runtime.execute_stream("code-reviewer", INPUT)
    reader = threading.Thread(target=lambda: list(stream))
    reader.start()
    assert mock.called.wait(30)
    stream.close()
    reader.join(30)
    assert not reader.is_alive() and list(stream) == []
    assert mock.interrupted.wait(30)


def test_stream_is_closed_while_a_task_reads_it(runtime: CognitiveRuntime, mock: Mock) -> None:
    mock.hang_after = 8

    async def run() -> None:
        stream = runtime.execute_stream("code-reviewer", INPUT)
        reader = asyncio.create_task(read(stream))
        await asyncio.to_thread(mock.called.wait, 30)
        stream.close()
        await asyncio.wait_for(reader, 30)

    asyncio.run(run())
    assert mock.interrupted.wait(30)


async def read(stream: ChunkStream) -> list[dict[str, Any]]:
    return [chunk async for chunk in stream]


def test_two_tasks_cannot_wait_for_one_stream(runtime: CognitiveRuntime, mock: Mock) -> None:
    mock.hang_after = 8

    async def run() -> None:
        stream = runtime.execute_stream("code-reviewer", INPUT)
        readers = [asyncio.create_task(read(stream)) for _ in range(2)]
        failed, waiting = await asyncio.wait(readers, return_when=asyncio.FIRST_COMPLETED, timeout=30)
        with pytest.raises(RuntimeError, match="another task waits for the next chunk"):
            failed.pop().result()
        stream.close()
        await asyncio.wait_for(waiting.pop(), 30)

    asyncio.run(run())


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


def test_consumer_that_goes_while_a_tool_runs_cancels_it(tmp_path: Path) -> None:
    running, cancelled, ended = threading.Event(), threading.Event(), threading.Event()

    @tool
    async def wait(seconds: int) -> int:
        """Waits."""
        running.set()
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return seconds

    @tool
    def work(seconds: int) -> int:
        """Works, and cannot be cancelled."""
        running.set()
        ended.wait(seconds)
        return seconds

    module = str(agent(tmp_path))

    def runtime(name: str) -> CognitiveRuntime:
        return CognitiveRuntime(providers={"scripted": Scripted(calls((name, {"seconds": 60})))}, tools=[wait, work])

    async def leave(name: str) -> None:
        running.clear()
        stream = runtime(name).stream(module, AGENT_INPUT)

        async def read() -> None:
            async for _ in stream:
                pass

        reader = asyncio.create_task(read())
        await asyncio.to_thread(running.wait, 30)
        while not reader.done():
            reader.cancel()
            await asyncio.sleep(0)
        if name == "wait":
            while not cancelled.is_set():
                await asyncio.sleep(0.001)
        stream.close()

    asyncio.run(leave("wait"))
    asyncio.run(leave("work"))
    ended.set()
    running.clear()
    cancelled.clear()
    stream = runtime("wait").stream(module, AGENT_INPUT)

    def close() -> None:
        running.wait(30)
        stream.close()

    closer = threading.Thread(target=close)
    closer.start()
    list(stream)
    closer.join()
    assert cancelled.wait(30)


def test_cancelled_consumer_cancels_the_run(runtime: CognitiveRuntime, mock: Mock) -> None:
    mock.hang_after = 8
    kept: list[BaseException] = []

    async def events() -> AsyncIterator[str]:
        # As a page of server-sent events is written, without `async with`.
        async for chunk in runtime.execute_stream("code-reviewer", INPUT):
            yield json.dumps(chunk)

    async def serve() -> None:
        try:
            async for _ in events():
                mock.called.set()
        except asyncio.CancelledError as error:
            # Its traceback holds the frame of the stream.
            kept.append(error)
            raise

    async def run() -> None:
        client = asyncio.create_task(serve())
        await asyncio.to_thread(mock.hangs.wait, 30)
        client.cancel()
        await asyncio.wait([client])

    asyncio.run(run())
    assert mock.interrupted.wait(30) and kept
