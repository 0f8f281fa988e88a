"""What the operator's machine adds to runs: readers of documents, and MCP servers."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from scripted import ANSWER, INPUT, MANIFEST, SCHEMA, Scripted, agent, calls

from cognitive import CognitiveRuntime

SERVER = Path(__file__).parents[2] / "cog/tests/tools/mcp_server.py"


def pdf(text: str) -> bytes:
    """A PDF of one page."""
    content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R "
        "/Resources << /Font << /F1 3 0 R >> >> >>",
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
    ]
    out, table = "%PDF-1.7\n", f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
    for number, body in enumerate(objects, 1):
        table += f"{len(out):010} 00000 n \n"
        out += f"{number} 0 obj\n{body}\nendobj\n"
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return (out + table + trailer).encode()


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    """A module that reads documents."""
    module = agent(tmp_path, MANIFEST + "modalities: { input: [text, document] }\n")
    schema = json.loads(json.dumps(SCHEMA))
    schema["input"]["properties"]["file"] = {"$ref": "#/$defs/MediaInput"}
    (module / "schema.json").write_text(json.dumps(schema))
    return module


def test_document_is_read_in_a_process_of_its_own(reader: Path, tmp_path: Path) -> None:
    contract = tmp_path / "contract.pdf"
    contract.write_bytes(pdf("The notice period is three months."))
    model = Scripted()
    own = CognitiveRuntime(providers={"mine": model}, provider="mine")
    for file in (contract, contract.read_bytes()):
        result = own.execute(reader, {"query": "How long?", "file": file})
        assert result.ok, result.error
        assert "The notice period is three months." in str(model.requests[-1].messages)


def test_damaged_document_is_an_error(reader: Path) -> None:
    own = CognitiveRuntime(providers={"mine": Scripted()}, provider="mine")
    result = own.execute(reader, {"query": "How long?", "file": b"%PDF-1.7\nnothing"})
    assert result.error is not None and result.error.code == "E1013", result.error


def settings(text: str) -> None:
    file = Path.home() / ".config/cog/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


def test_tools_of_a_server_are_called(tmp_path: Path) -> None:
    settings(f"[mcp.test]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SERVER))}, \"stdio\"]\n")
    requested = calls(("test__add", {"a": 1, "b": 2}), ("test__fail", {"reason": "no"}))
    model = Scripted(requested, ANSWER, requested, ANSWER)
    own = CognitiveRuntime(providers={"mine": model}, provider="mine")
    module = agent(tmp_path)
    for _ in range(2):
        assert own.execute(module, INPUT).ok
        added, failed = model.results()
        assert added["status"] == "success" and "3" in json.dumps(added)
        assert failed["status"] == "error" and failed["error_type"] == "ToolError"


def test_server_that_cannot_be_started_is_an_error_only_for_modules_with_its_tools(tmp_path: Path) -> None:
    settings("[mcp.test]\ncommand = \"/nowhere/server\"\n")
    own = CognitiveRuntime(providers={"mine": Scripted()}, provider="mine")
    assert own.execute("code-reviewer", {"code": "x"}, provider="offline").ok
    result = own.execute(agent(tmp_path), INPUT)
    assert result.error is not None and result.error.code == "E4001"
    assert "/nowhere/server" in result.error.message


def log() -> list[dict[str, Any]]:
    file = Path.home() / ".local/state/cog/logs/runs.ndjson"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_runs_are_in_the_log(tmp_path: Path) -> None:
    own = CognitiveRuntime(providers={"mine": Scripted()}, provider="mine")
    module = agent(tmp_path)
    assert own.execute(module, INPUT).ok
    asyncio.run(own.execute_async(module, INPUT))
    list(own.execute_stream(module, INPUT))
    assert not own.execute(module, {"query": 5}).ok
    logged = log()
    assert [entry["ok"] for entry in logged] == [True, True, True, False]
    assert [entry["module"] for entry in logged] == ["agent"] * 4
    assert logged[0]["requested_provider"] == "mine" and logged[0]["model"] == "mine/scripted-1"
    assert logged[3]["code"] == "E1003" and "contents" not in logged[0]


def test_log_has_what_the_run_requested(tmp_path: Path) -> None:
    own = CognitiveRuntime(providers={"mine": Scripted(), "other": Scripted()}, provider="mine", model="usual")
    module = agent(tmp_path)
    for options in ({}, {"provider": "other"}, {"provider": "other", "model": "large"}, {"model": "small"}):
        own.execute(module, INPUT, **options)  # type: ignore[arg-type]
    requested = [(entry["requested_provider"], entry.get("requested_model")) for entry in log()]
    assert requested == [("mine", "usual"), ("other", None), ("other", "large"), ("mine", "small")]


def test_settings_turn_the_log_off_and_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COG_LOGS_ENABLED", "off")
    assert CognitiveRuntime(provider="offline").execute("code-reviewer", {"code": "x"}).ok
    assert log() == []
    monkeypatch.delenv("COG_LOGS_ENABLED")
    settings("[logs]\ncontents = true\n")
    assert CognitiveRuntime(provider="offline").execute("code-reviewer", {"code": "x"}).ok
    assert log()[0]["contents"]["input"] == {"code": "x"} and log()[0]["contents"]["envelope"]["ok"]
