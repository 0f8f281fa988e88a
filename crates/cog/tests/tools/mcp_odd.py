"""An MCP server that does what servers should not do: `mcp_odd.py MODE`. It needs no package."""

import json
import os
import sys
import threading
import time

MODE = sys.argv[1]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TEXT = {"type": "string"}
NUMBER = {"type": "number"}
LOCK = threading.Lock()
DONE = []


def tool(name, read_only=True, **properties):
    schema = {"type": "object", "properties": properties}
    return {"name": name, "inputSchema": schema, "annotations": {"readOnlyHint": read_only}}


TOOLS = {
    "schemas": [
        tool("get", url=TEXT, headers={"type": "object", "propertyNames": TEXT, "additionalProperties": TEXT}),
        tool("crop", box={"type": "array", "prefixItems": [NUMBER, NUMBER], "items": False}),
        tool("filter", where={"$ref": "#/$defs/json"}),
        tool("remind", at={"type": "string", "pattern": "^P(?!$)"}, n={"type": "number", "minimum": 0, "exclusiveMinimum": True}),
        tool("dangling", a={"$ref": "#/$defs/nope"}),
    ],
    "values": [tool(name) for name in ("image", "error", "text_too", "big", "mistyped", "rpc_error")],
    "replies": [tool(name) for name in ("surrogate", "version", "batch", "huge", "fine")],
    "order": [tool("append", False, x=TEXT, delay=NUMBER), tool("show")],
    "many": [tool(f"t{number}", a=TEXT, b=TEXT) for number in range(int(os.environ.get("COUNT", "200")))],
    "changing": [tool("grow"), tool("old")],
}
TOOLS["schemas"][2]["inputSchema"]["$defs"] = {
    "json": {"anyOf": [TEXT, {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}}]}
}
tools = TOOLS.get(MODE, [tool("a")])


def write(line):
    with LOCK:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}))


def text(text, **more):
    return {"content": [{"type": "text", "text": text}], **more}


def result_of(name, arguments):
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    if name == "image":
        return {"content": [image], "structuredContent": {"content": [image]}}
    if name == "mistyped":
        svg = {"type": "image", "data": "PHN2Zy8+", "mimeType": "image/svg+xml"}
        return {"content": [{**image, "mimeType": "image/jpeg"}, svg]}
    if name == "error":
        lines = "Traceback:\n  File \"a.py\"\n" + "\n".join(f"line {line}" for line in range(9)) + "\nthe reason"
        return {**text(lines, isError=True), "structuredContent": {"code": "QUOTA"}}
    if name == "text_too":
        return text("row 3 was skipped", structuredContent={"rows": 12345678901234567890123})
    if name == "big":
        return text("first\n" + "x" * 3_000_000 + "\nlast")
    if name == "append":
        time.sleep(arguments.get("delay", 0))
        DONE.append(arguments["x"])
        return text("appended")
    if name == "show":
        return text(" ".join(DONE))
    if name == "grow":
        tools[:] = [tool("grow"), tool("new")]
        send({"method": "notifications/tools/list_changed"})
    return text(f"ran {name}")


def call(identity, params):
    name = params["name"]
    if name == "surrogate":
        return write('{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"\\ud800"}]}}' % json.dumps(identity))
    if name == "version":
        return write(json.dumps({"id": identity, "result": text("no version")}))
    if name == "batch":
        return write(json.dumps([{"jsonrpc": "2.0", "id": identity, "result": text("in a batch")}]))
    if name == "huge":
        return send({"id": identity, "result": text("y" * 50_000_000)})
    if name == "rpc_error":
        return send({"id": identity, "error": {"code": -32602, "message": "bad\nparams", "data": {"hint": "use y"}}})
    send({"id": identity, "result": result_of(name, params.get("arguments", {}))})


if MODE == "together":
    open(os.path.join(os.environ["MET"], str(os.getpid())), "w").close()
    while len(os.listdir(os.environ["MET"])) < 8:
        time.sleep(0.02)
if MODE == "broken":
    sys.stderr.write("Traceback\nModuleNotFoundError: no module named 'x'\n")
    sys.exit(1)
for line in sys.stdin:
    message = json.loads(line)
    identity, method = message.get("id"), message.get("method")
    if identity is None:
        continue
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        information = {"name": "odd", "version": "1"}
        send({"id": identity, "result": {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": information}})
    elif method == "tools/list":
        send({"id": identity, "result": {"tools": tools}})
    elif method == "tools/call":
        threading.Thread(target=call, args=(identity, message["params"]), daemon=True).start()
    elif MODE == "crash":
        os._exit(1)
    elif MODE != "mute":
        send({"id": identity, "error": {"code": -32601, "message": f"Method not found: {method}"}})
