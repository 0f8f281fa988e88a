"""Spans and metrics of a program in Python, to a collector of OpenTelemetry."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

PROGRAM = """
from cognitive import CognitiveRuntime
runtime = CognitiveRuntime(provider="offline")
assert runtime.execute("code-reviewer", {"code": "x = 1"}).ok
"""

#: The child runs a module of its own, and both end as programs do.
FORKED = (
    PROGRAM
    + """
import os
child = os.fork()
assert runtime.execute("task-prioritizer", {"tasks": [{"id": "a", "title": "x"}]}).ok
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
)


class Collector(ThreadingHTTPServer):
    """A server that accepts every export, and stores it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.exports: list[tuple[str, bytes]] = []

    def spans(self, name: str) -> int:
        """The number of spans with this name."""
        return sum(body.count(name.encode()) for path, body in self.exports if path == "/v1/traces")


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.exports.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def run(program: str, endpoint: str | None, home: Path) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    if endpoint:
        variables["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
    command = [sys.executable, "-c", program]
    subprocess.run(command, env={**variables, "HOME": str(home)}, check=True, cwd=home, timeout=120)


def test_last_export_runs_when_the_interpreter_ends(collector: Collector, tmp_path: Path) -> None:
    run(PROGRAM, f"http://127.0.0.1:{collector.server_port}", tmp_path)
    assert collector.spans("invoke_workflow code-reviewer") == 1
    assert [path for path, _ in collector.exports] == ["/v1/traces", "/v1/metrics"]


def test_nothing_is_exported_without_the_variables(collector: Collector, tmp_path: Path) -> None:
    run(PROGRAM, None, tmp_path)
    assert collector.exports == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_process_exports_its_own_spans(collector: Collector, tmp_path: Path) -> None:
    run(FORKED, f"http://127.0.0.1:{collector.server_port}", tmp_path)
    assert collector.spans("invoke_workflow code-reviewer") == 1
    assert collector.spans("invoke_workflow task-prioritizer") == 2
