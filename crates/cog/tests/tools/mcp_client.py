"""Uses `cog mcp serve` with the official Python SDK: `mcp_client.py TARGET MODE CHECK`.

TARGET is a URL, or the path of `cog`. MODE is the SDK's: `auto` for the current revision, `legacy` for the one before.
"""

import asyncio
import os
import sys

from mcp import Client, MCPError, StdioServerParameters
from mcp.types import ElicitResult

TARGET, MODE, CHECK = sys.argv[1:4]


def client(**callbacks):
    server = TARGET
    if not TARGET.startswith("http"):
        arguments = ["mcp", "serve", "--provider", "openai", "--model", "gpt-4.1"]
        server = StdioServerParameters(command=TARGET, args=arguments, env=dict(os.environ))
    return Client(server, mode=MODE, read_timeout_seconds=60, **callbacks)


def error_of(result):
    assert result.is_error, result
    envelope = result.structured_content
    assert envelope["ok"] is False, envelope
    return envelope["error"]


async def tools():
    """Tools are listed and called; the SDK validates each result with the output schema."""
    async with client() as it:
        expected = "2025-11-25" if MODE == "legacy" else "2026-07-28"
        assert it.protocol_version == expected, it.protocol_version
        listed = (await it.list_tools()).tools
        names = [tool.name for tool in listed]
        assert names == sorted(names) and "m" in names and "code-reviewer" in names, names
        tool = listed[names.index("m")]
        assert tool.description.startswith("Answer"), tool
        assert tool.input_schema["required"] == ["query"], tool
        assert "result" in tool.output_schema["properties"]["data"]["properties"], tool
        assert tool.annotations.read_only_hint is True, tool
        assert listed[names.index("writer")].annotations.destructive_hint is True

        shown = []

        async def progress(progress, total, message):
            shown.append((progress, message))

        result = await it.call_tool("m", {"query": "why?"}, progress_callback=progress)
        assert not result.is_error, result
        assert result.structured_content["data"]["result"] == "fine", result
        assert '"result":"fine"' in result.content[0].text.replace(" ", ""), result
        numbers = [number for number, _ in shown]
        assert numbers == sorted(set(numbers)), shown
        assert any("data.result" in message for _, message in shown), shown

        error = error_of(await it.call_tool("m", {}))
        assert error["code"] == "E1002" and "query" in error["message"], error
        error = error_of(await it.call_tool("m", {"query": 7}))
        assert error["code"] == "E1003" and "input.query" in error["message"], error
        try:
            await it.call_tool("mm", {})
        except MCPError as error:
            assert error.error.code == -32602, error.error
            assert error.error.data["code"] == "E4006", error.error
            assert "m" in error.error.data["suggestion"], error.error
        else:
            raise AssertionError("an unknown tool was called")


async def confirm(action):
    """The person is asked, and decides."""
    asked = []

    async def elicit(context, params):
        asked.append(params.message)
        content = {"confirm": "YES"} if action == "accept" else None
        return ElicitResult(action=action, content=content)

    async with client(elicitation_callback=elicit) as it:
        result = await it.call_tool("caller", {"query": "delete it"})
        assert len(asked) == 1 and "`m`" in asked[0] and "prod" in asked[0], asked
        if action == "cancel":
            assert error_of(result)["code"] == "E4007", result
        else:
            assert not result.is_error and result.structured_content["data"]["result"] == "fine", result


async def nobody():
    """A client that cannot ask gets an error that names the run, and no command that an agent could use."""
    async with client() as it:
        error = error_of(await it.call_tool("caller", {"query": "delete it"}))
        assert error["code"] == "E4007", error
        assert "person" in error["suggestion"] and "halt_" not in error["suggestion"], error
        assert error["details"]["halted"]["id"].startswith("halt_"), error


CHECKS = {
    "tools": tools,
    "accept": lambda: confirm("accept"),
    "decline": lambda: confirm("decline"),
    "cancel": lambda: confirm("cancel"),
    "nobody": nobody,
}
asyncio.run(CHECKS[CHECK]())
