"""An MCP server made with the official Python SDK: `mcp_server.py stdio`, or `mcp_server.py http PORT`."""

import asyncio
import base64
import os
import sys

from mcp.server import MCPServer
from mcp.types import ImageContent, TextContent, ToolAnnotations

server = MCPServer("test")
READ_ONLY = ToolAnnotations(readOnlyHint=True)


@server.tool(annotations=READ_ONLY)
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool(annotations=READ_ONLY)
def fail(reason: str) -> str:
    """Fails."""
    raise ValueError(reason)


@server.tool(annotations=READ_ONLY)
def image() -> list[ImageContent]:
    """Returns an image."""
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    return [ImageContent(type="image", data=data, mimeType="image/png")]


@server.tool(annotations=READ_ONLY)
def binary() -> list[ImageContent]:
    """Returns bytes that are not base64."""
    return [ImageContent(type="image", data="\x00\x01", mimeType="image/png")]


@server.tool(annotations=READ_ONLY)
def large(megabytes: int) -> str:
    """Returns a large text."""
    return "x" * (megabytes << 20)


@server.tool(annotations=READ_ONLY)
async def hang() -> str:
    """Never returns."""
    await asyncio.sleep(3600)
    return ""


@server.tool(annotations=READ_ONLY)
def die() -> str:
    """Ends the server."""
    os._exit(7)


@server.tool(annotations=READ_ONLY)
def die_once(marker: str) -> str:
    """Ends the server at its first call."""
    if os.path.exists(marker):
        return "alive"
    open(marker, "w").close()
    os._exit(7)


@server.tool()
def crash() -> str:
    """Ends the server during a call with side effects."""
    os._exit(7)


@server.tool(annotations=READ_ONLY)
def variables() -> list[str]:
    """Lists the names of the environment variables."""
    return sorted(os.environ)


@server.tool()
def delete(path: str) -> str:
    """Deletes a file."""
    return f"deleted {path}"


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
