"""Runs in the event loops of trio, also through anyio, and many loops on one runtime."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio
from conftest import Mock
from scripted import ANSWER, INPUT, Scripted, agent, calls

from cognitive import CognitiveError, CognitiveRuntime, ModelRequest, Provider, task, testing, tool


class Streaming(Provider):
    async def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        for start in range(0, len(ANSWER), 10):
            await anyio.sleep(0)
            yield ANSWER[start : start + 10]


@task
def shout(text: str) -> str:
    """Shout."""
    raise NotImplementedError


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_all_ways_to_run(backend: str, tmp_path: Path) -> None:
    seen: list[str] = []

    @tool
    async def where(n: int) -> str:
        """Returns which loop it runs in."""
        import sniffio

        await anyio.sleep(0.001)
        seen.append(sniffio.current_async_library())
        return seen[-1]

    module = str(agent(tmp_path))

    async def main() -> None:
        model = Scripted(calls(("where", {"n": 1})), ANSWER)
        runtime = CognitiveRuntime(providers={"scripted": model}, tools=[where])
        assert (await runtime.arun(module, INPUT)).ok and seen == [backend]
        streaming = CognitiveRuntime(providers={"own": Streaming()})
        chunks = [chunk async for chunk in streaming.stream(module, INPUT)]
        assert chunks[-1]["final"]
        assert [result.ok for result in await streaming.amap(module, [INPUT] * 20, concurrency=4)] == [True] * 20
        own = shout.with_options(runtime=testing.runtime("HI"))
        assert await own.aio("x") == "HI" and [partial.value async for partial in own.stream("x")][-1] == "HI"
        with pytest.raises(CognitiveError, match="E4006"):
            await runtime.amap("no-such-module", [INPUT])

    anyio.run(main, backend=backend)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_cancelled_scope_cancels_the_call(backend: str, runtime: CognitiveRuntime, mock: Mock) -> None:
    mock.hang_after = 2

    async def main(is_stream: bool) -> None:
        async def wait() -> None:
            await anyio.to_thread.run_sync(mock.hangs.wait)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            if is_stream:
                async for _ in runtime.stream("code-reviewer", {"code": "x"}):
                    pass
            else:
                await runtime.arun("code-reviewer", {"code": "x"})
            raise AssertionError("it was not cancelled")

    for is_stream in (False, True):
        mock.hangs.clear()
        mock.interrupted.clear()
        anyio.run(main, is_stream, backend=backend)
        assert mock.interrupted.wait(30)


def test_tool_is_cancelled_with_its_run(tmp_path: Path) -> None:
    started, cancelled = threading.Event(), threading.Event()

    @tool
    async def wait(n: int) -> str:
        """Waits."""
        started.set()
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            cancelled.set()
            raise
        return "never"

    runtime = CognitiveRuntime(providers={"scripted": Scripted(calls(("wait", {"n": 1})))}, tools=[wait])
    module = str(agent(tmp_path))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.arun, module, INPUT)
            await trio.to_thread.run_sync(started.wait)
            nursery.cancel_scope.cancel()
        with trio.fail_after(30):
            await trio.to_thread.run_sync(cancelled.wait)

    trio.run(main)
    assert cancelled.is_set()


def test_loop_that_has_ended_is_no_error(tmp_path: Path, runtime: CognitiveRuntime, mock: Mock) -> None:
    """A run that is left behind is cancelled, and the next loop works."""
    mock.hang_after = 2

    async def leave() -> None:
        with trio.move_on_after(0.05):
            await runtime.arun("code-reviewer", {"code": "x"})

    trio.run(leave)
    mock.hang_after = None

    async def run() -> Any:
        return await runtime.arun("code-reviewer", {"code": "x"})

    assert trio.run(run).ok and asyncio.run(run()).ok


def test_50_threads_and_50_loops_share_a_runtime(tmp_path: Path) -> None:
    @tool
    async def double(n: int) -> int:
        """Doubles."""
        await anyio.sleep(0)
        return 2 * n

    @tool
    def triple(n: int) -> int:
        """Triples."""
        return 3 * n

    class Echo(Provider):
        def complete(self, request: ModelRequest) -> Any:
            done = [message for message in request.messages if message["role"] == "tool"]
            return ANSWER if done else calls(("double", {"n": 1}), ("triple", {"n": 2}))

    runtime = CognitiveRuntime(providers={"echo": Echo()}, tools=[double, triple])
    module = str(agent(tmp_path))
    ended: list[bool] = []

    def in_thread() -> None:
        ended.extend(runtime.run(module, INPUT).ok for _ in range(3))

    async def runs() -> None:
        results = [await runtime.arun(module, INPUT) for _ in range(2)]
        ended.extend(result.ok for result in results)
        chunks = [chunk async for chunk in runtime.stream(module, INPUT)]
        ended.append(chunks[-1].get("ok", True))

    threads = [threading.Thread(target=in_thread) for _ in range(50)]
    threads += [threading.Thread(target=anyio.run, args=(runs,), kwargs={"backend": ["asyncio", "trio"][n % 2]}) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended == [True] * 300
