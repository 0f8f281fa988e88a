"""An MCP server of an older revision, without the SDK: `mcp_old_server.py REVISION`.

It knows only what that revision has, nothing of `none`, and writes the version that the client offered to stderr.
"""

import json
import sys

REVISION = sys.argv[1]
TOOL = {
    "name": "add",
    "description": "Adds two numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}
if REVISION != "2024-11-05":
    TOOL["annotations"] = {"readOnlyHint": True}  # new in 2025-03-26


def result(method, params):
    if method == "initialize" and REVISION != "none":
        capabilities = {"tools": {}}
        return {"protocolVersion": REVISION, "capabilities": capabilities, "serverInfo": {"name": "old", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        text = str(params["arguments"]["a"] + params["arguments"]["b"])
        return {"content": [{"type": "text", "text": text}], "isError": False}
    return None


is_ready = False
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "notifications/initialized":
        is_ready = True
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    found = result(method, message.get("params"))
    if found is None or (method != "initialize" and not is_ready):
        reply["error"] = {"code": -32601, "message": f"Method not found: {method}"}
    else:
        reply["result"] = found
    print(json.dumps(reply), flush=True)
