"""Clients without a browser: curl, httpx, websockets, and Node's. Each gives what arrived: `{"chunk": …, "id"?: …}`."""

import asyncio
import json
import pathlib
import subprocess

import httpx
import websockets.asyncio.client as websockets

from servers import BODY

EXECUTE = "/v1/modules/m/execute"
SOCKET = "/v1/modules/m/ws"
SSE = {"Accept": "text/event-stream"}
NDJSON = {"Accept": "application/x-ndjson"}


def curl(address, headers, *more):
    """What `curl -N` prints."""
    command = ["curl", "-sSN", "--fail-with-body", "--max-time", "60", *more, address]
    for name, value in headers.items():
        command += ["-H", f"{name}: {value}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def posted(body=BODY):
    """What makes curl post a body."""
    return ["-H", "Content-Type: application/json", "-d", json.dumps(body)]


def events(text):
    """The events of a stream; each must be whole."""
    seen = []
    for event in text.split("\n\n"):
        fields = [line.split(": ", 1) for line in event.splitlines() if line and not line.startswith(":")]
        fields = {name: value for name, value in fields}
        if "data" in fields:
            chunk = json.loads(fields["data"])
            assert fields["event"] == kind(chunk), fields
            seen.append({"id": fields["id"], "chunk": chunk})
    return seen


def lines(text):
    """The chunks of NDJSON, without the empty lines that are signs of life."""
    return [{"chunk": json.loads(line)} for line in text.splitlines() if line]


def kind(chunk):
    """The name of the event that carries a chunk (ruling R51)."""
    if "chunk" in chunk or "progress" in chunk:
        return next(name for name in ("chunk", "progress") if name in chunk)
    if "final" in chunk:
        return "final"
    return "meta" if chunk["ok"] else "error"


def begin(address, headers=None):
    """Begins a run that nobody waits for; where its events are."""
    body = BODY | {"_options": {"detach": True}}
    response = httpx.post(address + EXECUTE, json=body, headers=headers)
    assert response.status_code == 202, response.text
    return response.json()["events_url"]


def streamed(address, headers):
    """What httpx reads of a run's stream."""
    with httpx.stream("POST", address + EXECUTE, json=BODY, headers=headers, timeout=60) as response:
        return read(response)


def resumed(address, run=None):
    """What httpx has of a run of which it lost the connection once: of a run that goes on without it, else of one that
    ends with the connection and is asked again."""
    method = {"method": "GET", "url": address + run} if run else {"method": "POST", "url": address + EXECUTE, "json": BODY}
    with httpx.stream(**method, headers=SSE, timeout=60) as response:
        first = events(read(response, leave_after=4))
    session, seq = first[-1]["id"].split(":")
    again = SSE | {"Last-Event-ID": first[-1]["id"]}
    with httpx.stream("GET", f"{address}/v1/sessions/{session}/events", headers=again, timeout=60) as response:
        rest = events(read(response))
    assert rest[0]["chunk"]["resumed"] is True and rest[0]["chunk"]["resume_from_seq"] == int(seq), rest[0]
    return first + rest[1:]


def read(response, leave_after=None):
    """The text of a stream, until its end or until so many events."""
    response.raise_for_status()
    text = ""
    for piece in response.iter_text():
        text += piece
        if leave_after and text.count("\nevent: ") > leave_after:
            # Past the last whole event nothing counts.
            return text[: text.rindex("\n\n") + 2]
    return text


def socket(address, body=BODY, stop=None):
    """What `websockets` reads of a run that it may cancel after so many chunks; and how the connection ended."""

    async def talk():
        seen = []
        url = address.replace("http", "ws", 1) + SOCKET
        async with websockets.connect(url, subprotocols=["cog"]) as connection:
            assert connection.subprotocol == "cog"
            await connection.send(json.dumps(body))
            async for message in connection:
                seen.append({"chunk": json.loads(message)})
                if len(seen) == stop:
                    await connection.send('{"type": "cancel"}')
                if kind(seen[-1]["chunk"]) in ("final", "error"):
                    await connection.send('{"type": "close"}')
        assert connection.close_code == 1000, connection.close_code
        return seen

    return asyncio.run(talk())


def node(how, address, argument=None):
    """What one of Node's clients prints."""
    script = pathlib.Path(__file__).with_name("node.cjs")
    command = ["node", str(script), how, address, json.dumps(argument)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout)
