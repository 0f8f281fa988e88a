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
    "vanishing": [tool("gone"), tool("stays")],
    "names": [tool(name) for name in ("a.b", "a_b", "a b", "ünï", "x" * 70, "", "9lives", "-dash")],
    "more_schemas": [
        tool("one_of"),
        tool("untyped"),
        tool("any", q={}, w=True),
        tool("allof", b=NUMBER),
        tool("weird", **{"a b": TEXT, "$x": TEXT, "ö": TEXT}),
        tool("deep"),
        tool("enum", e={"type": "string", "enum": [f"value-{number}" for number in range(1200)]}),
        tool("remote", a={"$ref": "https://schemas.example/a.json"}),
        tool("no_items", a={"type": "array"}),
        tool("nullable", q={"type": ["string", "null"], "default": None}),
        tool("map"),
    ],
    "requests": [tool(name) for name in ("sampling", "elicitation", "roots", "ping", "unknown", "log", "progress")],
    "noise": [tool(name) for name in ("garbage", "wrong_id", "twice", "split", "late")],
    "pages": [tool(f"p{number}") for number in range(31)],
}
TOOLS["schemas"][2]["inputSchema"]["$defs"] = {
    "json": {"anyOf": [TEXT, {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}}]}
}
for listed in TOOLS["more_schemas"]:
    schema = listed["inputSchema"]
    if listed["name"] == "one_of":
        member = lambda name: {"type": "object", "properties": {name: TEXT}, "required": [name]}
        listed["inputSchema"] = {"oneOf": [member("a"), member("b")]}
    if listed["name"] == "untyped":
        listed["inputSchema"] = {"properties": {"q": TEXT}}
    if listed["name"] == "allof":
        schema["allOf"] = [{"properties": {"a": TEXT}, "required": ["a"]}, {"if": {"required": ["b"]}, "then": {"required": ["a"]}}]
    if listed["name"] == "deep":
        for _ in range(12):
            listed["inputSchema"] = {"type": "object", "properties": {"a": listed["inputSchema"]}}
    if listed["name"] == "map":
        schema.update({"patternProperties": {"^S_": TEXT}, "additionalProperties": False})
VALUES = {
    "integers": '{"id": 12345678901234567890123, "n": 9007199254740993}',
    "decimals": '{"price": 0.10, "e": 1e400, "z": -0.0, "x": 1.0}',
    "twice_a_key": '{"a":1,"a":2}',
    "array": "[1,2,3]",
    "null": "null",
    "nan": '{"a": NaN}',
    "control": "a\u0000b\u001b[31mred",
    "empty": "",
    "own_status": '{"status":"rendered"}',
    "own_error": '{"status":"error","rows":0}',
}
OTHERS = ("no_content", "two_texts", "error_image", "struct_array", "link", "pdf", "video", "audio", "data_url")
TOOLS["more_values"] = [tool(name) for name in (*VALUES, *OTHERS)]
tools = TOOLS.get(MODE, [tool("a")])


def write(line):
    with LOCK:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}))


def text(text, **more):
    return {"content": [{"type": "text", "text": text}], **more}


def blob(uri, kind, data):
    return {"content": [{"type": "resource", "resource": {"uri": uri, "mimeType": kind, "blob": data}}]}


def result_of(name, arguments):
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    if name in VALUES:
        return text(VALUES[name])
    if name == "no_content":
        return {}
    if name == "two_texts":
        return {"content": [*text("one")["content"], image, *text("two")["content"]]}
    if name == "error_image":
        return {"content": [*text("see the screenshot")["content"], image], "isError": True}
    if name == "struct_array":
        return text("[1]", structuredContent=[1])
    if name == "link":
        return {"content": [{"type": "resource_link", "uri": "file:///r.txt", "name": "Report", "description": "Q3", "mimeType": "text/plain"}]}
    if name == "pdf":
        return blob("file:///a.pdf", "application/pdf", "JVBERi0xLjc=")
    if name == "video":
        return blob("file:///a.mp4", "video/mp4", "AAAA")
    if name == "audio":
        return {"content": [{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}]}
    if name == "data_url":
        return {"content": [{**image, "data": "data:image/png;base64," + PNG}]}
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
    if name == "weird":
        return text(json.dumps(arguments, ensure_ascii=False))
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


ASKED = {}
REQUESTS = {
    "sampling": ("sampling/createMessage", {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 10}),
    "elicitation": ("elicitation/create", {"message": "Name?", "requestedSchema": {"type": "object", "properties": {"n": TEXT}}}),
    "roots": ("roots/list", {}),
    "ping": ("ping", {}),
    "unknown": ("foo/bar", {}),
}


def ask(name):
    """The reply of the client to a request of the server."""
    method, params = REQUESTS[name]
    identity = f"mine-{name}"
    ASKED[identity] = [threading.Event(), None]
    send({"id": identity, "method": method, "params": params})
    assert ASKED[identity][0].wait(60)
    return ASKED[identity][1]


def call(identity, params):
    name = params["name"]
    if name in REQUESTS:
        return send({"id": identity, "result": text("the client says " + json.dumps(ask(name)))})
    if name == "log":
        send({"method": "notifications/message", "params": {"level": "error", "data": "a line"}})
    if name == "progress":
        token = params.get("_meta", {}).get("progressToken", "none")
        progress = {"progressToken": token, "progress": 1, "total": 3, "message": "reading"}
        send({"method": "notifications/progress", "params": progress})
        time.sleep(0.2)
    if name == "garbage":
        write("DEBUG handling the call\n\n{not json}\n[1,2]\n\"x\"")
    if name == "wrong_id":
        send({"id": 99999, "result": text("of nobody")})
    if name == "twice":
        send({"id": identity, "result": text("the first")})
    if name == "split":
        line = json.dumps({"jsonrpc": "2.0", "id": identity, "result": text("héllo")}, ensure_ascii=False) + "\r\n"
        with LOCK:
            for character in line:
                sys.stdout.write(character)
                sys.stdout.flush()
        return
    if name == "surrogate":
        return write('{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"\\ud800"}]}}' % json.dumps(identity))
    if name == "version":
        return write(json.dumps({"id": identity, "result": text("no version")}))
    if name == "batch":
        return write(json.dumps([{"jsonrpc": "2.0", "id": identity, "result": text("in a batch")}]))
    if name == "huge":
        return send({"id": identity, "result": text("y" * 50_000_000)})
    if name == "gone":
        return send({"id": identity, "error": {"code": -32602, "message": "Unknown tool: gone"}})
    if name == "rpc_error":
        return send({"id": identity, "error": {"code": -32602, "message": "bad\nparams", "data": {"hint": "use y"}}})
    send({"id": identity, "result": result_of(name, params.get("arguments", {}))})


if MODE == "together":
    open(os.path.join(os.environ["MET"], str(os.getpid())), "w").close()
    while len(os.listdir(os.environ["MET"])) < 8:
        time.sleep(0.02)
if MODE == "noise":
    write("Server 1.0 is starting...\n\x1b[32mready\x1b[0m\n")
    sys.stderr.write("a line of the log \x1b[31mred\n" * 20000)
    sys.stderr.flush()
if MODE == "broken":
    sys.stderr.write("Traceback\nModuleNotFoundError: no module named 'x'\n")
    sys.exit(1)
for line in sys.stdin:
    message = json.loads(line)
    identity, method = message.get("id"), message.get("method")
    if identity is None:
        continue
    if method is None:
        ASKED[identity][1] = message.get("result", message.get("error"))
        ASKED[identity][0].set()
        continue
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        information = {"name": "odd", "version": "1"}
        send({"id": identity, "result": {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": information}})
    elif method == "tools/list":
        page = (message.get("params") or {}).get("cursor")
        if MODE == "pages":
            number = int(page or 0)
            more = {"nextCursor": str(number + 1)} if number < 30 else {}
            send({"id": identity, "result": {"tools": [tools[number]], **more}})
        elif MODE == "endless":
            send({"id": identity, "result": {"tools": tools, "nextCursor": "same"}})
        else:
            send({"id": identity, "result": {"tools": tools}})
            if MODE == "vanishing":
                tools[:] = [tool("stays")]
    elif method == "tools/call":
        threading.Thread(target=call, args=(identity, message["params"]), daemon=True).start()
    elif MODE == "crash":
        os._exit(1)
    elif MODE != "mute":
        send({"id": identity, "error": {"code": -32601, "message": f"Method not found: {method}"}})
