"""A model that replies as a test wants, and a module that may call any tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cognitive import ModelRequest, Provider, Reply, ToolCall

ANSWER = json.dumps({
    "ok": True,
    "meta": {"confidence": 0.9, "risk": "low", "explain": "It is done."},
    "data": {"text": "done", "rationale": "The tools did it."},
})
MANIFEST = """name: agent
version: 1.0.0
responsibility: Does what it is told
tier: decision
excludes: [nothing]
policies: { tools_allowed: true, side_effects: allow, network: allow }
tools: { policy: allow_by_default }
response: { mode: both }
"""
SCHEMA = {
    "input": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}},
    "data": {
        "type": "object",
        "required": ["text", "rationale"],
        "properties": {"text": {"type": "string"}, "rationale": {"type": "string"}},
    },
}
INPUT = {"query": "Do it."}


class Scripted(Provider):
    """Replies with each of these in turn, and then with the last again."""

    model = "scripted-1"

    def __init__(self, *replies: str | Reply) -> None:
        self.replies = replies or (ANSWER,)
        self.requests: list[ModelRequest] = []

    def complete(self, request: ModelRequest) -> str | Reply:
        self.requests.append(request)
        return self.replies[min(len(self.requests), len(self.replies)) - 1]

    def results(self) -> list[dict[str, Any]]:
        """The results of tools in the last request."""
        messages = self.requests[-1].messages
        return [json.loads(message["content"]) for message in messages if message["role"] == "tool"]


def calls(*requested: tuple[str, dict[str, Any]]) -> Reply:
    """A reply that calls these tools."""
    return Reply(tool_calls=[ToolCall(name=name, arguments=arguments) for name, arguments in requested])


def agent(directory: Path, manifest: str = MANIFEST) -> Path:
    """Writes the module."""
    module = directory / "agent"
    module.mkdir()
    (module / "module.yaml").write_text(manifest)
    (module / "prompt.md").write_text("Do what $ARGUMENTS requests.\n")
    (module / "schema.json").write_text(json.dumps(SCHEMA))
    return module
