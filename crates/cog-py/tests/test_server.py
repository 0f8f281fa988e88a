"""A service whose clients leave: the calls to the model are cancelled."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from cognitive import CognitiveRuntime, task

CLIENTS = 1000


class Vendor:
    """A server that begins its replies as Chat Completions do, and waits until the client closes the connection."""

    def __init__(self) -> None:
        self.called = 0
        self.cancelled = 0
        self.changed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(length)
        self.called += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        answer = '{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"x"},"data":{"rationale":"x","title":"Rain","text":"It'
        for start in range(0, len(answer), 20):
            choice = {"index": 0, "delta": {"content": answer[start : start + 20]}}
            writer.write(f"data: {json.dumps({'id': '1', 'model': 'mock-1', 'choices': [choice]})}\n\n".encode())
        try:
            await writer.drain()
            assert await reader.read(1) == b""
        except ConnectionError:
            pass
        self.cancelled += 1
        self.changed.set()
        writer.close()


@dataclass
class Story:
    title: str
    text: str


@task
def tell(topic: str) -> Story:
    """Tell a story."""
    raise NotImplementedError


def app_of(runtime: CognitiveRuntime) -> FastAPI:
    app = FastAPI()
    own = tell.with_options(runtime=runtime)

    @app.get("/story")
    async def story(topic: str) -> StreamingResponse:
        # As the README and the cookbook write it, without `async with`.
        async def events() -> AsyncIterator[str]:
            async for partial in own.stream(topic):
                yield f"data: {json.dumps(sorted(partial.complete))}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    @app.get("/chunks")
    async def chunks(topic: str) -> StreamingResponse:
        async def events() -> AsyncIterator[str]:
            async for chunk in runtime.stream(tell, {"topic": topic}):
                yield f"data: {json.dumps(chunk)}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    return app


async def leave_half_way(port: int, path: str) -> None:
    """Reads until the title has arrived, and closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path}?topic=rain HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    await reader.readuntil(b"title")
    writer.close()


def test_1000_clients_that_leave_cancel_1000_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        vendor = Vendor()
        listening = await asyncio.start_server(vendor.serve, "127.0.0.1", 0, backlog=256)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1")
        runtime = CognitiveRuntime(provider="openai", model="mock-1")
        bound = socket.create_server(("127.0.0.1", 0), backlog=256)
        server = uvicorn.Server(uvicorn.Config(app_of(runtime), log_level="error", lifespan="off"))
        serving = asyncio.create_task(server.serve([bound]))
        limit = asyncio.Semaphore(50)

        async def client(number: int) -> None:
            async with limit:
                await leave_half_way(bound.getsockname()[1], "/story" if number % 2 else "/chunks")

        await asyncio.gather(*map(client, range(CLIENTS)))
        while vendor.cancelled < CLIENTS:
            vendor.changed.clear()
            await asyncio.wait_for(vendor.changed.wait(), 60)
        assert (vendor.called, vendor.cancelled) == (CLIENTS, CLIENTS)
        server.should_exit = True
        await serving
        listening.close()

    asyncio.run(main())
