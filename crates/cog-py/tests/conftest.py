"""A mock of a vendor, and runtimes that call it."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cognitive import CognitiveRuntime

ANSWER = {
    "ok": True,
    "meta": {"confidence": 0.9, "risk": "none", "explain": "Nothing to report."},
    "data": {"verdict": "approve", "issues": [], "rationale": "It is short, and it does what it says."},
}


class Mock(ThreadingHTTPServer):
    """A server that replies as OpenAI's Chat Completions do, with the last reply again and again."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply: str = json.dumps(ANSWER)
        #: The reply to a request, in place of `reply`.
        self.respond: Callable[[dict[str, Any]], str] | None = None
        self.chunk_size = 16
        #: The seconds between two chunks.
        self.pause = 0.0
        #: The chunks after which the server waits for ever.
        self.hang_after: int | None = None
        self.requests: list[dict[str, Any]] = []
        self.called = threading.Event()
        self.interrupted = threading.Event()
        self.hangs = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Mock

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(length))
        self.server.requests.append(request)
        self.server.called.set()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self.send_reply(self.server.respond(request) if self.server.respond else self.server.reply)
        except OSError:
            self.server.interrupted.set()

    def send_reply(self, text: str) -> None:
        size = self.server.chunk_size
        for index, start in enumerate(range(0, len(text), size)):
            if index == self.server.hang_after:
                self.wait_for_end()
            self.event({"delta": {"content": text[start : start + size]}})
            if self.server.pause:
                time.sleep(self.server.pause)
        self.event({"delta": {}, "finish_reason": "stop"})
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def wait_for_end(self) -> None:
        """Waits until the client closes the connection."""
        self.server.hangs.set()
        while True:
            self.connection.settimeout(60)
            if not self.connection.recv(1):
                raise ConnectionResetError

    def event(self, choice: dict[str, Any]) -> None:
        event = {"id": "1", "model": "mock-1", "choices": [{"index": 0, **choice}]}
        self.chunk(b"data: " + json.dumps(event).encode() + b"\n\n")

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings and no keys of the machine, and a working directory of its own."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL")) or name.startswith(("COG_", "LLM_", "COGNITIVE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("COG_DETECT_OLLAMA", "off")
    monkeypatch.chdir(here)


@pytest.fixture
def mock() -> Iterator[Mock]:
    server = Mock()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def runtime(mock: Mock, monkeypatch: pytest.MonkeyPatch) -> CognitiveRuntime:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", mock.url)
    return CognitiveRuntime(provider="openai", model="mock-1")


@pytest.fixture
def offline() -> CognitiveRuntime:
    return CognitiveRuntime(provider="offline")
