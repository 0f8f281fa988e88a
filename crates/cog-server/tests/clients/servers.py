"""Servers for the checks: `cog serve` with a mock model behind it, and a proxy that breaks connections."""

import contextlib
import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import threading

TOKEN = "0123456789abcdef+/=="

# What the model says: two texts of some length, in many pieces.
ANSWER = {
    "ok": True,
    "meta": {"confidence": 0.95, "risk": "low", "explain": "It is fine."},
    "data": {"result": "Grüße, 世界 \"quoted\"\nand more", "rationale": "because " * 12},
}
SCHEMA = {
    "input": {
        "type": "object",
        "required": ["query"],
        "properties": {"query": {"type": "string"}, "photo": {"$ref": "#/$defs/MediaInput"}},
    },
    "data": {
        "type": "object",
        "required": ["result", "rationale"],
        "properties": {
            "result": {"type": "string"},
            "rationale": {"type": "string"},
            "image": {"$ref": "#/$defs/MediaOutput"},
        },
    },
}
MANIFEST = """\
name: m
version: 1.0.0
responsibility: Answer
tier: decision
excludes: [guessing]
response:
  mode: both
modalities:
  input: [text, image]
  output: [text, image]
"""
# The same without images that are made: its data are sent while they arrive.
LIVE = {
    "manifest": MANIFEST.replace("  output: [text, image]\n", ""),
    "schema": SCHEMA | {
        "data": SCHEMA["data"] | {"properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}},
    },
}
# The same with an image: a PNG of one pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
IMAGE = {"type": "base64", "media_type": "image/png", "data": PNG}
# The connection of the model breaks in the middle of its answer.
BROKEN = {"text": ANSWER, "chunk_size": 5, "interrupt_after": 9000}
DRAWN = ANSWER | {"data": ANSWER["data"] | {"image": IMAGE}}
# A small image: one pixel, and a table of two colours, without which it has no colour.
PIXEL = b"GIF87a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2L\1\0;"
BODY = {"input": {"query": "why?"}, "_options": {"response_mode": "streaming"}}


def refused(kind, call):
    """The error of a call that fails."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


EVENT = re.compile(rb"event: .*\nid: .*\ndata: .*\n\n")
# The same in a stream of NDJSON.
CHUNK = re.compile(rb'\{"chunk":.*\n')


@contextlib.contextmanager
def process(command, says, **more):
    """A program, and what its output says of where it listens."""
    with subprocess.Popen(command, text=True, **more) as running:
        try:
            lines = running.stdout or running.stderr
            yield next(found[0] for found in map(re.compile(says).search, iter(lines.readline, "")) if found)
        finally:
            running.terminate()


@contextlib.contextmanager
def serve(*flags, reply=None, token=False, manifest=MANIFEST, schema=SCHEMA, files={}, variables={}):
    """A server that runs the module `m`, with further files next to its directory; its address."""
    script = json.dumps(reply or {"text": ANSWER, "chunk_size": 5, "pause_ms": 8})
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        module = directory / "cognitive" / "modules" / "m"
        module.mkdir(parents=True)
        (module / "module.yaml").write_text(manifest)
        (module / "prompt.md").write_text("Answer.")
        (module / "schema.json").write_text(json.dumps(schema))
        for name, text in files.items():
            (module.parent / name).parent.mkdir(exist_ok=True)
            (module.parent / name).write_text(text)
        (directory / "script").write_text(script)
        (directory / "tokens").write_text(f"check:{TOKEN}\n")
        address = r"http://127\.0\.0\.1:\d+"
        stdin = stack.enter_context(open(directory / "script"))
        mock = stack.enter_context(process([os.environ["COG_MOCK"]], address, stdin=stdin, stdout=subprocess.PIPE))
        command = [os.environ["COG"], "serve", "--port", "0", "--provider", "openai", *flags]
        command += ["--token-file", str(directory / "tokens")] if token else []
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "OPENAI_API_KEY": "key",
            "OPENAI_BASE_URL": f"{mock}/v1",
            **variables,
        }
        yield stack.enter_context(process(command, address, stderr=subprocess.PIPE, cwd=directory, env=environment))


@contextlib.contextmanager
def breaking(address, after, part=EVENT):
    """A proxy whose first response with events, or other parts, breaks off after so many of them; its address."""
    target = address.removeprefix("http://").split(":")
    listener = socket.create_server(("127.0.0.1", 0))
    state = {"broken": False}

    def pump(source, sink, is_answer):
        seen = b""
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                seen += piece
                ends = [found.end() for found in part.finditer(seen)] if is_answer else []
                if len(ends) >= after and not state["broken"]:
                    state["broken"] = True
                    end = ends[after - 1]
                    sink.sendall(piece[: max(0, len(piece) - (len(seen) - end))])
                    break
                sink.sendall(piece)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection((target[0], int(target[1])))
                for ends in ((client, server, False), (server, client, True)):
                    threading.Thread(target=pump, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        assert state["broken"], "the proxy broke no connection"
        listener.close()


@contextlib.contextmanager
def elsewhere():
    """An empty page of another origin; its address."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title>")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
